/**
 * Every refusal that the document names, provoked: each code that is an operation's own at every operation that documents it, and the
 * general ones once for each kind of route. A documented pair without a provocation fails, so what cannot happen is not documented.
 * `other-codes.test.ts` has the codes that the document does not name.
 */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { setDispatch } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { setWorkspaceEnabled } from '../src/capabilities/workspaces/workspaces.ts'
import { type Gate, scopes } from '../src/contract.ts'
import { type Sql, sql, type Tx } from '../src/db/sql.ts'
import { fingerprintOf } from '../src/ledger/idempotency.ts'
import { newId } from '../src/lib/ids.ts'
import { routes } from '../src/lists/routes.ts'
import { errorsOf } from '../src/openapi/route-errors.ts'
import type { NewFault } from '../src/platform/sandbox/faults.ts'
import { writeMessage } from '../src/platform/sandbox/person-acts.ts'
import type { Route } from '../src/route.ts'
import { type ExampleRequest, type Examples, openExamples } from './harness/examples.ts'
import { hangMs, until } from './harness/process.ts'
import { type Answer, type Ask, openService, type Service, type Tenant } from './harness/service.ts'

let examples: Examples
let service: Service
let own: Tenant
let limited: Service
/** Gives up on an unfinished request after half a second. */
let impatient: Service
/** Keys that are refused whatever they ask for. */
const keys = { disabled: '', member: '', limited: '', impatient: '' }

beforeAll(async () => {
  examples = await openExamples()
  ;({ service, own } = examples)
  const disabled = await service.tenant('Disabled')
  await setWorkspaceEnabled(service.app, 'system', { id: disabled.workspace_id, enabled: false })
  keys.disabled = disabled.key
  const { workspace_id } = own
  const email = 'member@acme.example'
  const user = await createUser(service.app, 'system', { email, workspace_id, role: 'member' })
  const made = await createKey(service.app, `user:${user.id}`, {
    workspace_id,
    user_id: user.id,
    name: 'member',
    scopes,
  })
  keys.member = made.key
  limited = await openService({ env: { PARLEY_RATE_LIMIT: '1' } })
  keys.limited = (await limited.tenant()).key
  impatient = await openService({ headersMs: 500, bodyMs: 500 })
  keys.impatient = (await impatient.tenant()).key
})
afterAll(async () => {
  await limited.close()
  await impatient.close()
  await examples.close()
})
afterEach(async () => {
  examples.workplace.sandbox.world.clearFaults()
  await service.app.db.run(
    sql`update keys set revoked_at = now() where revoked_at is null and name = 'brief'`,
  )
})

type Provocation = (route: Route) => Promise<Answer>

const send = (asked: ExampleRequest, { headers, ...overrides }: Ask = {}, at: Service = service) =>
  at.call(asked.method, asked.path, {
    ...asked.ask,
    ...overrides,
    headers: { ...asked.ask.headers, ...headers },
  })
const ask = async (route: Route, overrides: Ask = {}) => send(await examples.requestOf(route), overrides)

/** The example with other values in its body, or in its query if it has none. */
async function askWith(route: Route, values: Readonly<Record<string, unknown>>): Promise<Answer> {
  const asked = await examples.requestOf(route)
  const { body } = asked.ask
  const isBody = route.body !== undefined && !('cursor' in values && !hasProperty(route, 'cursor'))
  if (isBody) return send(asked, { body: without(Object.assign({}, body, values)) })
  const url = new URL(asked.path, 'http://x')
  for (const [name, value] of Object.entries(values)) {
    if (value === undefined) url.searchParams.delete(name)
    else url.searchParams.set(name, String(value))
  }
  return send({ ...asked, path: `${url.pathname}${url.search}` })
}

const without = (body: object) =>
  Object.fromEntries(Object.entries(body).filter(([, value]) => value !== undefined))
const hasProperty = ({ body }: Route, name: string) =>
  name in ((body as { shape?: object } | undefined)?.shape ?? {})

/** The example at another address. */
async function askAt(route: Route, from: RegExp | string, to: string): Promise<Answer> {
  const asked = await examples.requestOf(route)
  return send({ ...asked, path: asked.path.replace(from, to) })
}

