/** The adapter against the data centre on loopback: the suite that every adapter passes, and logins. */

import { randomBytes } from 'node:crypto'
import { release, type } from 'node:os'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { heldAccount, MemoryAccountStore } from '../../../test/platform/account-store.ts'
import { conformance } from '../../../test/platform/conformance.ts'
import { expectAccepted, Recorder } from '../../../test/platform/conformance-recorder.ts'
import { telegramAt, trust } from '../../../test/platform/data-centre-fixture.ts'
import { type DataCentre, openDataCentre } from '../../../test/platform/mtproto/data-centre.ts'
import { askCentre, askWorld, otherSide } from '../../../test/platform/sandbox-fixture.ts'
import { version } from '../../lib/version.ts'
import type { LoginStep, Platform } from '../port.ts'
import { writeMessage } from '../sandbox/person-acts.ts'
import { openWorld, type World } from '../sandbox/world.ts'

/** What a login would have stored. */
function sessionOf(key: Uint8Array): MemoryAccountStore {
  const blob = { version: 1, dc_id: 2, key: Buffer.from(key).toString('base64'), places: {} }
  return new MemoryAccountStore(Buffer.from(JSON.stringify(blob)))
}

function platformOf({ port, public_pem }: DataCentre): Platform {
  trust(public_pem)
  return telegramAt(port)
}

let accounts = 0

conformance('telegram, on a data centre on loopback', async () => {
  const world = openWorld({ data_dir: null })
  const centre = await openDataCentre(world, { port: 0, data_dir: null })
  return {
    platform: platformOf(centre),
    others: otherSide(askWorld(world)),
    showsCounts: false,
    captionLengthMax: 1024,
    lostPosition: '999999.0.0.0',
    newAccount: async () => {
      const n = ++accounts
      const account = { account_id: `acc_${n}`, name: `Account ${n}` }
      world.addAccount(account)
      return heldAccount({ ...account, store: sessionOf(centre.makeKey(account.account_id)) })
    },
    close: async () => {
      await centre.close()
      await world.close()
    },
  }
})

