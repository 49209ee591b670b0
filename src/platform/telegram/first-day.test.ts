/** What a first day with Telegram brings and a quiet data centre does not: each failed before its mend. */
import { randomBytes } from 'node:crypto'
import { type AddressInfo, createServer } from 'node:net'
import { describe, expect, onTestFinished, test, vi } from 'vitest'
import { heldAccount, MemoryAccountStore } from '../../../test/platform/account-store.ts'
import { Recorder } from '../../../test/platform/conformance-recorder.ts'
import { openStage, type Stage } from '../../../test/platform/data-centre-fixture.ts'
import type { LoopbackProxy } from '../../../test/platform/loopback-proxy.ts'
import type { CodeWay } from '../../../test/platform/mtproto/codes.ts'
import { serviceId, writeFromTelegram } from '../../../test/platform/mtproto/service-chat.ts'
import { openProxy } from '../../../test/platform/proxies.ts'
import type { AccountProxy, ChatPage, ListedChat, Login, LoginStep, Outcome } from '../port.ts'
import { writeMessage } from '../sandbox/person-acts.ts'
import { telegramPlatform } from './adapter.ts'
import { findUnreached } from './reach.ts'

const account_id = 'acc_one'
const phone = '+9996620001'

/** One account with a person who writes, and the adapter with its limits as shipped. */
async function open(doubtMs?: number) {
  const stage = await openStage()
  onTestFinished(() => stage.close())
  const { centre, world } = stage
  centre.addAccount({ account_id, name: 'Sales', phone })
  const { person_id } = world.addPerson({ name: 'Mara', username: 'mara', phone: '+4420' })
  const test_dc = {
    ...{ id: 2, ipAddress: '127.0.0.1', port: centre.port },
    ...{ ipv6: false, mediaOnly: false, testMode: false },
  }
  const endpoint = { api_id: 1, api_hash: '0'.repeat(32), test_dc }
  const platform = telegramPlatform(endpoint, {
    ...{ paceMs: 0, logoutPauseMs: 1 },
    ...(doubtMs !== undefined && { doubtMs }),
  })
  const key = centre.makeKey(account_id)
  const blob = { version: 1, dc_id: 2, key: Buffer.from(key).toString('base64'), places: {} }
  const store = new MemoryAccountStore(Buffer.from(JSON.stringify(blob)))
  const account = heldAccount({ account_id, name: 'Sales', store })
  const write = (text: string) => writeMessage(world, { account_id, person_id, text })
  const connect = async (recorder = new Recorder()) => {
    const session = taken(await platform.connect(account, recorder))
    onTestFinished(() => session.close())
    return { session, recorder }
  }
  return { stage, centre, world, platform, account, store, person_id, write, connect, key }
}

function taken<T>(outcome: Outcome<T>): T {
  if (outcome.kind !== 'accepted') throw new Error(JSON.stringify(outcome))
  return outcome.value
}

/** A session string as Telethon makes it. */
const telethon = (key: Uint8Array) =>
  `1${Buffer.concat([Buffer.from([2, 127, 0, 0, 1]), Buffer.from([1, 187]), key]).toString('base64url')}`

const loopback = (scheme: 'socks5' | 'http', { port }: LoopbackProxy): AccountProxy => {
  return { ...{ scheme, port, host: '127.0.0.1' }, credentials: null, allow: new Set(['127.0.0.1']) }
}

const until = (isDone: () => boolean) => expect.poll(isDone, { timeout: 30_000 }).toBe(true)

/** Returns how many seconds have passed since. */
function startWatch(): () => number {
  const begunAt = performance.now()
  return () => (performance.now() - begunAt) / 1000
}