async function askRecipients(route: Route, recipient: object, more: object = {}): Promise<Answer> {
  const asked = await examples.requestOf(route)
  const recipients = [{ account_id: examples.account_id, chat_id: examples.chat_id, ...recipient }]
  return send(asked, { body: { message_text: 'Hello', recipients, ...more } })
}

const askContacts = (route: Route, identifier: string, more: object = {}) =>
  ask(route, {
    body: { message_text: 'Hello', account_id: examples.account_id, contacts: [{ identifier }], ...more },
  })

async function whileShut<T>(gates: readonly Gate[], work: () => Promise<T>): Promise<T> {
  await service.shut(...gates)
  try {
    return await work()
  } finally {
    await service.open(...gates)
  }
}

/** Something is missing or different in the database while the work runs. */
async function during<T>(change: Sql, back: Sql, work: () => Promise<T>): Promise<T> {
  await service.app.db.run(change)
  await service.settle()
  try {
    return await work()
  } finally {
    await service.app.db.run(back)
    await service.settle()
  }
}

const fault = (on: NewFault['on'], kind: NewFault['fault'], more: Partial<NewFault> = {}) =>
  examples.workplace.fault({ on, fault: kind, times: 1, account_id: examples.account_id, ...more })

const accountAway: Provocation = (route) =>
  route.name === 'create_campaign' || route.name === 'preview_campaign'
    ? askRecipients(route, { account_id: 'acc_00000000000000000000' })
    : askWith(route, { account_id: 'acc_00000000000000000000' })

/** A key of another request with the same name, in the given state. */
async function storeKey(
  route: Route,
  asked: ExampleRequest,
  row: { state: string; same: boolean },
): Promise<void> {
  const kind = route.effect === 'platform' ? route.operation.kind : route.name
  const params = paramsOf(route, asked)
  const fingerprint = row.same
    ? await fingerprintOf(route, { params, body: asked.ask.body })
    : Buffer.alloc(32)
  const key = String(asked.ask.headers?.['idempotency-key'])
  await service.app.db.run(sql`
    insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state, account_id, payload, reply_status)
    values (${newId()}, ${own.workspace_id}, ${kind}, ${route.effect === 'platform' ? 'platform' : 'local'}, ${key},
      ${fingerprint}, ${row.state}, ${route.effect === 'platform' ? examples.account_id : null}, '{}',
      ${row.state === 'completed' ? 200 : null})`)
}

function paramsOf(route: Route, { path }: ExampleRequest): Record<string, string> {
  const names = [...route.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name ?? '')
  const pattern = new RegExp(`^${route.path.replaceAll(/\{\w+\}/g, '([^/?]+)')}`)
  const values = pattern.exec(path)?.slice(1) ?? []
  return Object.fromEntries(names.map((name, at) => [name, decodeURIComponent(values[at] ?? '')]))
}

async function afterKey(route: Route, row: { state: string; same: boolean }): Promise<Answer> {
  const asked = await examples.requestOf(route)
  await storeKey(route, asked, row)
  return send(asked)
}

/** Several at once, because each waits as long as a transaction waits for a lock; and each takes two connections of ten. */
const besideAtOnce = 3
let beside: Promise<Map<string, Answer>> | undefined
async function besideKey(route: Route): Promise<Answer> {
  if (route.effect === 'platform') return afterKey(route, { state: 'submitting', same: true })
  const local = routes.filter(({ effect, idempotency }) => effect === 'local' && idempotency)
  beside ??= besideEach(local)
  return (await beside).get(route.name) as Answer
}

async function besideEach(local: readonly Route[]): Promise<Map<string, Answer>> {
  const answers = new Map<string, Answer>()
  for (let at = 0; at < local.length; at += besideAtOnce) {
    await Promise.all(
      local
        .slice(at, at + besideAtOnce)
        .map(async (each) => answers.set(each.name, await besideUncommitted(each))),
    )
  }
  return answers
}

