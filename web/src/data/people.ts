/** What the pages about a person read. */
import { infiniteQueryOptions, queryOptions, useMutation, useQueryClient } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { keys } from './keys.ts'

export type FoundPerson = Answer<'GET /w/{workspace_id}/people'>['people'][number]
export type PersonRecord = Answer<'GET /w/{workspace_id}/people/{person_id}'>['person']

const pageSize = 50

export const peopleQuery = (workspace_id: string, q: string) =>
  infiniteQueryOptions({
    queryKey: keys.people(workspace_id, q),
    initialPageParam: undefined as string | undefined,
    queryFn: ({ pageParam: cursor, signal }) => {
      const query = { q, limit: pageSize, ...(cursor !== undefined && { cursor }) }
      return ask('GET /w/{workspace_id}/people', { params: { workspace_id }, query }, { signal })
    },
    getNextPageParam: ({ next_cursor }) => next_cursor ?? undefined,
  })

export const personQuery = (workspace_id: string, person_id: string) =>
  queryOptions({
    queryKey: keys.person(workspace_id, person_id),
    queryFn: ({ signal }) =>
      ask('GET /w/{workspace_id}/people/{person_id}', { params: { workspace_id, person_id } }, { signal }),
  })

export type ErasurePreview = Answer<'GET /w/{workspace_id}/people/{person_id}/erase'>

/** Read again each time that it is shown: an erasure runs only as it was shown. */
export const erasurePreviewQuery = (workspace_id: string, person_id: string) =>
  queryOptions({
    queryKey: keys.person(workspace_id, person_id, 'preview'),
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/people/{person_id}/erase',
        { params: { workspace_id, person_id } },
        { signal },
      ),
    staleTime: 0,
    gcTime: 0,
  })

/** How far the last erasure of the person has come. */
export const erasureQuery = (workspace_id: string, person_id: string) =>
  queryOptions({
    queryKey: keys.person(workspace_id, person_id, 'erasure'),
    queryFn: ({ signal }) =>
      ask(
        'GET /w/{workspace_id}/people/{person_id}/erasure',
        { params: { workspace_id, person_id } },
        { signal },
      ),
  })

interface Erasing {
  /** Names this one request: sent again, it returns the first answer. */
  readonly key: string
  readonly preview: string
  readonly contact_allowed: boolean
}

export function useErase(workspace_id: string, person_id: string) {
  const client = useQueryClient()
  return useMutation({
    mutationFn: ({ key, ...body }: Erasing) =>
      ask(
        'POST /w/{workspace_id}/people/{person_id}/erase',
        { params: { workspace_id, person_id }, body },
        { key },
      ),
    // Also after a refusal: what is stored may have changed since the preview.
    onSettled: () => client.invalidateQueries({ queryKey: keys.person(workspace_id, person_id) }),
  })
}

export const personExportPath = (workspace_id: string, person_id: string) =>
  `/dashboard/api/w/${encodeURIComponent(workspace_id)}/people/${encodeURIComponent(person_id)}/export`

/** Of `username:ada_l`: @ada_l. */
export function writtenName(name: string): string {
  return name.replace(/^username:/, '@').replace(/^phone:/, '+')
}
