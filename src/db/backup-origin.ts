/** Which instance a backup is of, read from its rows: the header of an older backup does not say. */
import type { BackupTable, OpenBackup } from './backup-file.ts'

export interface BackupOrigin {
  readonly id: string
  /** How far its restore counter had come. */
  readonly restore_counter: string
  readonly workspace_ids: ReadonlySet<string>
}

const wanted = ['instance', 'workspaces']

/** Both tables come before the large ones, so this reads little of the file. */
export async function readOrigin(backup: OpenBackup): Promise<BackupOrigin> {
  const found = new Map<string, Record<string, string>[]>()
  let table: BackupTable | undefined
  let bytes: Buffer[] = []
  for await (const part of backup.parts()) {
    if (part.kind === 'rows') {
      if (table) bytes.push(Buffer.from(part.bytes))
      continue
    }
    if (table) found.set(table.name, parseRows(table, Buffer.concat(bytes)))
    if (found.size === wanted.length || part.kind === 'end') break
    bytes = []
    table = part.kind === 'table' && wanted.includes(part.table.name) ? part.table : undefined
  }
  const [instance] = found.get('instance') ?? []
  const workspace_ids = new Set((found.get('workspaces') ?? []).flatMap(({ id }) => id ?? []))
  const { id = '', restore_counter = '0' } = instance ?? {}
  return { id, restore_counter, workspace_ids }
}

/** Rows as PostgreSQL's COPY writes them. Ids and numbers have nothing that it escapes. */
function parseRows({ columns }: BackupTable, bytes: Buffer): Record<string, string>[] {
  const lines = bytes.toString('utf8').split('\n').slice(0, -1)
  return lines.map((line) => {
    const values = line.split('\t')
    return Object.fromEntries(columns.map((column, at) => [column, values[at] ?? '']))
  })
}
