import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Tenant } from '../../../test/harness/service.ts'
import { openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import { sql } from '../../db/sql.ts'
import { writeMessage } from '../../platform/sandbox/person-acts.ts'
import { phoneDigits } from '../../rules/identifier.ts'
import {
  addSuppression,
  exportSuppressions,
  findSuppressed,
  importSuppressions,
  listSuppressions,
  removeSuppression,
} from './suppressions.ts'

let workplace: Workplace
let own: Tenant
let other: Tenant
let account_id: string
let serial = 0

beforeAll(async () => {
  workplace = await openWorkplace({ env: { PARLEY_START_CHAT_PER_MINUTE: '1000' } })
  own = await workplace.service.tenant('Own')
  other = await workplace.service.tenant('Other')
  await workplace.work()
  account_id = await workplace.connected(own)
})
afterAll(() => workplace.close())

const app = () => workplace.service.app
const list = (workspace_id = own.workspace_id) => listSuppressions(app().db, workspace_id)
const add = (given: object, workspace_id = own.workspace_id) =>
  addSuppression(app(), 'cli:ana', { workspace_id, ...given })
const importText = (text: string, workspace_id = own.workspace_id) =>
  importSuppressions(app(), 'cli:ana', { workspace_id, file: 'list.csv', bytes: () => [Buffer.from(text)] })
async function exported(workspace_id: string): Promise<string> {
  let text = ''
  for await (const piece of exportSuppressions(app().db, workspace_id)) text += piece
  return text
}

function start(identifier: string) {
  return workplace.service.post('/chats/start', {
    key: own.key,
    body: { account_id, identifier },
    headers: { 'idempotency-key': `start-${serial++}` },
  })
}

describe('POST /chats/start', () => {
  test('409 for a username, a phone number and a platform id on the list, and 200 after their removal', async () => {
    const { world } = workplace.sandbox
    world.addPerson({ name: 'Ada', username: 'ada_suppressed' })
    world.addPerson({ name: 'Bo', username: 'bo_suppressed', phone: '+49 170 1234567' })
    const cyd = world.addPerson({ name: 'Cyd', username: 'cyd_suppressed' })
    const given = {
      ada_suppressed: { username: '@Ada_Suppressed' },
      bo_suppressed: { phone: '+49 (170) 123-4567' },
      cyd_suppressed: { platform_id: String(cyd.person_id) },
    }
    for (const [username, identity] of Object.entries(given)) {
      expect(await add(identity)).toMatchObject({ added: true })
      expect(await add(identity)).toMatchObject({ added: false })
      // Another workspace has another list.
      expect((await list(other.workspace_id)).length).toBe(0)
      expect(await start(username), username).toMatchObject({
        status: 409,
        body: { code: 'identity_suppressed' },
      })
      const removed = { workspace_id: own.workspace_id, ...identity }
      expect(await removeSuppression(app(), 'cli:ana', removed)).toMatchObject({ removed: true })
      expect(await removeSuppression(app(), 'cli:ana', removed)).toMatchObject({ removed: false })
      expect(await start(username), username).toMatchObject({ status: 200 })
    }
  })

  test('a username is on the list in any letter case, as listed and as asked about', async () => {
    await add({ username: 'Fay_Suppressed' })
    const asked = ['fay_suppressed', 'FAY_suppressed', 'Fay_Suppressed'].map((username) =>
      findSuppressed(app().db, { workspace_id: own.workspace_id, account_id }, { username }),
    )
    expect(await Promise.all(asked)).toEqual([true, true, true])
  })

  test('409 for a phone number that the platform returned once and omits now', async () => {
    const { person_id } = workplace.sandbox.world.addPerson({ name: 'Dee', username: 'dee_suppressed' })
    expect(await start('dee_suppressed')).toMatchObject({ status: 200 })
    await app().db.run(sql`update contacts set phone = '+49 170 7654321' where provider_id = ${person_id}`)
    await add({ phone: '+49 170 7654321' })
    expect(await start('dee_suppressed')).toMatchObject({
      status: 409,
      body: { code: 'identity_suppressed' },
    })
  })

  test('503 while the list cannot be read, without a look-up', async () => {
    await app().db.run(sql`alter table suppressions rename to suppressions_away`)
    try {
      expect(await start('ada_suppressed')).toMatchObject({
        status: 503,
        body: { code: 'suppression_unavailable' },
      })
    } finally {
      await app().db.run(sql`alter table suppressions_away rename to suppressions`)
    }
  })
})

test('a number has one form in the database and here, in any spelling', async () => {
  const forms = ['+491705550303', '+49 170 5550303', '+49 (0)170 555-03 03', '+49 ( 0 ) 170.555.0303']
  forms.push('0049 170 5550303', '00 49 (0) 170 5550303', '(+49) 170 5550303', '49-170-5550303')
  for (const form of forms) {
    const { digits } = await app().db.one<{ digits: string }>(
      sql`select phone_digits(${form}::text) as digits`,
    )
    expect(digits, form).toBe('491705550303')
    // A number that does not start like one is refused when a user types it in; the platform may still return it.
    expect([digits, undefined], form).toContain(phoneDigits(form))
  }
  expect(forms.filter((form) => phoneDigits(form) === undefined)).toEqual(['(+49) 170 5550303'])
})

describe('a message that asks to stop', () => {
  const untilListed = (value: string) =>
    until(`${value} is on the list`, hangMs, async () => (await list()).find((each) => each.value === value))

  test('suppresses its sender, with the message as evidence, in the same transaction', async () => {
    const person = workplace.person('Dee')
    const message_id = workplace.write(account_id, person, ' Stop! ')
    expect(await untilListed(String(person))).toMatchObject({
      kind: 'platform_id',
      source: 'opt_out',
      evidence: {
        account_id,
        chat_id: `platform:chat:${person}`,
        message_id,
        text: ' Stop! ',
        timestamp: expect.stringMatching(/Z$/),
      },
    })
    expect(
      await findSuppressed(app().db, { workspace_id: own.workspace_id, account_id }, { id: String(person) }),
    ).toBe(true)
    expect(
      await findSuppressed(
        app().db,
        { workspace_id: other.workspace_id, account_id },
        { id: String(person) },
      ),
    ).toBe(false)
    workplace.write(account_id, person, 'STOP')
    const marker = workplace.person('Marker')
    workplace.write(account_id, marker, 'unsubscribe')
    await untilListed(String(marker))
    const { evidence } = await untilListed(String(person))
    expect(evidence.message_id).toBe(message_id)
  })

  test('is not one that only contains the word, our own, or one in a group', async () => {
    const person = workplace.person('Eve')
    workplace.write(account_id, person, 'We stop at noon, see you then')
    const { world } = workplace.sandbox
    const chat_id = world.addGroup({ account_id, name: 'Team', members: [person] })
    writeMessage(world, { account_id, person_id: person, chat_id, text: 'Stop' })
    const marker = async (name: string) => {
      const id = workplace.person(name)
      workplace.write(account_id, id, 'стоп')
      await untilListed(String(id))
    }
    await marker('First')
    const ours = await workplace.service.post('/messages', {
      key: own.key,
      body: { account_id, chat_id: `platform:chat:${person}`, text: 'Stop' },
      headers: { 'idempotency-key': `ours-${serial++}` },
    })
    expect(ours.status).toBe(200)
    await marker('Last')
    const values = (await list()).map(({ value }) => value)
    for (const id of [person, chat_id]) expect(values).not.toContain(String(id))
  })
})

describe('the list as a file', () => {
  test('names every skipped row with its reason, and adds the rest', async () => {
    const { workspace_id } = await workplace.service.tenant('Import')
    await add({ phone: '+491701234567' }, workspace_id)
    const text = [
      'name,Username,phone,platform_id',
      'Ada,@Ada_L,,',
      'Bo,,+49 170 1234567,',
      'Cyd,cyd_c,+49 (0)30 555-0101,77',
      'Dee,x,,',
      'Eve,,12,',
      'Fay,,,0',
      'Gus,,,',
      'Ada again,ADA_L,,',
      '"quoted, name",https://t.me/quoted_one,,',
      'Hal,,0049 30 5550101,77',
      'Ida,,030 5550101,',
    ].join('\r\n')
    expect(await importText(text, workspace_id)).toEqual({
      added: 5,
      skipped_count: 9,
      skipped: [
        { line: 3, reason: 'Already on the list.' },
        { line: 5, reason: expect.stringContaining('"x" is not a username') },
        { line: 6, reason: expect.stringContaining('"12" is not a phone number') },
        { line: 7, reason: expect.stringContaining('"0" is not a platform id') },
        { line: 8, reason: 'The row has no platform_id, no username, no phone.' },
        { line: 9, reason: 'Duplicate of line 2.' },
        { line: 11, reason: 'Duplicate of line 4.' },
        { line: 11, reason: 'Duplicate of line 4.' },
        // Without the country code it would be the number of no person.
        { line: 12, reason: expect.stringContaining('is not a phone number') },
      ],
    })
    expect((await list(workspace_id)).map(({ kind, value, source }) => [kind, value, source])).toEqual([
      ['phone', '491701234567', 'operator'],
      ['phone', '49305550101', 'import'],
      ['platform_id', '77', 'import'],
      ['username', 'ada_l', 'import'],
      ['username', 'cyd_c', 'import'],
      ['username', 'quoted_one', 'import'],
    ])
  })

  test('imports what was exported, also in another workspace', async () => {
    const [from, to] = [await workplace.service.tenant('From'), await workplace.service.tenant('To')]
    const rows = Array.from({ length: 2_500 }, (_, at) => `user_${at}`).join('\n')
    expect(await importText(`username\n${rows}`, from.workspace_id)).toEqual({
      added: 2_500,
      skipped_count: 0,
      skipped: [],
    })
    const text = await exported(from.workspace_id)
    expect(text.split('\r\n').slice(0, 2)).toEqual([
      'kind,value,source,created_at,evidence',
      expect.stringMatching(/^username,user_0,import,\d{4}-.*Z,"\{""file"":""list.csv"",""line"":2\}"$/),
    ])
    expect(await importText(text, to.workspace_id)).toEqual({ added: 2_500, skipped_count: 0, skipped: [] })
    const again = await importText(text, to.workspace_id)
    expect(again.added).toBe(0)
    expect(again.skipped).toHaveLength(2_500)
    expect(new Set(again.skipped.map(({ reason }) => reason))).toEqual(new Set(['Already on the list.']))
    const bad = await importText('kind,value\nemail,a@b.example\nphone,\n', to.workspace_id)
    expect(bad).toMatchObject({ added: 0, skipped: [{ line: 2 }, { line: 3 }] })
  })

  test('refuses a whole file without column names, and one with an invalid identity', async () => {
    await expect(importText('ada\nbo\n')).rejects.toThrow('Nothing was imported')
    await expect(importText('')).rejects.toThrow('must name the columns')
    const before = (await list()).length
    await expect(importText('username\nhal_of_it\n"the rest\nida_of_it\n')).rejects.toThrow(
      'line 3 is never closed',
    )
    expect(await list()).toHaveLength(before)
    for (const given of [{}, { username: 'a_b_c', phone: '+491701234567' }]) {
      await expect(add(given)).rejects.toThrow('exactly one')
    }
    await expect(add({ platform_id: '9223372036854775808' })).rejects.toThrow('not a platform id')
    await expect(add({ phone: 'call me 1234567' })).rejects.toThrow('not a phone number')
  })
})
