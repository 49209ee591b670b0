/** The verbs about one person: what is stored about them. */
import { rm, writeFile } from 'node:fs/promises'
import type { Command } from 'commander'
import type { App } from '../app.ts'
import { exportPerson, findPeople, readPerson } from '../capabilities/person-record/person-record.ts'
import { Refusal } from '../lib/errors.ts'
import type { Piece } from '../lib/zip.ts'
import { Stream } from '../route.ts'
import { addEraseVerb } from './person-erase.ts'
import { commandOf, type VerbNeeds } from './verbs.ts'
import { workspaceVerb } from './workspace-verb.ts'

const needs: VerbNeeds = {
  operations: async () => (await import('../lists/operations.ts')).operations,
}

export function addPersonVerbs(program: Command): void {
  const person = commandOf(program, 'person')
  workspaceVerb(
    person,
    'find <name>',
    'find people by a name, username, phone number, link or id',
    (app, _, { workspace_id }, q = '') => findAll(app, workspace_id, q),
  )
  workspaceVerb(
    person,
    'show <id>',
    'print what is stored about a person, without the texts of messages',
    async (app, _, { workspace_id }, id = '') => (await readPerson(app, { workspace_id }, id)).person,
    needs,
  )
  workspaceVerb(
    person,
    'export <id> <file>',
    'write everything stored about a person, with messages and files, to a new ZIP file; recorded in the audit log',
    async (app, actor, { workspace_id }, id = '', file = '') => {
      const pieces = exportPerson(app, actor, { workspace_id, id, left: undefined })
      return { file, bytes: await writeArchive(file, pieces) }
    },
    needs,
  )
  addEraseVerb(person)
}

async function writeArchive(file: string, pieces: AsyncGenerator<Piece, void>): Promise<number> {
  // Refused before a file is made.
  const begun = await Stream.begin(pieces)
  let size = 0
  const counted = async function* () {
    for await (const piece of begun) {
      size += typeof piece === 'string' ? Buffer.byteLength(piece) : piece.length
      yield piece
    }
  }
  try {
    await writeFile(file, counted(), { mode: 0o600, flag: 'wx' })
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'EEXIST') await rm(file, { force: true })
    if (!/^E[A-Z]+$/.test(code ?? '')) throw error
    throw new Refusal(`${file} cannot be written: ${code}. An existing file is never overwritten.`)
  } finally {
    // Also of a file that was refused.
    await begun[Symbol.asyncIterator]().return?.()
  }
  return size
}

/** As many as one page of the API has. */
const atOnce = 200

async function findAll(app: App, workspace_id: string, q: string): Promise<object[]> {
  const found: object[] = []
  let after: readonly string[] | undefined
  do {
    const paging = { after, next: (position: readonly unknown[]) => JSON.stringify(position) }
    const page = await findPeople(app, { workspace_id }, { query: { q, limit: atOnce }, paging })
    const { people, next_cursor }: { people: object[]; next_cursor: string | null } = JSON.parse(page)
    found.push(...people)
    after = next_cursor === null ? undefined : JSON.parse(next_cursor)
  } while (after)
  return found
}
