/** What the operators' pages read. Every key begins with `instance`: the mark of that name makes them stale. */

import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { byCursor } from './by-cursor.ts'
import { keys } from './keys.ts'

export type Dispatch = Answer<'GET /dispatch'>
export type User = Answer<'GET /users'>['users'][number]
export type ListedWorkspace = Answer<'GET /workspaces'>['workspaces'][number]
export type AmbiguousOperation = Answer<'GET /operations/ambiguous'>['operations'][number]
export type TroubledAccount = Answer<'GET /accounts'>['accounts'][number]
export type AuditRow = Answer<'GET /audit'>['rows'][number]
export type Instance = Answer<'GET /instance'>

export const dispatchQuery = queryOptions({
  queryKey: keys.instance('dispatch'),
  queryFn: () => ask('GET /dispatch'),
})

export const peopleQuery = queryOptions({
  queryKey: keys.instance('people'),
  queryFn: async () => {
    const [{ users }, { workspaces }] = await Promise.all([ask('GET /users'), ask('GET /workspaces')])
    return { users, workspaces }
  },
})

export const attentionQuery = queryOptions({
  queryKey: keys.instance('attention'),
  queryFn: async () => {
    const [{ operations }, { accounts }, { workspaces }] = await Promise.all([
      ask('GET /operations/ambiguous'),
      ask('GET /accounts'),
      ask('GET /workspaces'),
    ])
    return { operations, accounts, names: new Map(workspaces.map(({ id, name }) => [id, name])) }
  },
})

export const verdictQuery = queryOptions({
  queryKey: keys.instance('verdict'),
  queryFn: () => ask('GET /audit/verdict'),
})

export interface AuditFilter {
  workspace?: string
  action?: string
  actor?: string
}

export const auditQuery = ({ workspace, action, actor }: AuditFilter) =>
  infiniteQueryOptions({
    queryKey: keys.instance('audit', workspace, action, actor),
    ...byCursor,
    queryFn: ({ pageParam: cursor }) =>
      ask('GET /audit', { query: { workspace_id: workspace, action, actor, cursor } }),
  })

export const instanceQuery = queryOptions({
  queryKey: keys.instance('system'),
  queryFn: () => ask('GET /instance'),
})