/** Another request with this key has not committed yet. */
async function besideUncommitted(route: Route): Promise<Answer> {
  const asked = await examples.requestOf(route)
  const key = String(asked.ask.headers?.['idempotency-key'])
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let claimed = () => {}
  const isClaimed = new Promise<void>((resolve) => {
    claimed = resolve
  })
  const other = service.app.db.transaction(async (tx: Tx) => {
    await tx.run(sql`
      insert into operations (id, workspace_id, kind, effect, idempotency_key, fingerprint, state)
      values (${newId()}, ${own.workspace_id}, ${route.name}, 'local', ${key}, ${Buffer.alloc(32)}, 'submitting')`)
    claimed()
    await held
  })
  await isClaimed
  try {
    return await send(asked)
  } finally {
    release()
    await other
  }
}

/** The server dies at the commit of a request's own transaction: of whatever the request writes. */
async function dyingAtCommit<T>(work: () => Promise<T>): Promise<T> {
  const tables = [
    'operations',
    'webhooks',
    'webhook_deliveries',
    'chats',
    'column_values',
    'events',
    'outbox',
  ]
  const { pool } = service.app.db
  await pool.query(`
    create or replace function die() returns trigger language plpgsql as
      $$ begin
        if current_setting('application_name') <> 'survivor' then perform pg_terminate_backend(pg_backend_pid()); end if;
        return null;
      end $$`)
  for (const table of tables) {
    await pool.query(`
      create constraint trigger die after insert or update or delete on ${table} deferrable initially deferred
        for each row execute function die()`)
  }
  try {
    return await work()
  } finally {
    for (const table of tables) await pool.query(`drop trigger if exists die on ${table}`)
  }
}

const unknownId = '019a7e70-0000-7000-8000-00000000dead'

/** Those that every operation documents, and those that follow from its needs. */
const common: Readonly<Record<string, Provocation>> = {
  '400 invalid_request': (route) => askAt(route, '?', '?surprise=1&'),
  '400 invalid_text': (route) => askAt(route, '?', '?surprise=%00&'),
  '401 invalid_key': (route) => ask(route, { key: 'svc_live_wrong' }),
  '403 workspace_disabled': (route) => ask(route, { key: keys.disabled }),
  '403 missing_scope': async (route) => {
    const other = scopes.filter((scope) => !route.scopes.includes(scope))
    const { key } = await service.key({ ...own, name: 'brief', scopes: other })
    return ask(route, { key })
  },
  '403 missing_role': (route) => ask(route, { key: keys.member }),
  '403 not_allowlisted': async (route) => {
    await service.allow(own, false)
    try {
      return await ask(route)
    } finally {
      await service.allow(own)
    }
  },
  '403 account_unavailable': accountAway,
  '429 rate_limited': async (route) => {
    const asked = await examples.requestOf(route)
    await limited.get('/me', { key: keys.limited })
    return send(asked, { key: keys.limited }, limited)
  },
  '503 rest_disabled': (route) => whileShut(['rest'], () => ask(route)),
  '503 feature_disabled': (route) => whileShut([...(route.gates ?? [])], () => ask(route)),
  '400 account_scope_required': (route) =>
    whileShut(['extended'], () => askWith(route, { account_id: undefined })),
  '400 idempotency_key_required': async (route) => {
    const { method, path, ask: given } = await examples.requestOf(route)
    return service.call(method, path, { key: own.key, body: given.body })
  },
  '400 idempotency_collision': (route) => afterKey(route, { state: 'completed', same: false }),
  '409 idempotency_collision': (route) => afterKey(route, { state: 'completed', same: false }),
  '409 operation_in_progress': besideKey,
  '409 outcome_ambiguous': (route) => afterKey(route, { state: 'ambiguous', same: true }),
  '415 unsupported_media_type': (route) => ask(route, { headers: { 'content-type': 'text/plain' } }),
  '400 invalid_cursor': (route) => askWith(route, { cursor: 'forged' }),
  '404 campaign_not_found': (route) => askAt(route, /\/campaigns\/[^/?]+/, `/campaigns/${unknownId}`),
  '404 webhook_not_found': (route) => askAt(route, /\/webhooks\/[^/?]+/, `/webhooks/${unknownId}`),
  '503 session_unavailable': (route) => withoutSession(() => ask(route)),
  '429 flood_wait': (route) => flooded(() => ask(route)),
  '503 flood_wait': (route) => flooded(() => ask(route)),
  '503 provider_unavailable': async (route) => {
    await setDispatch(service.app, 'system', false)
    try {
      return await ask(route)
    } finally {
      await setDispatch(service.app, 'system', true)
    }
  },
  '503 suppression_unavailable': (route) =>
    during(
      sql`alter table suppressions rename to suppressions_away`,
      sql`alter table suppressions_away rename to suppressions`,
      () => ask(route),
    ),
}