describe('on one data centre', () => {
  let world: World
  let centre: DataCentre
  let platform: Platform
  beforeAll(async () => {
    world = openWorld({ data_dir: null })
    centre = await openDataCentre(world, { port: 0, data_dir: null })
    platform = platformOf(centre)
  })
  afterAll(async () => {
    await centre.close()
    await world.close()
  })

  test('a key that Telegram does not know asks for a login', async () => {
    const account = heldAccount({ account_id: 'acc_unknown', name: 'x', store: sessionOf(randomBytes(256)) })
    const outcome = await platform.connect(account, new Recorder())
    expect(outcome).toMatchObject({ kind: 'refused', reason: 'needs_login' })
    expect(outcome).toMatchObject({ detail: expect.stringContaining('no longer knows the login') })
  })

  test('a session shows as the device Parley with its version, its system and its language', async () => {
    const account_id = 'acc_device'
    world.addAccount({ account_id, name: 'x' })
    const account = heldAccount({ account_id, name: 'x', store: sessionOf(centre.makeKey(account_id)) })
    const outcome = await platform.connect(account, new Recorder())
    if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome))
    const { locale } = new Intl.DateTimeFormat().resolvedOptions()
    const [language = ''] = locale.split('-')
    expect(language).not.toBe('')
    expect(centre.listDevices()).toEqual([`Parley ${version}, ${type()} ${release()}, ${locale} ${language}`])
    await outcome.value.close()
  })

  test('a key that Telegram forgets during a session ends it, and the next connect asks for a login', async () => {
    const account_id = 'acc_forgotten'
    world.addAccount({ account_id, name: 'x' })
    const account = heldAccount({ account_id, name: 'x', store: sessionOf(centre.makeKey(account_id)) })
    const recorder = new Recorder()
    const outcome = await platform.connect(account, recorder)
    if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome))
    centre.store.state.auth_keys.clear()
    expect(await outcome.value.ping()).toBe(false)
    expect(await recorder.closedReason).toEqual({ status: 'lost', reason: 'Transport error -404.' })
    expect(await platform.connect(account, new Recorder())).toMatchObject({ reason: 'needs_login' })
  })

  async function newAccount(account_id: string) {
    world.addAccount({ account_id, name: 'x' })
    return heldAccount({ account_id, name: 'x', store: sessionOf(centre.makeKey(account_id)) })
  }

  /** A session, and who the other side of the latest message is to it. */
  async function openAgain(account: Awaited<ReturnType<typeof newAccount>>) {
    const recorder = new Recorder()
    const session = expectAccepted(await platform.connect(account, recorder))
    await recorder.until(() => recorder.position !== null)
    const otherOf = async (text: string) => {
      const find = () => recorder.messages.find(({ message }) => message.text === text)
      await recorder.until(() => find() !== undefined)
      return find()?.chat.participants?.find(({ kind }) => kind !== 'self')
    }
    return { session, otherOf }
  }

  test('a text that comes without its people names them only if the session was shown them within the hour', async () => {
    const account = await newAccount('acc_short')
    const { account_id } = account
    centre.short.add(account_id)
    const [before, now] = ['short_before', 'short_now']
    const { person_id } = world.addPerson({ name: 'Mara Lind', username: before })
    const id = String(person_id)
    const write = (text: string) => writeMessage(world, { account_id, person_id, text })
    const first = await openAgain(account)
    expectAccepted(await first.session.resolve({ kind: 'username', value: before }))
    write('one')
    expect(await first.otherOf('one')).toMatchObject({ id, username: before, name: 'Mara Lind' })
    await first.session.close()
    // Parley sees none of this: the account is away, and connects again afterwards.
    world.changePerson(person_id, { username: now })
    const second = await openAgain(account)
    write('two')
    const kept = { id, name: 'Mara Lind', username: null, phone: null, kind: 'person', stale: true }
    expect(await second.otherOf('two')).toEqual(kept)
    const ours = { chat_id: `${person_id}` as const, text: 'three', file: null, random_id: '33' }
    expectAccepted(await second.session.send(ours))
    expect(await second.otherOf('three')).toEqual(kept)
    expectAccepted(await second.session.history({ chat_id: `${person_id}`, before: null, limit: 1 }))
    write('four')
    expect(await second.otherOf('four')).toMatchObject({ id, username: now })
    await second.session.close()
  })

  test('a connection that the data centre refuses says how long to wait', async () => {
    const account = await newAccount('acc_refused')
    const { account_id } = account
    for (const name of ['error_429', 'error_444'] as const) {
      centre.hostilities.add({ case: name, on: 'users.getUsers', account_id })
      expect(await platform.connect(account, new Recorder())).toEqual({
        kind: 'not_written',
        reason: expect.stringContaining('refuses connections from this address'),
        cause: 'refused',
        retry_after_seconds: 60,
      })
    }
  })

  test('a session that ends with too many connections says how long to wait; a send then is unknown', async () => {
    const account = await newAccount('acc_crowded')
    const { person_id } = world.addPerson({ name: 'Mara Lind', username: 'mara_crowded' })
    const recorder = new Recorder()
    const outcome = await platform.connect(account, recorder)
    if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome))
    await outcome.value.resolve({ kind: 'username', value: 'mara_crowded' })
    centre.hostilities.add({ case: 'error_429', on: 'messages.sendMessage' })
    const message = { chat_id: `${person_id}` as const, text: 'Hello', file: null, random_id: '1' }
    expect(await outcome.value.send(message)).toEqual({ kind: 'unknown', reason: 'connection_lost' })
    expect(await outcome.value.send(message)).toMatchObject({ kind: 'not_written' })
    expect(await recorder.closedReason).toEqual({
      status: 'lost',
      reason: 'Transport error -429.',
      retry_after_seconds: 60,
    })
  })

  test('counts how often sessions ask for what they missed, and ignores sessions that are over', async () => {
    const account = await newAccount('acc_counted')
    const before = platform.figures?.().differences ?? 0
    const outcome = await platform.connect({ ...account, position: '1.0.0.0' }, new Recorder())
    if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome))
    await expect.poll(() => platform.figures?.().differences).toBeGreaterThan(before)
    await outcome.value.close()
    expect(platform.figures?.()).toMatchObject({ batches_waiting: 0, uploads: 0 })
  })

  test('an api_id that Telegram does not know is named, and not tried again soon', async () => {
    const account = await newAccount('acc_application')
    const { account_id } = account
    world.addFault({ on: 'connect', fault: 'refuse', error: 'CONNECTION_API_ID_INVALID', account_id })
    expect(await platform.connect(account, new Recorder())).toEqual({
      kind: 'not_written',
      reason: expect.stringContaining('PARLEY_TELEGRAM_API_ID'),
      cause: 'misconfigured',
      retry_after_seconds: 600,
    })
  })

  test.each(['refused_exchange', 'error_404', 'error_429', 'unfactorable'] as const)(
    'a login whose key exchange is refused (%s) connects once, and says how long to wait',
    async (name) => {
      const dials = centre.clientPorts().length
      centre.hostilities.add({ case: name, on: 'mt_req_pq_multi', times: 2 })
      const { next } = await begin(`+99966200${20 + accounts}`)
      expect(await next('failed')).toMatchObject({ reason: 'flood_wait', retry_after_seconds: 60 })
      centre.hostilities.clear()
      expect(centre.clientPorts().length - dials).toBe(1)
    },
  )

  async function begin(phone: string, { qr = false, password }: { qr?: boolean; password?: string } = {}) {
    const n = ++accounts
    const account_id = `acc_login_${n}`
    await askCentre(centre)('addAccount', {
      account_id,
      name: `Login ${n}`,
      phone,
      ...(password && { password }),
    })
    const steps: LoginStep[] = []
    const login = platform.login?.({ phone: qr ? null : phone, proxy: null }, (step) => steps.push(step))
    if (!login) throw new Error('There is no login.')
    const next = async (kind: LoginStep['kind'], count = 1) => {
      const isThere = () =>
        steps.filter((step) => step.kind === kind).length >= count || steps.some((s) => s.kind === 'failed')
      await expect.poll(isThere, { timeout: 20_000 }).toBe(true)
      return steps.at(-1)
    }
    return { account_id, login, steps, next }
  }

  test('a login by code ends with a session that connects, and that a logout ends', async () => {
    const { account_id, login, next } = await begin('+9996620011')
    expect(await next('code')).toMatchObject({ kind: 'code', wrong: false })
    login.answer('12345')
    const done = await next('done')
    if (done?.kind !== 'done') throw new Error(JSON.stringify(done))
    const store = new MemoryAccountStore(done.session)
    const account = heldAccount({ account_id, name: 'x', store })
    const outcome = await platform.connect(account, new Recorder())
    if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome))
    expect(outcome.value.self.id).toBe(done.self.id)
    await outcome.value.close()
    expect(await platform.logout?.({ session: done.session, proxy: null })).toEqual({
      kind: 'accepted',
      value: null,
    })
    expect(await platform.connect(account, new Recorder())).toMatchObject({
      kind: 'refused',
      reason: 'needs_login',
    })
  })

  test('a login ends with the third wrong code', async () => {
    const { login, next } = await begin('+9996620012')
    for (let n = 1; n <= 3; n++) {
      expect(await next('code', n)).toMatchObject({ kind: 'code', wrong: n > 1 })
      login.answer('00000')
    }
    expect(await next('failed')).toMatchObject({ reason: 'too_many_attempts' })
  })

  test('a login asks for the password, says that it was wrong, and follows the account to its data centre', async () => {
    const { login, next } = await begin('+9996640013', { password: 'correct horse' })
    await next('code')
    login.answer('12345')
    expect(await next('password')).toMatchObject({ kind: 'password', wrong: false })
    login.answer('wrong')
    expect(await next('password', 2)).toMatchObject({ kind: 'password', wrong: true })
    login.answer('correct horse')
    expect(await next('done')).toMatchObject({ kind: 'done' })
  })

  test.each(['+9996620014', '+9996640014'])('a login by a QR code that %s accepts', async (phone) => {
    const { next } = await begin(phone, { qr: true })
    expect(await next('qr')).toMatchObject({ url: expect.stringMatching(/^tg:\/\/login\?token=/) })
    await askCentre(centre)('acceptLogin', { phone })
    expect(await next('done')).toMatchObject({ kind: 'done' })
  })

  test('a login refuses a number without an account', async () => {
    const steps: LoginStep[] = []
    const login = platform.login?.({ phone: '+9996620099', proxy: null }, (step) => steps.push(step))
    await expect.poll(() => steps.length, { timeout: 20_000 }).toBe(1)
    login?.answer('12345')
    await expect.poll(() => steps.length, { timeout: 20_000 }).toBe(2)
    expect(steps.slice(1)).toMatchObject([{ kind: 'failed', reason: 'sign_up_required' }])
  })
})
