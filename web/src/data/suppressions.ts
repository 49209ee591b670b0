/** What the page "Suppression" reads and sends. */

import { infiniteQueryOptions } from '@tanstack/react-query'
import { type Answer, ask } from './api.ts'
import { byCursor } from './by-cursor.ts'
import type { KeyName } from './keys.ts'
import { keys } from './keys.ts'
import { uploadText } from './upload.ts'

export type Suppression = Answer<'GET /w/{workspace_id}/suppressions'>['suppressions'][number]
export type ChatSuppression = Answer<'GET /w/{workspace_id}/chats/{chat_id}/suppression'>['entries'][number]
export type Kind = Suppression['kind']
export type ImportReport = Answer<'POST /w/{workspace_id}/suppressions/import'>

export interface SuppressionFilter {
  /** A platform id, username or phone number, in any spelling. */
  q?: string
  kind?: Kind
}

export const kindWords: Readonly<Record<Kind, string>> = {
  username: 'Username',
  phone: 'Phone number',
  platform_id: 'Platform id',
}
/** As people write it: @ada_l, +49170555. */
export function writtenOf({ kind, value }: Pick<Suppression, 'kind' | 'value'>): string {
  return `${{ username: '@', phone: '+', platform_id: '' }[kind]}${value}`
}

/** To choose from. */
export const kinds = Object.entries(kindWords) as readonly [Kind, string][]

/** What shows whether a person is on the list. */
export const suppressionShownIn: readonly KeyName[] = ['suppressions', 'chat', 'inbox', 'board']

const pageSize = 100

export const suppressionsQuery = (workspace_id: string, { q, kind }: SuppressionFilter) =>
  infiniteQueryOptions({
    queryKey: keys.suppressions(workspace_id, kind ?? null, q ?? null),
    ...byCursor,
    queryFn: ({ pageParam: cursor, signal }) => {
      const query = { limit: pageSize, kind, search: q, cursor }
      return ask('GET /w/{workspace_id}/suppressions', { params: { workspace_id }, query }, { signal })
    },
  })

/** The service refuses longer names. */
const fileNameMax = 255

interface Import {
  readonly workspace_id: string
  readonly file: File
  readonly signal: AbortSignal
  /** The uploaded fraction, from 0 to 1. */
  readonly onProgress: (part: number) => void
}

export function importFile({ workspace_id, file, signal, onProgress }: Import): Promise<ImportReport> {
  const file_name = file.name.trim().slice(0, fileNameMax).toWellFormed() || 'list.csv'
  return ask(
    'POST /w/{workspace_id}/suppressions/import',
    { params: { workspace_id }, query: { file_name }, body: file },
    { upload: uploadText(file, 'text/csv', onProgress), signal },
  )
}

export const exportPath = (workspace_id: string) =>
  `/dashboard/api/w/${encodeURIComponent(workspace_id)}/suppressions/export`