describe('a clock that is wrong', () => {
  test('by ten minutes ahead connects at the second try, and says how far it is off', async () => {
    const { centre, platform, account } = await open()
    centre.clock.set(-600)
    const secondsPassed = startWatch()
    const first = await platform.connect(account, new Recorder())
    expect(first).toMatchObject({ kind: 'not_written', cause: 'clock', reason: expect.any(String) })
    const [, seconds] = /is (\d+) s fast by Telegram's time/.exec((first as { reason: string }).reason) ?? []
    // The time is compared when an answer is read; a second is what the ids of messages round off.
    expect(Number(seconds)).toBeGreaterThanOrEqual(599)
    expect(Number(seconds)).toBeLessThanOrEqual(601 + secondsPassed())
    expect(platform.figures?.().clock_offset_seconds).toBeLessThan(-590)
    const session = taken(await platform.connect(account, new Recorder()))
    expect(await session.ping()).toBe(true)
    await session.close()
    // It stays known, so that the next session needs no second try.
    const next = taken(await platform.connect(account, new Recorder()))
    await next.close()
  })

  test('by ten minutes behind connects, and says while connected how far it is off', async () => {
    const { centre, platform, connect } = await open()
    centre.clock.set(600)
    await connect()
    expect(platform.figures?.().clock_offset_seconds).toBeGreaterThan(590)
  })

  test('is right as soon as it is set, without a restart', async () => {
    const { centre, platform, account, connect } = await open()
    centre.clock.set(-600)
    await platform.connect(account, new Recorder())
    const { session } = await connect()
    expect(platform.figures?.().clock_offset_seconds).toBeLessThan(-590)
    // This machine and the data centre have one clock: as it goes back, the data centre's time stays what it was.
    const { now } = Date
    onTestFinished(() => {
      Date.now = now
    })
    Date.now = () => now() - 600_000
    centre.clock.set(0)
    expect(Math.abs(platform.figures?.().clock_offset_seconds ?? Number.NaN)).toBeLessThan(10)
    expect(await session.ping()).toBe(true)
    await session.close()
    await taken(await platform.connect(account, new Recorder())).close()
  })

  test('is forgotten with the account that this process gives up', async () => {
    const { centre, platform, connect } = await open()
    centre.clock.set(600)
    const { session } = await connect()
    await session.close()
    expect(platform.figures?.().clock_offset_seconds).toBeGreaterThan(590)
    platform.forgetAccount?.(account_id)
    expect(platform.figures?.().clock_offset_seconds).toBe(0)
  })

  test('is not what keeps an account away once it is corrected for', async () => {
    const { centre, platform, account } = await open()
    centre.clock.set(-600)
    expect(await platform.connect(account, new Recorder())).toMatchObject({ cause: 'clock' })
    centre.hostilities.add({ case: 'cut', on: 'users.getUsers' })
    expect(await platform.connect(account, new Recorder())).toMatchObject({
      reason: 'Telegram could not be reached.',
    })
  })

  test('by ten minutes ahead logs out at the first call', async () => {
    const { centre, platform, account, store } = await open()
    centre.clock.set(-600)
    const session = (await store.readSession()) ?? Buffer.alloc(0)
    expect(await platform.logout?.({ session, proxy: null })).toEqual({ kind: 'accepted', value: null })
    centre.clock.set(0)
    expect(await platform.connect(account, new Recorder())).toMatchObject({ cause: 'doubtful' })
  })

  test('by ten minutes ahead imports a session at the first call', async () => {
    const { centre, platform, key } = await open()
    centre.clock.set(-600)
    const { steps } = begin(platform, { phone: null, session_string: telethon(key) })
    await until(() => steps.length === 1)
    expect(steps).toMatchObject([{ kind: 'done' }])
  })

  test.each([-600, 600])('by %i s shows QR codes for as long as they are valid', async (ahead) => {
    const { centre, platform } = await open()
    centre.clock.set(ahead)
    const secondsPassed = startWatch()
    const { steps, login } = begin(platform, { phone: null })
    await until(() => steps.length > 0)
    const [step] = steps
    if (step?.kind !== 'qr') throw new Error(JSON.stringify(step))
    const left = (Date.parse(step.expires_at) - Date.now()) / 1000
    // A code is valid for 30 s, and times of Telegram are whole seconds.
    expect(left).toBeGreaterThan(28 - secondsPassed())
    expect(left).toBeLessThan(32 + secondsPassed())
    await login.close()
  })
})

