/** Commands at the terminal refuse as routes do: their functions could answer over HTTP unchanged. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { z } from 'zod'
import { createAccount, listAccounts, setAccountEnabled } from '../src/capabilities/accounts/accounts.ts'
import {
  addOption,
  type ColumnType,
  createColumn,
  deleteColumn,
  deleteOption,
  updateColumn,
  updateOption,
} from '../src/capabilities/columns/columns.ts'
import { setAllowed, setGates } from '../src/capabilities/gates/gates.ts'
import { listKeys, liveKeysMax, revokeKey } from '../src/capabilities/keys/keys.ts'
import { closeOperation, listLedger } from '../src/capabilities/operations/operations.ts'
import { createStage, deleteStage, updateStage } from '../src/capabilities/pipeline/pipeline.ts'
import {
  addSuppression,
  importSuppressions,
  removeSuppression,
} from '../src/capabilities/suppressions/suppressions.ts'
import { createUser, makeSetupLink } from '../src/capabilities/users/users.ts'
import { createWorkspace, updateWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import { sentenceOf } from '../src/cli/hints.ts'
import { sql } from '../src/db/sql.ts'
import { ApiError, type ErrorCode } from '../src/lib/errors.ts'
import { newId } from '../src/lib/ids.ts'
import { makeOpenApi } from '../src/openapi/openapi.ts'
import { ok, type Route, route } from '../src/route.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

let service: Service
let own: Tenant
let other: Tenant
/** A workspace with the maximum of everything. */
let full: Tenant
let text_column: string
let select_column: string
let queued: string

const absent = '0199a1f0-0000-7000-8000-000000000001'

const workspace = (fields: object) => createWorkspace(service.app, 'system', fields)
const rename = (id: string, fields: object) => updateWorkspace(service.app, 'system', { id, ...fields })
const user = (email: string, workspace_id = own.workspace_id) =>
  createUser(service.app, 'system', { email, workspace_id })
const key = (fields: object) => service.key({ ...own, ...fields })
const account = (fields: object) =>
  createAccount(service.app, 'system', { ...own, platform: 'sandbox', name: 'Sales', ...fields })
const stage = (fields: object) =>
  createStage(service.app, 'system', { ...own, key: 'won', label: 'Won', ...fields })
const restage = (wanted: string, fields: object) =>
  updateStage(service.app, 'system', { ...own, key: wanted, ...fields })
const unstage = (wanted: string) => deleteStage(service.app, 'system', { ...own, key: wanted })
const column = (fields: object) =>
  createColumn(service.app, 'system', { ...own, name: 'Plan', type: 'select', ...fields })
const recolumn = (id: string, fields: object) =>
  updateColumn(service.app, 'system', { ...own, id, ...fields })
const option = (value: string, fields: object = {}) =>
  addOption(service.app, 'system', { ...own, column_id: select_column, value, ...fields })
const reoption = (value: string, fields: object) =>
  updateOption(service.app, 'system', { ...own, column_id: select_column, value, ...fields })
const unoption = (value: string, column_id = select_column) =>
  deleteOption(service.app, 'system', { ...own, column_id, value })
const suppress = (given: object) => addSuppression(service.app, 'system', { ...own, ...given })
const importText = (text: string) =>
  importSuppressions(service.app, 'system', { ...own, file: 'list.csv', bytes: () => [Buffer.from(text)] })
const close = (id: string) => closeOperation(service.app, 'system', { id, closed_as: 'sent' })

type Case = readonly [title: string, code: ErrorCode, act: () => Promise<unknown>]

