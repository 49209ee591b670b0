/**
 * Everything that Parley has of a person as one ZIP archive: `person.json`, their messages for programs and for people, and the files
 * of these messages that are stored now. It is written while it is read, so its length costs no memory.
 */
import { exportTurns } from '../../access/turns.ts'
import type { App } from '../../app.ts'
import { type Sql, sql } from '../../db/sql.ts'
import { messageKinds } from '../../ledger/unsent.ts'
import { type Piece, writeZip, type ZipEntry } from '../../lib/zip.ts'
import { type Actor, record } from '../audit/audit.ts'
import { readRange } from '../media/media.ts'
import { type KnownPerson, requirePerson } from './known-person.ts'
import { type ExportedMessage, eachMessage } from './message-walk.ts'
import { pageEnd, pageHead, pagePart } from './readable-page.ts'
import * as parts from './stored-parts.ts'

const inTurn = exportTurns({
  own: 'Another person of this workspace is being exported.',
  others: 'Other people are being exported.',
})

interface Asked {
  readonly workspace_id: string
  readonly id: string
  readonly left: AbortSignal | undefined
}

/** Throws before the first piece if there is no such person, or another export of the workspace is open. */
export function exportPerson(app: App, actor: Actor, asked: Asked): AsyncGenerator<Piece, void> {
  return inTurn(app, asked, () => beginExport(app, actor, asked))
}

async function* beginExport(
  app: App,
  actor: Actor,
  { workspace_id, id }: Asked,
): AsyncGenerator<Piece, void> {
  const person = await requirePerson(app.db, workspace_id, id)
  const { at } = await app.db.transaction(async (tx) => {
    await record(app, tx, actor, { action: 'person.exported', target: person.id, workspace_id }) // guard: an export is recorded
    return tx.one<{ at: Date }>(sql`select domain_now() as at`)
  })
  yield* writeZip(entriesOf(app, person, at), { at })
}

/** A file of a message, and where the archive has it. */
interface ListedFile {
  readonly path: string
  readonly account_id: string
  readonly chat_id: string
  readonly message_id: string
  readonly index: number
  readonly file_name: string
  readonly media_type: string
  readonly size: number
  /** False: the service deleted its bytes while the archive was written. */
  included: boolean
}

interface StoredFile extends ListedFile {
  readonly stored: { readonly id: string; readonly size: number }
}

async function* entriesOf(app: App, person: KnownPerson, at: Date): AsyncGenerator<ZipEntry, void> {
  const before = at.toISOString()
  /** No more than the cache of files holds, and without their bytes. */
  const files: StoredFile[] = []
  yield { name: 'person.json', content: personJson(app, person, before) }
  yield { name: 'messages.json', content: messagesJson(app, person, { before, files }) }
  yield { name: 'messages.html', content: messagesPage(app, person, before) }
  for (const file of files) {
    const content = await beginFile(app, file.stored)
    file.included = content !== undefined
    if (content) yield { name: file.path, content }
  }
  yield { name: 'files.json', content: filesJson(files) }
}

/** Undefined if the cache has deleted the file by now. */
async function beginFile(
  { db }: App,
  { id, size }: { readonly id: string; readonly size: number },
): Promise<AsyncGenerator<Piece, void> | undefined> {
  const kept = await db.maybe(
    sql`select 1 from media_files where id = ${id} and ended_at is not null and failure is null`,
  )
  return kept ? readRange(db, id, { start: 0, end: size - 1 }) : undefined
}

/** How many rows of a part are read: more than a person has. */
const rowsMax = 100_000

interface Part {
  readonly name: string
  /** Where the rows come from, for the person. */
  readonly from: string
  readonly rows: Sql
}