/** The account is READY, and its session is not live. */
function withoutSession<T>(work: () => Promise<T>): Promise<T> {
  return during(
    sql`update account_hosts set observed_at = null, handed_over_at = null where account_id = ${examples.account_id}`,
    sql`update account_hosts set observed_at = real_now() where account_id = ${examples.account_id}`,
    work,
  )
}

/** The account's waits of every kind. */
function flooded<T>(work: () => Promise<T>): Promise<T> {
  const { account_id } = examples
  const until = sql`real_now() + interval '1 minute'`
  return during(
    sql`update account_hosts set flood_until = ${until}, lookup_flood_until = ${until}, reading_flood_until = ${until}
      where account_id = ${account_id}`,
    sql`update account_hosts set flood_until = null, lookup_flood_until = null, reading_flood_until = null
      where account_id = ${account_id}`,
    work,
  )
}

const noChat = 'platform:chat:987654321'
/** What only the platform has, of a chat whose beginning is not stored. */
async function older(route: Route): Promise<Answer> {
  const chat_id = await makeChat('4646')
  const { method, path, ask: given } = await examples.requestOf(route)
  const before = path.replace(encodeURIComponent(examples.chat_id), chat_id)
  return service.call(method, `${before}&before=2026-11-01T08:00:30Z`, given)
}

/** The platform refuses the message for good. */
const refuses =
  (error: string): Provocation =>
  async (route) => {
    fault('send', 'refuse', { error })
    return route.name === 'start_chat' ? askWith(route, { text: 'Hello' }) : ask(route)
  }

/** The answer is lost, and no reconnected session shows what happened. */
const loses =
  (on: NewFault['on']): Provocation =>
  async (route) => {
    fault('connect', 'unavailable', { times: 0 })
    fault(on, 'drop_after')
    const answer = await ask(route)
    examples.workplace.sandbox.world.clearFaults()
    await until('the account is live again', hangMs, async () => {
      const read = routes.find(({ name }) => name === 'set_read_state') as Route
      return (await ask(read)).status === 200 || undefined
    })
    return answer
  }

let people = 0
function addPerson(more: object = {}): { person_id: number; username: string } {
  const username = `person_no_${++people}`
  const { person_id } = examples.workplace.sandbox.world.addPerson({ name: 'Mara', username, ...more })
  return { person_id, username }
}

async function suppress(person_id: number | string): Promise<void> {
  await service.app.db.run(sql`
    insert into suppressions (workspace_id, kind, value, source)
    values (${own.workspace_id}, 'platform_id', ${String(person_id)}, 'operator') on conflict do nothing`)
}

/** A chat with this person in our account, and in a second account if wanted. */
async function makeChat(id: `${number}`, account_id = examples.account_id): Promise<string> {
  return service.chat({ account_id, workspace_id: own.workspace_id, id })
}

const completed = [
  sql`status = 'queued'`,
  sql`status = 'sending', started_at = now()`,
  sql`status = 'completed', completed_at = now()`,
]

/** A campaign of ours after these changes. */
async function askControl(route: Route, ...changes: readonly Sql[]): Promise<Answer> {
  examples.campaign_id = await examples.makeCampaign()
  const asked = await examples.requestOf(route)
  for (const change of changes) {
    await service.app.db.run(sql`update campaigns set ${change} where id = ${examples.campaign_id}`)
  }
  try {
    return await send(asked)
  } finally {
    examples.campaign_id = await examples.makeCampaign()
  }
}

async function askSteps(route: Route): Promise<Answer> {
  const { id } = (
    await service.post('/campaigns', {
      key: own.key,
      headers: { 'idempotency-key': randomUUID() },
      body: {
        message_text: 'Hello',
        recipients: [{ account_id: examples.account_id, chat_id: examples.chat_id }],
        scheduled_at: new Date(Date.now() + 86_400_000).toISOString(),
      },
    })
  ).body.campaign as { id: string }
  return askAt(route, /\/campaigns\/[^/?]+/, `/campaigns/${id}`)
}