const cases: readonly Case[] = [
  ['a workspace without a name', 'invalid_request', () => workspace({ name: ' ' })],
  ['a workspace in no zone', 'invalid_request', () => workspace({ name: 'A', timezone: 'Mars/Olympus' })],
  ['renaming no workspace', 'not_found', () => rename(absent, { name: 'A' })],
  ['a user without an address', 'invalid_request', () => user('nobody')],
  ['a user of no workspace', 'not_found', () => user('ana@acme.example', 'x')],
  ['a user twice', 'conflict', () => user(`${own.workspace_id}@acme.example`)],
  ['a setup link for an unknown user', 'not_found', () => makeSetupLink(service.app, 'system', absent)],
  ['a key without a name', 'invalid_request', () => key({ name: '' })],
  ['a key without scopes', 'invalid_request', () => key({ scopes: [] })],
  ['a key with a scope of its own', 'invalid_request', () => key({ scopes: ['admin'] })],
  ['a key of no workspace', 'not_found', () => key({ workspace_id: absent })],
  ['a key for an unknown user', 'not_found', () => key({ user_id: absent })],
  ['a key of a stranger', 'conflict', () => key({ user_id: other.user_id })],
  ['a key too many', 'conflict', () => service.key(full)],
  ['revoking no key', 'not_found', () => revokeKey(service.app, 'system', 'x')],
  ['the keys of no workspace', 'not_found', () => listKeys(service.app.db, absent)],
  ['an account without a name', 'invalid_request', () => account({ name: 'x'.repeat(201) })],
  ['an account of no workspace', 'not_found', () => account({ workspace_id: 'x' })],
  ['the accounts of no workspace', 'not_found', () => listAccounts(service.app.db, 'x')],
  [
    'disabling no account',
    'not_found',
    () => setAccountEnabled(service.app, 'system', { id: 'acc_0', enabled: false }),
  ],
  [
    'a gate that is none',
    'invalid_request',
    () => setGates(service.app, 'system', { names: ['x'], enabled: true }),
  ],
  ...(['campaign_user', 'campaign_workspace'] as const).map(
    (list): Case => [
      `an unknown id on the list ${list}`,
      'not_found',
      () => setAllowed(service.app, 'system', { list, id: absent, allowed: true }),
    ],
  ),
  ['a stage with a key in capitals', 'invalid_request', () => stage({ key: 'Won' })],
  ['a stage without a label', 'invalid_request', () => stage({ key: 'c', label: '' })],
  ['a stage twice', 'conflict', () => stage({ key: 'new' })],
  ['a stage too many', 'conflict', () => stage({ ...full, key: 'c' })],
  ['relabelling no stage', 'not_found', () => restage('zzz', { label: 'Z' })],
  ['a blank label', 'invalid_request', () => restage('new', { label: ' ' })],
  ['hiding the first stage', 'conflict', () => restage('new', { hidden: true })],
  ['deleting the first stage', 'conflict', () => unstage('new')],
  ['deleting no stage', 'not_found', () => unstage('zzz')],
  ['a column without a name', 'invalid_request', () => column({ name: '' })],
  ['a column of no type', 'invalid_request', () => column({ type: 'blob' as ColumnType })],
  ['options of a text', 'invalid_request', () => column({ type: 'text', options: [{ value: 'a' }] })],
  ['an option twice', 'invalid_request', () => column({ options: [{ value: 'a' }, { value: 'a' }] })],
  [
    'a column with options too many',
    'invalid_request',
    () => column({ options: Array.from({ length: 201 }, (_, at) => ({ value: String(at) })) }),
  ],
  ['a column too many', 'conflict', () => column(full)],
  ['renaming no column', 'column_not_found', () => recolumn(absent, { name: 'A' })],
  ['a blank name for a column', 'invalid_request', () => recolumn(select_column, { name: '' })],
  [
    'deleting no column',
    'column_not_found',
    () => deleteColumn(service.app, 'system', { ...own, id: absent }),
  ],
  ['a blank option', 'invalid_request', () => option('')],
  ['an option in no colour', 'invalid_request', () => option('b', { color: 'url(x)' })],
  ['an option that is there', 'conflict', () => option('a')],
  ['an option of no column', 'column_not_found', () => option('b', { column_id: 'x' })],
  ['an option of a text column', 'conflict', () => option('b', { column_id: text_column })],
  ['renaming no option', 'not_found', () => reoption('zzz', { name: 'y' })],
  ['renaming an option to another', 'conflict', () => reoption('a', { name: 'z' })],
  ['deleting no option', 'not_found', () => unoption('zzz')],
  ['deleting an option of no column', 'column_not_found', () => unoption('a', absent)],
  ['suppressing without an identity', 'invalid_request', () => suppress({})],
  [
    'suppressing two at once',
    'invalid_request',
    () => suppress({ username: 'ada_l', phone: '491701234567' }),
  ],
  ['suppressing no number', 'invalid_request', () => suppress({ phone: 'call me' })],
  [
    'removing a suppression without an identity',
    'invalid_request',
    () => removeSuppression(service.app, 'system', { ...own }),
  ],
  ['importing no table', 'invalid_request', () => importText('ada\n')],
  ['importing half a table', 'invalid_request', () => importText('username\n"never ends')],
  [
    'the ledger of no workspace',
    'not_found',
    () => listLedger(service.app.db, { workspace_id: 'x', ambiguous: false }),
  ],
  ['closing what is no operation', 'not_found', () => close('x')],
  ['closing no operation', 'not_found', () => close(absent)],
  ['closing an operation that is known', 'conflict', () => close(queued)],
]

