/** Sessions of other programs, over a data centre on loopback. */
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openService, type Service, type Tenant } from '../../../test/harness/service.ts'
import { openStage, type Stage, telegramAt } from '../../../test/platform/data-centre-fixture.ts'
import { sql } from '../../db/sql.ts'
import { createAccount, logIn } from './accounts.ts'
import { findSession } from './platform-store.ts'

let service: Service
let tenant: Tenant
let stage: Stage

beforeAll(async () => {
  service = await openService()
  tenant = await service.tenant()
  stage = await openStage()
})
afterAll(async () => {
  await stage.close()
  await service.close()
})

const dialogue = { show: () => {}, ask: () => Promise.reject(new Error('It asks nothing.')) }

/** A user of the platform and the string with which another program uses its session. */
function newSession(user: string) {
  stage.centre.addAccount({ account_id: user, name: 'Sales desk' })
  const key = stage.centre.makeKey(user)
  const bytes = Buffer.concat([Buffer.from([2, 127, 0, 0, 1, 1, 187]), key])
  return { session_string: `1${bytes.toString('base64url')}`, key }
}

async function take(id: string, session_string: string) {
  const platform = telegramAt(stage.centre.port)
  return logIn(service.app, 'system', { id, phone: null, session_string, platform, dialogue })
}

async function newAccount(): Promise<string> {
  const { workspace_id } = tenant
  return (await createAccount(service.app, 'system', { workspace_id, platform: 'telegram', name: 'Sales' }))
    .id
}

const keysOf = (user: string) =>
  [...stage.centre.store.state.auth_keys.values()].filter(({ account_id }) => account_id === user).length

test('an imported session is sealed, and the audit log says that it was imported', async () => {
  const { session_string, key } = newSession('user_one')
  const id = await newAccount()
  expect(await take(id, session_string)).toMatchObject({ status: 'CONNECTING' })
  const stored = await findSession(service.app, id)
  expect(JSON.parse(Buffer.from(stored as Uint8Array).toString())).toMatchObject({
    dc_id: 2,
    key: Buffer.from(key).toString('base64'),
  })
  const rows = await service.app.db.rows<{ action: string; detail: unknown }>(
    sql`select action, detail from audit where target = ${id} order by seq`,
  )
  expect(JSON.stringify(rows.at(-1))).toContain('imported')
  const { text } = await service.app.db.one<{ text: string }>(sql`
    select (select string_agg(a::text, '') from audit a) || (select string_agg(s::text, '') from platform_sessions s) as text`)
  expect(text).not.toContain(session_string.slice(20, 80))
  expect(text).not.toContain(Buffer.from(key).toString('hex').slice(0, 40))
})

test('a session that is refused here stays with the program that has it', async () => {
  const { session_string } = newSession('user_two')
  const first = await newAccount()
  await take(first, session_string)
  const second = await newAccount()
  await expect(take(second, session_string)).rejects.toMatchObject({
    code: 'conflict',
    message: expect.stringContaining('connected to another account'),
  })
  expect(keysOf('user_two')).toBe(1)
  expect(await findSession(service.app, second)).toBeNull()
})

test('a text that is no session string is refused, and nothing is stored', async () => {
  const id = await newAccount()
  await expect(take(id, 'hunter2 hunter2')).rejects.toMatchObject({ code: 'invalid_request' })
  expect(await findSession(service.app, id)).toBeNull()
})