function sendFile(bytes: number, type: string): Promise<Answer> {
  const form = new FormData()
  form.set('account_id', examples.account_id)
  form.set('chat_id', examples.chat_id)
  form.set('attachments', new Blob([Buffer.alloc(bytes)], { type }), 'file.bin')
  return upload(form)
}

async function upload(form: FormData): Promise<Answer> {
  const response = await fetch(`${service.url}/api/v1/messages`, {
    method: 'POST',
    headers: { authorization: `Bearer ${own.key}`, 'idempotency-key': randomUUID() },
    body: form,
  })
  const body = (await response.json()) as Answer['body']
  return { status: response.status, headers: response.headers, body }
}

const twoBranches = [
  { branch: 'seen', wait_hours: 1, variants: ['A'] },
  { branch: 'unseen', wait_hours: 1, variants: ['B'] },
]

const campaigns: Readonly<Record<string, Provocation>> = {
  '400 branching_disabled': (route) =>
    whileShut(['branching'], () => askRecipients(route, {}, { branching_enabled: true, steps: twoBranches })),
  '400 unresolved_personalization': (route) => askRecipients(route, {}, { message_text: 'Hello [[nme]]' }),
  '400 invalid_username': (route) => askContacts(route, '@with space'),
  '400 unsupported_identifier': (route) => askContacts(route, 'https://example.com/noa'),
  '409 account_not_ready': async (route) => {
    const account_id = await service.account(own.workspace_id, 'NEEDS_LOGIN')
    const chat_id = await makeChat('4343', account_id)
    return askRecipients(route, { account_id, chat_id })
  },
}