/** Any of them as an operation over HTTP. */
const probe: Route = route({
  name: 'probe_operator',
  method: 'GET',
  path: '/probe/operator',
  summary: 'Does what an operator does',
  scopes: ['read'],
  effect: 'read',
  query: z.object({ title: z.string() }),
  response: z.object({}),
  example: { response: {} },
  handle: async (_app, { query }) => {
    const [, , act] = cases.find(([title]) => title === query.title) ?? []
    return ok(await act?.())
  },
})

beforeAll(async () => {
  service = await openService({ routes: [probe] })
  own = await service.tenant('Own')
  other = await service.tenant('Other')
  full = await service.tenant('Full')
  for (let keys = 1; keys < liveKeysMax; keys++) await service.key(full)
  for (let stages = 1; stages < 100; stages++) await stage({ ...full, key: `s${stages}` })
  for (let columns = 0; columns < 100; columns++) await column(full)
  text_column = (await column({ type: 'text' })).id
  select_column = (await column({ options: [{ value: 'a' }, { value: 'z' }] })).id
  queued = newId()
  const account_id = await service.account(own.workspace_id)
  await service.app.db.run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id)
    values (${queued}, ${own.workspace_id}, 'send_message', 'platform', ${Buffer.alloc(32)}, 'queued', ${account_id})`)
})
afterAll(() => service.close())

describe.each(cases)('%s', (title, code, act) => {
  test(`is refused as ${code}, and over HTTP with the same sentence`, async () => {
    const error = await act().catch((thrown: unknown) => thrown)
    if (!(error instanceof ApiError)) throw new Error(`It is no ApiError: ${error}`)
    expect(error.code).toBe(code)
    expect(error.status).toBeGreaterThanOrEqual(400)
    expect(error.status).toBeLessThan(500)
    expect(error.message).toMatch(/^\S.*\.$/)
    expect(error.message).not.toMatch(/`|parley| --/)
    const answer = await service.get(`/probe/operator?title=${encodeURIComponent(title)}`, own)
    expect([answer.status, answer.body]).toEqual([error.status, { error: error.message, code }])
  })

  test('has its hint at the terminal only where an unknown thing was named', async () => {
    const error = (await act().catch((thrown: unknown) => thrown)) as ApiError
    const unnamed = error.message.startsWith('Give exactly one')
    const hint =
      error.status === 404
        ? /^ `parley ((workspace|user|operation) list|(key|account|stage|column) list --workspace ID)` lists the (workspaces|users|operations|keys|accounts|stages|columns and options)\.$/
        : unnamed
          ? /^ The options are --platform-id, --username and --phone\.$/
          : /^$/
    expect(sentenceOf(error).slice(error.message.length)).toMatch(hint)
  })
})

test('the document names the code `conflict` once an operation lists it', () => {
  const codesOf = (listed: readonly Route[]) => {
    const { components } = makeOpenApi(listed) as {
      components: { schemas: { ApiError: { properties: { code: { enum: string[] } } } } }
    }
    return components.schemas.ApiError.properties.code.enum
  }
  expect(codesOf([probe])).not.toContain('conflict')
  expect(codesOf([{ ...probe, errors: ['conflict'] }])).toContain('conflict')
})
