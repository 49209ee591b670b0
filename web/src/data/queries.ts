/** What the pages read, each under one query key, so that a change on one page shows on all of them. */

import {
  MutationCache,
  QueryCache,
  QueryClient,
  queryOptions,
  useMutation,
  useQueryClient,
} from '@tanstack/react-query'
import { type Answer, ask, Refused, type RouteName } from './api.ts'
import { allOf, type KeyName, keys } from './keys.ts'

export type Session = Answer<'GET /session'>
export type Workspace = Session['workspaces'][number]
export type Key = Answer<'GET /w/{workspace_id}/keys'>['keys'][number]
export type Member = Answer<'GET /w/{workspace_id}/members'>['members'][number]
export type Approval = Answer<'GET /approvals/{request_id}'>['approval']
export type Gate = Answer<'GET /gates'>['gates'][number]

/** Called when the session has ended, wherever that is noticed first. */
let signedOut: () => void = () => {}
export function onSignedOut(act: () => void): void {
  signedOut = act
}

/** For requests outside of queries and changes. */
export function endSession(): void {
  signedOut()
}

export const queryClient = new QueryClient({
  queryCache: new QueryCache({
    onError: (error) => {
      if (error instanceof Refused && error.code === 'not_signed_in') signedOut()
    },
  }),
  mutationCache: new MutationCache({
    onError: (error) => {
      if (error instanceof Refused && error.code === 'not_signed_in') signedOut() // guard: a change notices the end of the session
      // We do not know whether the change was made, so reload everything on the page. The error does not wait for that.
      if (error instanceof Refused && (error.code === 'unreachable' || error.status >= 500)) {
        void queryClient.invalidateQueries()
      }
    },
  }),
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      // The service would refuse the same request again. Retry only what it could not answer.
      retry: (count, error) =>
        count < 2 && error instanceof Refused && (error.status === 0 || error.status >= 500),
    },
  },
})

export const sessionQuery = queryOptions({
  queryKey: keys.session(),
  queryFn: () => ask('GET /session'),
  staleTime: 60_000,
})

export const keysQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.keys(workspace_id),
    queryFn: () => ask('GET /w/{workspace_id}/keys', { params: { workspace_id } }),
  })

export const membersQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.members(workspace_id),
    queryFn: () => ask('GET /w/{workspace_id}/members', { params: { workspace_id } }),
  })

/** The workspace, what the user can do in it, and what waits for an admin. */
export const workspaceQuery = (workspace_id: string) =>
  queryOptions({
    queryKey: keys.workspace(workspace_id),
    queryFn: () => ask('GET /w/{workspace_id}/workspace', { params: { workspace_id } }),
  })

export const sessionsQuery = queryOptions({ queryKey: keys.sessions(), queryFn: () => ask('GET /sessions') })

/** Whether this instance sends, for the bar on every page. */
export const sendingQuery = queryOptions({ queryKey: keys.sending(), queryFn: () => ask('GET /sending') })

export const gatesQuery = queryOptions({ queryKey: keys.gates(), queryFn: () => ask('GET /gates') })

export const allowlistsQuery = queryOptions({
  queryKey: keys.allowlists(),
  queryFn: async () => {
    const [lists, { users }, { workspaces }] = await Promise.all([
      ask('GET /allowlists'),
      ask('GET /users'),
      ask('GET /workspaces'),
    ])
    return { lists, users, workspaces }
  },
})

export const waitingQuery = queryOptions({
  queryKey: keys.approvals('waiting'),
  queryFn: () => ask('GET /approvals', { query: { state: 'waiting' } }),
})

export const approvalQuery = (request_id: string) =>
  queryOptions({
    queryKey: keys.approvals('one', request_id),
    queryFn: () => ask('GET /approvals/{request_id}', { params: { request_id } }),
  })

/** A change. After it succeeds, what it affects is read again before its dialog closes. */
export function useChange<R extends RouteName>(name: R, touches: readonly KeyName[]) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: (input: Parameters<typeof ask<R>>[1]) => (ask as Ask<R>)(name, input),
    onSuccess: () => Promise.all(touches.map((name) => client.invalidateQueries({ queryKey: allOf(name) }))),
  })
}

type Ask<R extends RouteName> = (name: R, input: Parameters<typeof ask<R>>[1]) => Promise<Answer<R>>