/** What only some operations have, or have in their own way. */
const ofOperation: Readonly<Record<string, Readonly<Record<string, Provocation>>>> = {
  list_chats: {
    '400 invalid_stage': (route) => askWith(route, { stage_key: 'no_such_stage' }),
    '404 column_not_found': (route) => askWith(route, { column_id: unknownId, column_value: 'x' }),
    '503 feature_disabled': (route) => whileShut(['pipeline'], () => askWith(route, { stage_key: 'new' })),
  },
  get_chat: { '404 chat_not_found': (route) => askAt(route, encodeURIComponent(examples.chat_id), noChat) },
  list_messages: {
    '404 chat_not_found': (route) => askAt(route, encodeURIComponent(examples.chat_id), noChat),
    '503 session_unavailable': (route) => withoutSession(() => older(route)),
    '503 flood_wait': (route) => flooded(() => older(route)),
  },
  start_chat: {
    '400 invalid_username': (route) => askWith(route, { identifier: '@with space' }),
    '400 unsupported_identifier': (route) => askWith(route, { identifier: 'https://example.com/noa' }),
    '404 username_not_found': (route) => askWith(route, { identifier: '@nobody_at_all' }),
    '409 identity_suppressed': async (route) => {
      const { person_id, username } = addPerson()
      await suppress(person_id)
      return askWith(route, { identifier: username })
    },
    '409 identity_ineligible': async (route) => {
      const { username } = addPerson({ kind: 'bot' })
      return askWith(route, { identifier: username })
    },
    '403 chat_unavailable': async (route) => {
      fault('start', 'refuse', { error: 'chat_unavailable' })
      return askWith(route, { identifier: addPerson().username })
    },
    '403 blocked_by_person': refuses('blocked_by_person'),
    '403 privacy_restricted': refuses('privacy_restricted'),
    '403 cold_stopped': refuses('cold_stopped'),
    '400 message_refused': refuses('message_invalid'),
    '503 outcome_ambiguous': loses('start'),
  },
  set_read_state: {
    '403 chat_unavailable': (route) => askAt(route, encodeURIComponent(examples.chat_id), noChat),
    '503 outcome_ambiguous': loses('read_state'),
  },
  send_message: {
    '403 chat_unavailable': (route) => askWith(route, { chat_id: noChat }),
    '403 blocked_by_person': refuses('blocked_by_person'),
    '403 privacy_restricted': refuses('privacy_restricted'),
    '403 cold_stopped': refuses('cold_stopped'),
    '400 message_refused': refuses('message_invalid'),
    '400 unsupported_attachment': () => sendFile(0, 'text/plain'),
    '413 attachment_too_large': () => sendFile(26_214_401, 'text/plain'),
    '503 outcome_ambiguous': loses('send'),
  },
  download_attachment: {
    '404 chat_not_found': (route) => askAt(route, encodeURIComponent(examples.chat_id), noChat),
    '404 not_found': (route) => askAt(route, /\/messages\/\d+/, '/messages/987654'),
    '416 range_not_satisfiable': (route) => ask(route, { headers: { range: 'bytes=9-' } }),
    '413 attachment_too_large': (route) => askFile(route, 26_214_401),
    '503 session_unavailable': async (route) => {
      const path = await filePath(9)
      const { ask: given } = await examples.requestOf(route)
      return withoutSession(() => service.call('GET', path, given))
    },
    '503 flood_wait': async (route) => {
      const path = await filePath(9)
      const { ask: given } = await examples.requestOf(route)
      return flooded(() => service.call('GET', path, given))
    },
  },
  search_messages: {
    '400 account_scope_required': async (route) => {
      const second = await service.account(own.workspace_id)
      const chat_id = await makeChat('4242')
      await makeChat('4242', second)
      return askWith(route, { account_id: undefined, chat_id })
    },
  },
  move_chat: {
    '400 invalid_stage': (route) => askWith(route, { stage_key: 'no_such_stage' }),
    '404 chat_not_found': (route) => askWith(route, { chat_id: noChat }),
  },
  set_column: {
    '400 invalid_column_value': (route) => askWith(route, { value: ['No such option'] }),
    '404 chat_not_found': (route) => askWith(route, { chat_id: noChat }),
    '404 column_not_found': (route) => askWith(route, { column_id: unknownId }),
  },
  create_campaign: {
    ...campaigns,
    '404 chat_not_found': (route) => askRecipients(route, { chat_id: noChat }),
    '400 suppressed_recipient': async (route) => {
      const chat_id = await makeChat('4444')
      await suppress('4444')
      return askRecipients(route, { chat_id })
    },
  },
  preview_campaign: {
    ...campaigns,
    '400 invalid_cursor': (route) => askAt(route, '?', '?cursor=forged&'),
    '403 account_unavailable': (route) =>
      askContacts(route, '@ines_garcia', { account_id: 'acc_00000000000000000000' }),
    '409 account_not_ready': async (route) =>
      askContacts(route, '@ines_garcia', {
        account_id: await service.account(own.workspace_id, 'NEEDS_LOGIN'),
      }),
  },
  pause_campaign: {
    '409 not_a_sequence': askSteps,
    '409 invalid_sequence_status': (route) => askControl(route, ...completed),
  },
  resume_campaign: {
    '409 not_a_sequence': askSteps,
    '409 campaign_not_paused': (route) => askControl(route, sql`status = 'scheduled', pause_reason = null`),
  },
  cancel_campaign: {
    '409 campaign_completed': (route) => askControl(route, ...completed),
  },
  create_broadcast: {
    '400 invalid_stage': (route) => askWith(route, { audience_ref: 'no_such_stage' }),
    '404 column_not_found': (route) =>
      askWith(route, { audience_type: 'column', audience_ref: unknownId, column_value: 'x' }),
    '400 unresolved_personalization': (route) => askWith(route, { message_text: 'Hello {{nme}}' }),
  },
  get_person: { '404 not_found': (route) => askAt(route, examples.person_id, unknownId) },
  export_person: { '404 not_found': (route) => askAt(route, examples.person_id, unknownId) },
  preview_erasure: { '404 not_found': (route) => askAt(route, /[0-9a-f-]{36}/, unknownId) },
  erase_person: {
    '404 not_found': (route) => askAt(route, /[0-9a-f-]{36}/, unknownId),
    '409 preview_outdated': (route) => askWith(route, { preview: 'a'.repeat(64) }),
    '409 erasure_in_progress': async (route) => {
      const asked = await examples.requestOf(route)
      const { account_id, erased_id } = examples
      // An erasure waits until the search has dropped words.
      const begun = sql`
        with forgetting as (
          insert into search_forgetting (account_id, workspace_id, due_at)
          values (${account_id}, ${own.workspace_id}, now() + interval '1 day')),
        stale as (
          insert into search_stale (account_id, sent_at, chat_id, id, listing, workspace_id)
          values (${account_id}, now(), 1, 1, 0, ${own.workspace_id}))
        insert into erasures (id, workspace_id, person_id, platform, number, actor, contact_allowed, tombstones, step)
        select gen_random_uuid(), workspace_id, id, platform, number, 'system', false, '{}', 'words' from people
        where id = ${erased_id}`
      const over = sql`
        with forgetting as (delete from search_forgetting where account_id = ${account_id}),
        stale as (delete from search_stale where account_id = ${account_id} and chat_id = 1)
        delete from erasures where person_id = ${erased_id}`
      return during(begun, over, () => send(asked))
    },
  },
  get_erasure: { '404 not_found': (route) => askAt(route, /[0-9a-f-]{36}/, unknownId) },
  get_broadcast: { '404 not_found': (route) => askAt(route, examples.broadcast_id, unknownId) },
  get_operation: { '404 not_found': (route) => askAt(route, examples.operation_id, unknownId) },
  create_webhook: {
    '409 webhook_limit_reached': async (route) => {
      const { workspace_id, key } = await service.tenant('Many')
      const asked = await examples.requestOf(route)
      for (let n = 0; n < 10; n++) {
        await service.post('/webhooks', { key, body: { url: `https://example.com/${workspace_id}/${n}` } })
      }
      return send(asked, { key })
    },
  },
  resend_failed_deliveries: {
    '503 outcome_ambiguous': async (route) => {
      const asked = await examples.requestOf(route)
      await service.app.db.run(sql`
        update webhook_deliveries set state = 'failed', due_at = null where id = ${examples.delivery_id}`)
      return dyingAtCommit(() => send(asked))
    },
  },
  get_webhook_delivery: {
    '404 not_found': (route) => askAt(route, /\/deliveries\/[^/?]+/, `/deliveries/${unknownId}`),
  },
  resend_webhook_delivery: {
    '404 not_found': (route) => askAt(route, /\/deliveries\/[^/?]+/, `/deliveries/${unknownId}`),
  },
}

