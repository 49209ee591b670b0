/**
 * The same file read at three places, by one reader: a campaign made at the terminal, the editor's list at the dashboard, and an
 * import into the suppression list find the same people, and skip the same lines.
 */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { sql } from '../src/db/sql.ts'
import { readContactList } from '../src/rules/contact-table.ts'
import { decodeTable } from '../src/rules/csv.ts'
import { runJson, run as runVerb } from './harness/operator.ts'
import { askDashboard, signIn } from './harness/person.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

let service: Service
let own: Tenant
let account_id: string
let home: string
beforeAll(async () => {
  service = await openService()
  await service.open('extended')
  own = await service.tenant('Own')
  await service.allow(own)
  account_id = await service.account(own.workspace_id)
  home = await mkdtemp(join(tmpdir(), 'parley-spreadsheets-'))
})
afterAll(async () => {
  await service.close()
  await rm(home, { recursive: true, force: true })
})

interface Found {
  /** Their normal forms, sorted. */
  readonly people: readonly string[]
  readonly skipped: readonly { readonly line: number; readonly reason: string }[]
}

let files = 0
async function atTheTerminal(text: string): Promise<Found> {
  const file = join(home, `${++files}.csv`)
  await writeFile(file, text)
  const owner = ['--workspace', own.workspace_id, '--user', own.user_id, '--account', account_id]
  const report = await runJson<{ campaign_id: string; skipped: Found['skipped'] }>(service, [
    ...['campaign', 'create', ...owner, '--text', 'Hello', '--contacts', file],
  ])
  return { people: await recipientsOf(report.campaign_id), skipped: report.skipped }
}

async function atTheEditor(text: string): Promise<Found> {
  const { contacts, skipped } = readContactList(text)
  const answer = await service.post('/campaigns', {
    key: own.key,
    body: {
      message_text: 'Hello',
      account_id,
      contacts: contacts.map(({ identifier, name }) => ({ identifier, ...(name !== null && { name }) })),
    },
  })
  expect([answer.status, answer.body.error]).toEqual([201, undefined])
  return { people: await recipientsOf((answer.body.campaign as { id: string }).id), skipped }
}

async function recipientsOf(campaign_id: string): Promise<string[]> {
  const rows = await service.app.db.rows<{ contact: string }>(sql`
    select contact from campaign_recipients where campaign_id = ${campaign_id} order by contact`)
  return rows.map(({ contact }) => contact)
}

async function byTheImport(text: string): Promise<Found> {
  const { workspace_id, user_id } = await service.tenant('Listed')
  const cookie = await signIn(service, user_id)
  const path = `/w/${workspace_id}/suppressions/import?file_name=list.csv`
  const { status, body } = await askDashboard(service, 'POST', path, { cookie, body: text, headers: {} })
  expect([status, body.error]).toEqual([200, undefined])
  const rows = await service.app.db.rows<{ person: string }>(sql`
    select kind || ':' || value as person from suppressions where workspace_id = ${workspace_id} order by 1`)
  return { people: rows.map(({ person }) => person), skipped: body.skipped as Found['skipped'] }
}

const readers = { 'the terminal': atTheTerminal, 'the editor': atTheEditor, 'the import': byTheImport }

const scientific = (line: number, number: string) => ({
  line,
  reason: expect.stringContaining(`"${number}" is scientific notation, in which a spreadsheet drops digits`),
})

const tables: readonly { readonly what: string; readonly text: string; readonly found: Found }[] = [
  {
    what: 'username,name',
    text: 'username,name\n@Ines_K,Ines\nt.me/jonas_b,Jonas\n',
    found: { people: ['username:ines_k', 'username:jonas_b'], skipped: [] },
  },
  {
    what: 'phone;name, with digits alone',
    text: '\ufeffPhone;Name\r\n491701234567;Ines\r\n+49 (0)170 1234568;"Jonas; Berg"\r\n0049 170 1234569;Kim, Li\r\n',
    found: { people: ['phone:491701234567', 'phone:491701234568', 'phone:491701234569'], skipped: [] },
  },
  {
    what: 'platform_id,…',
    text: 'platform_id,note,name\n1001,"a, b",Ines\n1002,,\n',
    found: { people: ['platform_id:1001', 'platform_id:1002'], skipped: [] },
  },
  {
    what: 'the name first, separated by tabs',
    text: 'Name\tUsername\nInes, K.\tines_k\nJonas; B.\tjonas_b\n',
    found: { people: ['username:ines_k', 'username:jonas_b'], skipped: [] },
  },
  {
    what: 'scientific notation with a comma',
    text: 'phone;name\n4,91701E+11;Ines\n491701234567;Jonas\n',
    found: { people: ['phone:491701234567'], skipped: [scientific(2, '4,91701E+11')] },
  },
  {
    what: 'scientific notation with a point',
    text: 'platform_id,name\n4.91701E+11,Ines\n1001,Jonas\n5e3,Kim\n',
    found: { people: ['platform_id:1001'], skipped: [scientific(2, '4.91701E+11'), scientific(4, '5e3')] },
  },
  {
    what: 'a number that a separator cuts',
    text: 'platform_id,name\n4,91701E+11;Ines\n1001,Jonas\n',
    found: { people: ['platform_id:1001'], skipped: [scientific(2, '4,91701E+11')] },
  },
  {
    what: 'one column',
    text: 'username\nines_k\n\njonas_b\nines_k\nno\n9223372036854775808\n',
    found: {
      people: ['username:ines_k', 'username:jonas_b'],
      skipped: [
        { line: 5, reason: 'Duplicate of line 2.' },
        { line: 6, reason: expect.stringContaining('"no" is not a username') },
        { line: 7, reason: expect.stringContaining('"9223372036854775808" is not a username') },
      ],
    },
  },
]

describe.each(tables)('a file with $what', ({ text, found }) => {
  test.each(Object.entries(readers))('gives the same people at %s', async (_, read) => {
    expect(await read(text)).toEqual(found)
  })
})

test('a first line that names columns is nobody in a pasted list, where one may be missing', () => {
  for (const first of ['username,name', 'phone;name', 'platform_id,name,note', 'NAME\tUserName']) {
    expect(readContactList(`${first}\n`), first).toMatchObject({ contacts: [], skipped: [] })
  }
  // Without a first line, a semicolon separates in preference to the comma of a number.
  expect(readContactList('4,91701E+11;Name')).toMatchObject({
    contacts: [],
    skipped: [scientific(1, '4,91701E+11')],
  })
})

test('bytes that are not UTF-8 are refused with their line and what to do, at all three', async () => {
  const bytes = Buffer.from('username,name\nines_k,In\xeas\n', 'latin1')
  const sentence = 'Line 2 is not UTF-8. In the spreadsheet, save the file as “CSV UTF-8”, and use that file.'
  expect(decodeTable(new Uint8Array(bytes))).toEqual({ sentence })
  const file = join(home, 'latin1.csv')
  await writeFile(file, bytes)
  const campaign = ['campaign', 'create', '--workspace', own.workspace_id, '--user', own.user_id]
  const listed = ['suppress', 'import', file, '--workspace', own.workspace_id]
  for (const verb of [[...campaign, '--account', account_id, '--text', 'x', '--contacts', file], listed]) {
    const { code, stderr } = await runVerb(service, verb)
    expect([code, stderr]).toEqual([1, expect.stringContaining(sentence)])
  }
})