function partsOf(app: App, person: KnownPerson): readonly Part[] {
  const kinds = messageKinds(app.operations)
  return [
    {
      name: 'names',
      from: 'What the platform showed to the account: usernames and phone numbers over time, and what chats and address books show now.',
      rows: parts.namesOf(person, rowsMax),
    },
    {
      name: 'contacts',
      from: 'The address book of the account at the platform.',
      rows: parts.contactRows(person),
    },
    {
      name: 'chats',
      from: 'Private chats of the account; stage and assignee were set by the team.',
      rows: parts.exportedChats(person, rowsMax),
    },
    {
      name: 'suppressions',
      from: 'The suppression list: a message that asked to stop, an imported file, or a user or operator.',
      rows: parts.suppressionRows(person, rowsMax),
    },
    {
      name: 'campaigns',
      from: 'Campaigns: contact, identifier and given_name were given by their maker; told_name, username, what was found and the outcome come from the platform.',
      rows: parts.exportedCampaigns(person, rowsMax),
    },
    { name: 'columns', from: 'Values that the team entered.', rows: parts.valueRows(person, rowsMax) },
    { name: 'notes', from: 'Notes that the team wrote.', rows: parts.noteRows(person, rowsMax) },
    {
      name: 'operations',
      from: 'Requests to send a message that have no message: waiting, refused, or with an unknown outcome.',
      rows: parts.unsentRows(person, { kinds, limit: rowsMax }),
    },
    {
      name: 'approvals',
      from: 'Messages and changes that an agent asked a user to approve.',
      rows: parts.approvalRows(person, rowsMax),
    },
  ]
}

async function* personJson(app: App, person: KnownPerson, at: string): AsyncGenerator<Piece, void> {
  const { id, workspace_id, platform, number: platform_id, name, first_seen_at } = person
  const workspace = await app.db.one(sql`select id, name from workspaces where id = ${workspace_id}`)
  const head = {
    exported_at: at,
    workspace,
    person: { id, platform, platform_id, name, first_seen_at },
    not_repeated,
  }
  yield `${JSON.stringify(head).slice(0, -1)},"parts":{`
  let before = ''
  for (const { name, from, rows } of partsOf(app, person)) {
    yield `${before}${JSON.stringify(name)}:{"from":${JSON.stringify(from)},"rows":[`
    before = ','
    const read = await app.db.rows<Record<string, unknown>>(rows)
    for (const [at, row] of read.entries()) yield `${at === 0 ? '' : ','}${JSON.stringify(row)}`
    yield ']}'
  }
  yield '}}\n'
}

const not_repeated =
  'Events and their webhook deliveries of the last 30 days, stored answers, the search index and the ledger hold copies of what is here. messages.json has the messages, files.json lists their files.'

async function* messagesJson(
  { db }: App,
  person: KnownPerson,
  { before, files }: { readonly before: string; readonly files: StoredFile[] },
): AsyncGenerator<Piece, void> {
  let start = '{"messages":[\n'
  for await (const messages of eachMessage(db, person, before)) {
    yield start + messages.map((message) => JSON.stringify(listFiles(message, files))).join(',\n')
    start = ',\n'
  }
  yield start.startsWith('{') ? `${start}]}\n` : '\n]}\n'
}

/** Notes the message's files whose bytes are stored, and names their paths in place of what only the service knows. */
function listFiles({ attachments, ...message }: ExportedMessage, files: StoredFile[]): object {
  const { account_id, chat_id, id: message_id } = message
  const listed = attachments.map(({ stored, ...attachment }) => {
    const { index, file_name, media_type, size } = attachment
    if (!stored) return { ...attachment, path: null }
    const path = `files/${account_id}/${message_id}-${index}${extensionOf(file_name)}`
    const place = { account_id, chat_id, message_id, index }
    files.push({ path, ...place, file_name, media_type, size, included: false, stored })
    return { ...attachment, path }
  })
  return { ...message, attachments: listed }
}

/** A stranger chose the file's name: the archive has only its ending, and only if that is plain. */
function extensionOf(file_name: string): string {
  return /\.[A-Za-z0-9]{1,8}$/.exec(file_name)?.[0] ?? '' // guard: no path of a stranger
}

async function* messagesPage({ db }: App, person: KnownPerson, before: string): AsyncGenerator<Piece, void> {
  const rows = await db.rows<{ id: string; name: string }>(sql`
    select id, name from accounts where workspace_id = ${person.workspace_id}`)
  const accounts = new Map(rows.map(({ id, name }) => [id, name]))
  yield pageHead({ name: person.name ?? person.number, at: before })
  let last = ''
  for await (const messages of eachMessage(db, person, before)) {
    const place = `${messages[0]?.account_id} ${messages[0]?.chat_id}`
    yield pagePart(messages, { accounts, heading: place !== last })
    last = place
  }
  yield pageEnd
}

async function* filesJson(files: readonly StoredFile[]): AsyncGenerator<Piece, void> {
  yield '{"files":['
  for (const [at, { stored: _, ...file }] of files.entries())
    yield `${at === 0 ? '' : ','}\n${JSON.stringify(file)}`
  yield '\n]}\n'
}