/** The address of a received file that was not fetched yet. */
async function filePath(size: number): Promise<string> {
  const { world } = examples.workplace.sandbox
  const person_id = Number(examples.chat_id.split(':').at(-1))
  const file = { index: 0, kind: 'file', file_name: 'a', media_type: 'image/png', size, seed: size } as const
  const { account_id } = examples
  const id = String(writeMessage(world, { account_id, person_id, text: 'a file', file }))
  await until('the file is stored', hangMs, async () => {
    const messages = await examples.workplace.messages(account_id)
    return messages.some((message) => message.id === id) || undefined
  })
  return `/chats/${examples.chat_id}/messages/${id}/attachments/0?account_id=${account_id}`
}

async function askFile(route: Route, size: number): Promise<Answer> {
  const path = await filePath(size)
  const { ask: given } = await examples.requestOf(route)
  return service.call('GET', path, given)
}

/** Those that any request can get, whatever it asks for. */
const general = [
  '405 method_not_allowed',
  '408 request_timeout',
  '413 payload_too_large',
  '431 headers_too_large',
  '500 internal',
  '503 schema_unavailable',
  '503 store_unavailable',
]

const pairs = routes.flatMap((route) =>
  [...new Set(errorsOf(route).map(([code, status]) => `${status} ${code}`))]
    .filter((each) => !general.includes(each))
    .map((each) => [`${route.name}: ${each}`, route, each] as const),
)

const find = ({ name, effect }: Route, each: string): Provocation | undefined =>
  ofOperation[name]?.[each] ??
  (each === '503 outcome_ambiguous' && effect === 'local'
    ? async (route) => {
        const asked = await examples.requestOf(route)
        return dyingAtCommit(() => send(asked))
      }
    : common[each])

test('every documented refusal has a provocation, and every provocation is documented', () => {
  expect(pairs.length).toBeGreaterThan(400)
  expect(pairs.filter(([, route, each]) => !find(route, each)).map(([what]) => what)).toEqual([])
  const documented = new Set<string>(pairs.map(([what]) => what))
  const provoked = Object.entries(ofOperation).flatMap(([name, own]) =>
    Object.keys(own).map((each) => `${name}: ${each}`),
  )
  expect(provoked.filter((what) => !documented.has(what))).toEqual([])
})