describe('the doctor', () => {
  const wrongTime = { problem: expect.stringContaining('s fast'), advice: expect.stringContaining('NTP') }

  test('says how far the clock is off', async () => {
    const { centre } = await open()
    const dc = { address: '127.0.0.1', port: centre.port, key_file: '' }
    const look = () => findUnreached(dc, { proxies: [], direct: true })
    expect(await look()).toEqual([])
    centre.clock.set(-600)
    expect(await look()).toMatchObject([wrongTime])
  })

  test.each(['socks5', 'http'] as const)(
    'asks the time through a proxy by %s if no account connects without one',
    async (scheme) => {
      const { centre } = await open()
      const dc = { address: '127.0.0.1', port: centre.port, key_file: '' }
      const proxy = loopback(scheme, await openProxy(scheme))
      const look = () => findUnreached(dc, { proxies: [proxy, proxy], direct: false })
      expect(await look()).toEqual([])
      centre.clock.set(-600)
      expect(await look()).toMatchObject([wrongTime])
    },
  )

  test('says that a proxy leads somewhere else, and takes no time from there', async () => {
    const { centre } = await open()
    const elsewhere = createServer((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    onTestFinished(() => void elsewhere.close())
    await new Promise<void>((resolve) => elsewhere.listen(0, '127.0.0.1', resolve))
    const dc = { address: '127.0.0.1', port: centre.port, key_file: '' }
    const proxy = loopback(
      'http',
      await openProxy('http', { portFor: () => (elsewhere.address() as AddressInfo).port }),
    )
    expect(await findUnreached(dc, { proxies: [proxy], direct: false })).toEqual([
      {
        problem: expect.stringContaining("does not lead to Telegram's data centre (another service answers)"),
      },
    ])
  })
})

describe('a login that Telegram does not know', () => {
  test.each(['401 AUTH_KEY_UNREGISTERED', '-404'])(
    'for a moment (%s) connects when it is asked again',
    async (error) => {
      const { centre, platform, account } = await open()
      if (error === '-404') centre.hostilities.add({ case: 'error_404', on: 'users.getUsers' })
      else centre.refusals.add({ on: 'users.getUsers', error })
      expect(await platform.connect(account, new Recorder())).toMatchObject({
        ...{ kind: 'not_written', cause: 'doubtful', retry_after_seconds: 20 },
        reason: expect.stringContaining('That can pass'),
      })
      await taken(await platform.connect(account, new Recorder())).close()
    },
  )

  test('for minutes asks for the cheap act, then for a login', async () => {
    const { centre, platform, account } = await open(0)
    centre.refusals.add({ on: 'users.getUsers', error: '401 AUTH_KEY_UNREGISTERED' })
    const outcome = await platform.connect(account, new Recorder())
    expect(outcome).toMatchObject({ kind: 'refused', reason: 'needs_login' })
    const { detail = '' } = outcome as { detail?: string }
    expect(detail.indexOf('account enable')).toBeGreaterThan(0)
    expect(detail.indexOf('account login')).toBeGreaterThan(detail.indexOf('account enable'))
  })

  test.each(['401 SESSION_REVOKED', '406 AUTH_KEY_DUPLICATED'])(
    'for good (%s) is not tried again',
    async (error) => {
      const { centre, platform, account } = await open()
      centre.refusals.add({ on: 'users.getUsers', error })
      expect(await platform.connect(account, new Recorder())).toMatchObject({
        ...{ kind: 'refused', reason: 'needs_login' },
        detail: expect.stringContaining(error.slice(4)),
      })
    },
  )
})

describe('a login that Telegram does not know in the middle of a session', () => {
  const unknown = '401 AUTH_KEY_UNREGISTERED'

  /** A session that has a chat with the person, and the next answer to a send. */
  async function openChat(doubtMs?: number) {
    const place = await open(doubtMs)
    const { centre, person_id, write, connect } = place
    write('Hello')
    let random_id = 0
    const attempt = async (error?: string) => {
      const { session, recorder } = await connect()
      taken(await session.chats({ after: null, limit: 50 }))
      if (error) centre.refusals.add({ on: 'messages.sendMessage', error })
      const message = { chat_id: `${person_id}` as const, text: 'Hi', file: null }
      return { recorder, outcome: await session.send({ ...message, random_id: `${++random_id}` }) }
    }
    return { ...place, attempt }
  }

  test('for a moment: the session is lost, the send may be repeated, and the next session sends', async () => {
    const { attempt, world } = await openChat()
    const { recorder, outcome } = await attempt(unknown)
    const reason = expect.stringContaining('That can pass')
    expect(outcome).toEqual({ kind: 'not_written', reason })
    await until(() => recorder.closedWith !== null)
    expect(recorder.closedWith).toEqual({ status: 'lost', reason, retry_after_seconds: 20 })
    expect((await attempt()).outcome).toMatchObject({ kind: 'accepted' })
    expect(world.state.journal.filter(({ kind }) => kind === 'send')).toHaveLength(1)
  })

  test('for a moment, and hours after it was known again for another one: it is tried again', async () => {
    const { attempt, centre } = await openChat()
    expect((await attempt(unknown)).outcome).toMatchObject({ kind: 'not_written' })
    const { recorder, outcome } = await attempt()
    expect(outcome).toMatchObject({ kind: 'accepted' })
    const now = performance.now.bind(performance)
    const clock = vi.spyOn(performance, 'now').mockImplementation(() => now() + 36_000_000)
    onTestFinished(() => clock.mockRestore())
    // Telegram's clock has gone on as well.
    centre.clock.set(36_000)
    centre.strike(account_id, 'cut')
    await until(() => recorder.closedWith !== null)
    expect((await attempt(unknown)).outcome).toMatchObject({ kind: 'not_written' })
  })

  test('for minutes needs a login, also if every connect succeeds', async () => {
    // The next connect takes longer than that.
    const { attempt } = await openChat(1)
    expect((await attempt(unknown)).outcome).toMatchObject({ kind: 'not_written' })
    const { recorder, outcome } = await attempt(unknown)
    expect(outcome).toMatchObject({ kind: 'refused', reason: 'needs_login' })
    await until(() => recorder.closedWith !== null)
    expect(recorder.closedWith).toMatchObject({ status: 'needs_login' })
  })

  test.each(['401 SESSION_REVOKED', '406 AUTH_KEY_DUPLICATED'])('for good (%s)', async (error) => {
    const { attempt } = await openChat()
    const { recorder, outcome } = await attempt(error)
    expect(outcome).toMatchObject({ kind: 'refused', reason: 'needs_login' })
    await until(() => recorder.closedWith !== null)
    expect(recorder.closedWith).toMatchObject({ status: 'needs_login' })
  })
})

describe('a logout', () => {
  const unknown = '401 AUTH_KEY_UNREGISTERED'

  async function leave(error: string, times: number) {
    const place = await open()
    const { centre, platform, store } = place
    centre.refusals.add({ on: 'auth.logOut', error, times })
    const session = (await store.readSession()) ?? Buffer.alloc(0)
    return { ...place, outcome: await platform.logout?.({ session, proxy: null }) }
  }

  test('of a login that Telegram does not know for a moment ends it', async () => {
    const { outcome, platform, account } = await leave(unknown, 2)
    expect(outcome).toEqual({ kind: 'accepted', value: null })
    // The key is no longer that of the account.
    expect(await platform.connect(account, new Recorder())).toMatchObject({ cause: 'doubtful' })
  })

  test.each([
    [unknown, 3],
    ['401 SESSION_REVOKED', 1],
  ])('of a login that is over already (%s) believes it at answer %i', async (error, tries) => {
    const { outcome, centre } = await leave(error, 10)
    expect(outcome).toEqual({ kind: 'accepted', value: null })
    for (let n = tries; n < 10; n++) expect(centre.refusals.take('auth.logOut', account_id)).toBeDefined()
    expect(centre.refusals.waiting).toBe(0)
  })
})

function begin(
  platform: ReturnType<typeof telegramPlatform>,
  request: { phone: string | null; session_string?: string; proxy?: AccountProxy },
) {
  const steps: LoginStep[] = []
  const login = platform.login?.({ proxy: null, ...request }, (step) => void steps.push(step)) as Login
  onTestFinished(() => login.close())
  return { steps, login }
}

/** A login by phone, with the ways in which its code is sent. */
async function logIn(ways: readonly CodeWay[], { password }: { password?: string } = {}) {
  const place = await open()
  const { centre, platform } = place
  centre.store.commit({ entry: 'codes', phone: phone.slice(1), plan: { ways, timeout_seconds: 0 } })
  if (password) centre.store.commit({ entry: 'password', account_id, password })
  const { steps, login } = begin(platform, { phone })
  const next = async (count: number) => {
    await until(() => steps.length >= count)
    return steps[count - 1]
  }
  return { ...place, steps, login, next }
}

describe('a code', () => {
  test.each([
    ['email', '123 45', { sent_by: 'email', place: 'm***a@example.org' }],
    ['phrase', ' seven pelicans sleep\n', { sent_by: 'phrase' }],
    ['word', 'pelican', { sent_by: 'word' }],
    ['fragment', '12345', { sent_by: 'fragment', place: 'https://fragment.example/number/1' }],
    ['missed_call', '12345', { sent_by: 'missed_call' }],
  ] as const)('by %s is what a person types', async (way, typed, step) => {
    const { login, next } = await logIn([way])
    expect(await next(1)).toMatchObject({ kind: 'code', wrong: false, again: null, ...step })
    login.answer(typed)
    expect(await next(2)).toMatchObject({ kind: 'done' })
  })

  test('is sent again by the next way after an empty answer', async () => {
    const { login, next } = await logIn(['app', 'sms', 'call'])
    expect(await next(1)).toMatchObject({ sent_by: 'app', again: { by: 'sms', at: expect.any(String) } })
    login.answer('')
    expect(await next(2)).toMatchObject({ sent_by: 'sms', again: { by: 'call' } })
    login.answer(' ')
    expect(await next(3)).toMatchObject({ sent_by: 'call', again: null })
    login.answer('')
    // There is no other way left, so it is a code like any other.
    expect(await next(4)).toMatchObject({ sent_by: 'call', wrong: true })
    login.answer('12345')
    expect(await next(5)).toMatchObject({ kind: 'done' })
  })

  test.each([
    ['406 SEND_CODE_UNAVAILABLE', null],
    ['420 FLOOD_WAIT_300', 300],
  ])('stays valid where Telegram refuses to send another (%s)', async (error, seconds) => {
    const { centre, login, next } = await logIn(['app', 'sms'])
    const first = await next(1)
    if (first?.kind !== 'code') throw new Error(JSON.stringify(first))
    centre.refusals.add({ on: 'auth.resendCode', error })
    const askedAt = Date.now()
    login.answer('')
    const second = await next(2)
    if (second?.kind !== 'code') throw new Error(JSON.stringify(second))
    const { again, ...question } = second
    expect(question).toEqual({ kind: 'code', sent_by: 'app', wrong: false, place: null })
    expect(again?.by).toBe(seconds === null ? undefined : 'sms')
    if (seconds !== null) expect(Date.parse(again?.at ?? '') - askedAt).toBeGreaterThanOrEqual(seconds * 1000)
    login.answer('12345')
    expect(await next(3)).toMatchObject({ kind: 'done' })
  })

  test('that has to be paid for says so', async () => {
    const { next } = await logIn(['payment'])
    expect(await next(1)).toMatchObject({ kind: 'failed', reason: 'payment_required' })
  })

  test('is asked for again when Telegram wants the login to begin again, and not for ever', async () => {
    const { centre, login, next } = await logIn(['app'])
    expect(await next(1)).toMatchObject({ kind: 'code' })
    centre.refusals.add({ on: 'auth.signIn', error: '500 AUTH_RESTART', times: 3 })
    for (const step of [2, 3]) {
      login.answer('12345')
      expect(await next(step)).toMatchObject({ kind: 'code', wrong: false })
    }
    login.answer('12345')
    expect(await next(4)).toMatchObject({ kind: 'failed', detail: 'AUTH_RESTART' })
  })

  test('that Telegram refused at first and then sent is asked for until the connection is lost', async () => {
    const { centre, platform } = await open()
    centre.refusals.add({ on: 'auth.sendCode', error: '500 AUTH_RESTART' })
    const way = await openProxy('socks5')
    const { steps } = begin(platform, { phone, proxy: loopback('socks5', way) })
    await until(() => steps.length === 1)
    expect(steps).toMatchObject([{ kind: 'code' }])
    way.cut()
    await until(() => steps.length === 2)
    expect(steps[1]).toMatchObject({ kind: 'failed', reason: 'connection_lost' })
  })
})

test('a password whose question has changed since is proven again', async () => {
  for (const error of ['SRP_ID_INVALID', 'SRP_PASSWORD_CHANGED']) {
    const { centre, login, next } = await logIn(['app'], { password: 'horse' })
    await next(1)
    login.answer('12345')
    expect(await next(2)).toMatchObject({ kind: 'password', wrong: false })
    centre.refusals.add({ on: 'auth.checkPassword', error })
    login.answer('horse')
    expect(await next(3)).toMatchObject({ kind: 'done' })
  }
})

test('pages of chats that end with channels lose no chat', async () => {
  const { centre, world, connect } = await open()
  const people: string[] = []
  const second = (n: number) => new Date(Date.UTC(2026, 10, 1) + n * 1000).toISOString()
  for (let n = 0; n < 40; n++) {
    const { person_id } = world.addPerson({ name: `Person ${n}` })
    writeMessage(world, { account_id, person_id, text: 'Hello' })
    people.push(String(person_id))
    const { channel_id } = centre.addChannel({ title: `News ${n}`, account_ids: [account_id] })
    await centre.writeInChannel({ channel_id, person_id, text: 'News', at: second(n % 3) })
  }
  const { session } = await connect()
  const listed: ListedChat[] = []
  for (let after: string | null = null, pages = 0; pages < 100; pages++) {
    const page: ChatPage = taken(await session.chats({ after, limit: 7 }))
    listed.push(...page.chats)
    after = page.next
    if (after === null) break
  }
  expect(listed.map(({ chat }) => chat.id).sort()).toEqual(people.sort())
})

describe('the service chat', () => {
  test('is in no list, history, search of people or update but the one that a code came', async () => {
    const { world, store, write, connect } = await open()
    writeFromTelegram(world, account_id, 'Login code: 11111')
    write('Hello')
    const { session, recorder } = await connect()
    expect(taken(await session.chats({ after: null, limit: 50 })).chats).toHaveLength(1)
    writeFromTelegram(world, account_id, 'Login code: 48151')
    write('Hello again')
    await until(() => recorder.messages.length === 1)
    expect(recorder.of('login_code')).toEqual([{ kind: 'login_code', at: expect.any(String) }])
    expect(JSON.stringify(recorder.updatesTaken)).not.toContain('48151')
    const chat_id = `${serviceId}` as const
    expect(await session.history({ chat_id, before: null, limit: 5 })).toMatchObject({ kind: 'refused' })
    expect(await session.resolve({ kind: 'phone', value: '+42777' })).toMatchObject({ kind: 'refused' })
    expect(await session.resolve({ kind: 'id', value: chat_id })).toMatchObject({ kind: 'refused' })
    expect(await session.openChat(chat_id)).toMatchObject({ kind: 'refused' })
    expect(store.peers.has(chat_id)).toBe(false)
  })

  test('says that a code came while the account was away', async () => {
    const { world, platform, account, write, connect } = await open()
    const { session, recorder } = await connect()
    await until(() => recorder.position !== null)
    await session.close()
    writeFromTelegram(world, account_id, 'Login code: 48151')
    write('Hello')
    const later = recorder.continued()
    const again = taken(await platform.connect({ ...account, position: recorder.position }, later))
    await until(() => later.messages.length === 1)
    expect(later.of('login_code')).toHaveLength(1)
    expect(JSON.stringify(later.updatesTaken)).not.toContain('48151')
    await again.close()
  })
})

describe('strangers who write in supergroups', () => {
  const posts = Number(process.env.TEST_STRANGERS ?? 600)

  test('cost no batch and are not kept, and a reply comes through at once', async () => {
    const { centre, world, store, write, connect } = await open()
    const channels = Array.from({ length: 10 }, (_, n) =>
      centre.addChannel({ title: `Group ${n}`, account_ids: [account_id] }),
    )
    const { recorder } = await connect()
    await until(() => recorder.position !== null)
    const [kept, handed] = [store.peers.size, recorder.handed]
    const strangers = Array.from(
      { length: 50 },
      (_, n) => world.addPerson({ name: `Stranger ${n}` }).person_id,
    )
    for (let n = 0; n < posts; n++) {
      const channel_id = channels[n % channels.length]?.channel_id ?? 0
      await centre.writeInChannel({ channel_id, person_id: strangers[n % 50] ?? 0, text: `Post ${n}` })
    }
    write('A reply')
    await until(() => recorder.messages.length === 1)
    // The reply is one; it brings one person.
    expect(recorder.handed - handed).toBeLessThanOrEqual(1 + posts / 100)
    expect(store.peers.size - kept).toBe(1)
    expect(recorder.closedWith).toBeNull()
  })

  test('are not kept when the list of chats brings the last message of each supergroup', async () => {
    const { centre, world, store, connect } = await open()
    const { person_id } = world.addPerson({ name: 'Stranger' })
    const { channel_id } = centre.addChannel({ title: 'Group', account_ids: [account_id] })
    await centre.writeInChannel({ channel_id, person_id, text: 'Post' })
    const { session } = await connect()
    const kept = store.peers.size
    taken(await session.chats({ after: null, limit: 50 }))
    expect(store.peers.size).toBe(kept)
  })
})

describe('the session of another program', () => {
  test('becomes a session of ours, which connects', async () => {
    const { platform, key, account } = await open()
    const { steps } = begin(platform, { phone: null, session_string: telethon(key) })
    await until(() => steps.length === 1)
    const [done] = steps
    if (done?.kind !== 'done') throw new Error(JSON.stringify(done))
    expect(done.self).toMatchObject({ kind: 'self', phone })
    const store = new MemoryAccountStore(done.session)
    await taken(await platform.connect({ ...account, store }, new Recorder())).close()
  })

  test.each<[string, string, (place: Pick<Stage, 'centre'>) => void]>([
    ['session_string_invalid', 'text', () => {}],
    ['session_ended', 'unknown key', () => {}],
    [
      'session_duplicated',
      'AUTH_KEY_DUPLICATED',
      ({ centre }) => centre.refusals.add({ on: 'users.getUsers', error: '406 AUTH_KEY_DUPLICATED' }),
    ],
    [
      'session_ended',
      'SESSION_REVOKED',
      ({ centre }) => centre.refusals.add({ on: 'users.getUsers', error: '401 SESSION_REVOKED' }),
    ],
  ])('is refused as %s (%s), and its string is in no report', async (reason, what, prepare) => {
    const { platform, key, centre } = await open()
    prepare({ centre })
    const string = what === 'text' ? 'no session' : telethon(what === 'unknown key' ? randomBytes(256) : key)
    const { steps } = begin(platform, { phone: null, session_string: string })
    await until(() => steps.length === 1)
    expect(steps).toMatchObject([{ kind: 'failed', reason }])
    expect(JSON.stringify(steps)).not.toContain(string)
  })
})