/** One route of each kind. */
const kinds = { read: 'get_columns', local: 'set_column', platform: 'set_read_state' } as const
const routeNamed = (name: string) => routes.find((route) => route.name === name) as Route

/** Without a look at the document, in which a 500 is always a bug. */
async function codeOf({ method, path, ask: { key, body, headers } }: ExampleRequest): Promise<string> {
  const response = await fetch(`${service.url}/api/v1${path}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  })
  const answer = (await response.json()) as Answer['body']
  expect(Object.keys(answer).sort()).toEqual(['code', 'error'])
  return `${response.status} ${answer.code}`
}

/** The example as bytes on a bare socket: its first lines, without an end. */
async function speak({ url }: Service, lines: readonly string[]): Promise<string> {
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  let heard = ''
  socket.setEncoding('utf8').on('data', (text: string) => {
    heard += text
  })
  socket.on('error', () => {})
  socket.write(lines.join('\r\n'))
  await until('the service has answered', hangMs, () => heard.includes('"code"') || socket.closed)
  socket.destroy()
  return `${heard.split(' ')[1]} ${/"code":"(\w+)"/.exec(heard)?.[1]}`
}

test.each(pairs)('%s', async (_, route, each) => {
  const answer = await find(route, each)?.(route)
  expect(`${answer?.status} ${answer?.body.code}`, JSON.stringify(answer?.body)).toBe(each)
})

describe.each(Object.entries(kinds))('a route that is %s', (kind, name) => {
  const route = routeNamed(name)
  const table = kind === 'platform' ? 'chats' : 'columns'
  const coded = ({ status, body }: Answer) => `${status} ${body.code}`

  test('405 method_not_allowed', async () => {
    const asked = await examples.requestOf(route)
    expect(coded(await send({ ...asked, method: 'DELETE' }, { body: undefined }))).toBe(
      '405 method_not_allowed',
    )
  })

  test('408 request_timeout', async () => {
    const { method, path } = await examples.requestOf(route)
    const lines = [`${method} /api/v1${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${keys.impatient}`]
    const rest = route.body ? ['Content-Type: application/json', 'Content-Length: 9', '', '{'] : ['X-Never']
    expect(await speak(impatient, [...lines, ...rest])).toBe('408 request_timeout')
  })

  test('431 headers_too_large', async () => {
    const { method, path } = await examples.requestOf(route)
    const lines = [`${method} /api/v1${path} HTTP/1.1`, 'Host: x', `X-Long: ${'a'.repeat(20_000)}`, '', '']
    expect(await speak(service, lines)).toBe('431 headers_too_large')
  })

  test.runIf(route.body)('413 payload_too_large', async () => {
    const body = JSON.stringify({ surprise: 'a'.repeat(1_048_576) })
    expect(coded(await ask(route, { body }))).toBe('413 payload_too_large')
  })

  test('503 schema_unavailable, and 500 internal for a fault that no code expects', async () => {
    const asked = await examples.requestOf(route)
    const { pool } = service.app.db
    await pool.query(`alter table ${table} rename to ${table}_away`)
    try {
      expect(coded(await send(asked))).toBe('503 schema_unavailable')
      const never = `1 / (case when now() > '2001-01-01' then 0 else 1 end) = 1`
      await pool.query(`create view ${table} as select * from ${table}_away where ${never}`)
      expect(await codeOf(asked)).toBe('500 internal')
    } finally {
      await pool.query(`drop view if exists ${table}`)
      await pool.query(`alter table ${table}_away rename to ${table}`)
    }
  })

  test('503 store_unavailable', async () => {
    const asked = await examples.requestOf(route)
    const left = await openService()
    const { key } = await left.tenant()
    await left.database.drop()
    try {
      expect(coded(await send(asked, { key }, left))).toBe('503 store_unavailable')
    } finally {
      await left.close()
    }
  })
})

test('413 payload_too_large for a body that is only read', async () => {
  const body = JSON.stringify({ query: 'a'.repeat(1_048_576) })
  const answer = await ask(routeNamed('search_messages'), { body })
  expect(`${answer.status} ${answer.body.code}`).toBe('413 payload_too_large')
})
