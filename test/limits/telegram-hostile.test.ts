/**
 * A hostile network against every state of a Telegram session: it ends or continues before its deadline, which is short here,
 * and leaves nothing behind. `TEST_TELEGRAM_ROUNDS=10 TEST_TELEGRAM_CUTS=200` runs it in full.
 */
import { createHook } from 'node:async_hooks'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as sleep } from 'node:timers/promises'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { FilePlace, LoginStep, Outcome, Session } from '../../src/platform/port.ts'
import { makeFile } from '../../src/platform/sandbox/control-files.ts'
import { writeMessage } from '../../src/platform/sandbox/person-acts.ts'
import { openWorld } from '../../src/platform/sandbox/world.ts'
import { heldAccount, MemoryAccountStore } from '../platform/account-store.ts'
import { hashOf, readAll } from '../platform/conformance-downloads.ts'
import { Recorder, within } from '../platform/conformance-recorder.ts'
import { telegramAt, trust } from '../platform/data-centre-fixture.ts'
import { openDataCentre } from '../platform/mtproto/data-centre.ts'
import { type HostileCase, hostileNames } from '../platform/mtproto/hostility.ts'

const rounds = Number(process.env.TEST_TELEGRAM_ROUNDS ?? 1)
const cuts = Number(process.env.TEST_TELEGRAM_CUTS ?? 20)
/** More than all deadlines of one step together, on a busy machine. */
const msMax = 60_000
const phone = '+9996620001'
const file = { size: 600_000, seed: 3 }
const bytesMax = 1024 * 1024
/** A quarter of the shortest deadline (`briefTelegram`). */
const stalledMsMax = 500

const unhandled: unknown[] = []
const note = (error: unknown) => void unhandled.push(error)
/** Timers and sockets that are not destroyed. */
const alive = new Set<number>()
const hook = createHook({
  init: (id, type) => {
    if (type === 'Timeout' || type === 'TCPWRAP') alive.add(id)
  },
  destroy: (id) => void alive.delete(id),
})

beforeAll(() => {
  setFlagsFromString('--expose-gc')
  process.on('unhandledRejection', note)
  hook.enable()
})
afterAll(() => {
  hook.disable()
  process.off('unhandledRejection', note)
})

function heapBytes(): number {
  const collect = runInNewContext('gc') as () => void
  collect()
  collect()
  return process.memoryUsage().heapUsed
}

/** Two accounts of one data centre, of which one suffers. */
async function openScene() {
  const world = openWorld({ data_dir: null })
  const centre = await openDataCentre(world, { port: 0, data_dir: null })
  trust(centre.public_pem)
  const platform = telegramAt(centre.port)
  const { person_id } = world.addPerson({ name: 'Mara Lind', username: 'mara_lind' })
  const sessions = new Set<Session>()
  const [sick, well] = ['acc_sick', 'acc_well'].map((account_id) => {
    world.addAccount({
      account_id,
      name: account_id,
      phone: account_id === 'acc_sick' ? phone : '+9996620002',
    })
    const key = Buffer.from(centre.makeKey(account_id)).toString('base64')
    const blob = Buffer.from(JSON.stringify({ version: 1, dc_id: 2, key, places: {} }))
    const store = new MemoryAccountStore(Buffer.from(blob))
    const connect = async (recorder: Recorder) => {
      const account = { ...heldAccount({ account_id, name: 'x', store }), position: recorder.position }
      const outcome = await platform.connect(account, recorder)
      if (outcome.kind === 'accepted') sessions.add(outcome.value)
      return outcome
    }
    const write = (text: string, sent?: Parameters<typeof makeFile>[0]) =>
      writeMessage(world, { account_id, person_id, text, ...(sent && { file: makeFile(sent) }) })
    const hasKey = () => Buffer.from(store.session ?? '').equals(blob)
    return { account_id, connect, write, hasKey }
  }) as [Account, Account]
  return {
    world,
    centre,
    platform,
    sick,
    well,
    chat_id: `${person_id}` as const,
    async close() {
      for (const session of sessions) await session.close()
      for (let n = 0; n < 1000 && centre.connections().length > 0; n++) await sleep(10)
      const left = centre.connections()
      await centre.close()
      await world.close()
      if (left.length > 0) throw new Error(`${left.length} sockets are left.`)
    },
  }
}

interface Account {
  readonly account_id: string
  connect(recorder: Recorder): Promise<Outcome<Session>>
  write(text: string, file?: Parameters<typeof makeFile>[0]): number
  hasKey(): boolean
}

type Scene = Awaited<ReturnType<typeof openScene>>

/** The deadlines are short: on a busy machine a call may need another try. */
async function eventually(holds: () => Promise<boolean>, problem: string): Promise<void> {
  for (let n = 0; n < 10; n++) if (await holds()) return
  throw new Error(problem)
}

async function connected(account: Account, recorder = new Recorder()): Promise<Session> {
  let session: Session | undefined
  await eventually(async () => {
    const outcome = await account.connect(recorder)
    if (outcome.kind === 'accepted') session = outcome.value
    must(outcome.kind !== 'refused', `The account is refused: ${JSON.stringify(outcome)}`)
    return session !== undefined
  }, 'The account does not connect.')
  return session as Session
}

function must(holds: boolean, problem: string): void {
  if (!holds) throw new Error(problem)
}

let random = 1

/** Numbers that follow from the seed, below 1. */
function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0
    return state / 2 ** 32
  }
}

function send(session: Session, chat_id: Scene['chat_id']) {
  return session.send({ chat_id, text: 'Hello', file: null, random_id: `${random++}` })
}

/** In which state of the session the case happens, and what must hold afterwards. */
const states: Record<string, (scene: Scene, name: HostileCase) => Promise<void>> = {
  async dialling({ centre, sick }, name) {
    centre.hostilities.add({ case: name, on: 'accept' })
    await sick.connect(new Recorder())
  },

  async connecting({ centre, sick }, name) {
    centre.hostilities.add({ case: name, on: 'users.getUsers', account_id: sick.account_id })
    await sick.connect(new Recorder())
  },

  async 'finding its place'({ centre, sick }, name) {
    centre.hostilities.add({ case: name, on: 'updates.getState', account_id: sick.account_id })
    await sick.connect(new Recorder())
  },

  async idle({ centre, sick }, name) {
    const session = await connected(sick)
    centre.strike(sick.account_id, name)
    await session.ping()
  },

  async sending({ centre, sick, chat_id, world }, name) {
    sick.write('Hello, who is this?')
    const recorder = new Recorder()
    const session = await connected(sick, recorder)
    await session.resolve({ kind: 'username', value: 'mara_lind' })
    centre.hostilities.add({ case: name, on: 'messages.sendMessage', account_id: sick.account_id })
    const { kind } = await send(session, chat_id)
    must(kind === 'unknown' || kind === 'accepted', `The send is ${kind}.`)
    must(world.journal(0).length > 0, 'The message was processed.')
    await session.ping()
  },

  async 'fetching a difference'({ centre, sick }, name) {
    const recorder = new Recorder()
    const first = await connected(sick, recorder)
    await recorder.until(() => recorder.position !== null)
    await first.close()
    sick.write('While you were away')
    centre.hostilities.add({ case: name, on: 'updates.getDifference', account_id: sick.account_id })
    const second = recorder.continued()
    const session = await connected(sick, second)
    for (let n = 0; n < 600 && !second.closedWith && second.handed === 0; n++) await sleep(10)
    await session.close()
    const third = new Recorder(second.position)
    third.updatesTaken.push(...second.updatesTaken)
    await connected(sick, third)
    await third.until(() => third.texts.length > 0)
    must(third.texts.length === 1, 'The message came more than once.')
  },

  async downloading({ centre, sick, chat_id }, name) {
    const message_id = String(sick.write('', file))
    const place: FilePlace = { chat_id, message_id, index: 0 }
    const recorder = new Recorder()
    const session = await connected(sick, recorder)
    centre.hostilities.add({ case: name, on: 'upload.getFile', account_id: sick.account_id })
    const outcome = await session.download(place)
    if (outcome.kind === 'accepted') {
      const { sha256, end } = await readAll(outcome.value)
      must(end !== undefined || sha256 === hashOf(file.size, file.seed), 'The file is another one.')
    }
    await eventually(() => session.ping(), 'A download has ended its session.')
    must(recorder.closedWith === null, 'A download has ended its session.')
  },
}

for (const step of ['mt_req_pq_multi', 'mt_req_DH_params', 'mt_set_client_DH_params']) {
  states[`agreeing on a key, ${step}`] = async ({ centre, platform }, name) => {
    centre.hostilities.add({ case: name, on: step, times: 2 })
    const ended = Promise.withResolvers<LoginStep>()
    const login = platform.login?.({ phone, proxy: null }, ended.resolve)
    await ended.promise
    await login?.close()
  }
}

/** What is wrong afterwards; undefined: nothing. */
async function run(suffer: (scene: Scene) => Promise<void>): Promise<string | undefined> {
  const scene = await openScene()
  const { sick, well, centre, chat_id } = scene
  try {
    const beside = new Recorder()
    const other = await connected(well, beside)
    await other.resolve({ kind: 'username', value: 'mara_lind' })
    await within(msMax, suffer(scene))
    must(sick.hasKey(), 'The key is lost.')
    const isSent = async () => (await send(other, chat_id)).kind === 'accepted'
    await eventually(isSent, 'The other account cannot send.')
    must(beside.closedWith === null, 'The other account lost its session.')
    centre.hostilities.clear()
    const session = await connected(sick)
    await eventually(() => session.ping(), 'The account does not come back.')
    await scene.close()
    return undefined
  } catch (error) {
    await scene.close().catch(() => {})
    return (error as Error).stack
  }
}

/**
 * Every case at once. Deadlines are short here, so to a process that gets no processor for that long everything is silent:
 * then what failed is run again, one case after the other, and that counts.
 */
async function runAll(state: string): Promise<Record<string, string>> {
  const suffer = (name: HostileCase) => run((scene) => states[state]?.(scene, name) ?? Promise.resolve())
  const delay = monitorEventLoopDelay({ resolution: 20 })
  delay.enable()
  const problems: Record<string, string | undefined> = {}
  await Promise.all(
    hostileNames.map(async (name) => {
      problems[name] = await suffer(name)
    }),
  )
  delay.disable()
  const stalledMs = delay.max / 1e6
  const failed = hostileNames.filter((name) => problems[name] !== undefined)
  for (const name of stalledMs > stalledMsMax ? failed : []) {
    process.stdout.write(
      `${state}, ${name}: again, because the process stalled for ${stalledMs.toFixed()} ms\n`,
    )
    problems[name] = await suffer(name)
  }
  return Object.fromEntries(Object.entries(problems).flatMap(([name, each]) => (each ? [[name, each]] : [])))
}

/** How many timers and sockets there are once no more than `expected` are left, or after ten seconds. */
async function countAlive(expected = 0): Promise<number> {
  for (let n = 0; n < 2000 && alive.size > expected; n++) {
    // A closed socket counts as destroyed once it is collected.
    if (n % 100 === 50) heapBytes()
    await sleep(10)
    // The timer of the sleep itself is gone by then.
    await new Promise(setImmediate)
  }
  return alive.size
}

describe.each(Object.keys(states))('a session that is %s', (state) => {
  test(
    'survives every hostile case or ends, and leaves nothing behind',
    async () => {
      const before = await countAlive(1)
      expect(await runAll(state)).toEqual({})
      const heap = heapBytes()
      for (let n = 1; n < rounds; n++) expect(await runAll(state)).toEqual({})
      expect(unhandled).toEqual([])
      const after = await countAlive(before)
      const grown = heapBytes() - heap
      process.stdout.write(
        `${state}: ${before} timers and sockets before, ${after} after, heap ${grown} bytes more\n`,
      )
      expect(after).toBeLessThanOrEqual(before)
      expect(grown).toBeLessThan(bytesMax)
    },
    rounds * 180_000,
  )
})

test('a call whose answers cannot be unpacked ends at its deadline', async () => {
  const suffer = async ({ centre, sick, chat_id }: Scene) => {
    const session = await connected(sick)
    await session.resolve({ kind: 'username', value: 'mara_lind' })
    centre.hostilities.add({ case: 'bomb', on: 'messages.sendMessage', times: 1000 })
    must((await within(msMax / 3, send(session, chat_id))).kind === 'unknown', 'The send has an outcome.')
    centre.hostilities.clear()
  }
  expect(await run(suffer)).toBeUndefined()
})

/** Sends, reads and downloads at the same time, until the connection is cut somewhere. */
async function cutSomewhere({ centre, sick, chat_id }: Scene, seed: number): Promise<void> {
  const chance = seeded(seed)
  const message_id = String(sick.write('Hello, who is this?', file))
  const kinds: HostileCase[] = ['cut', 'truncated', 'half_open', 'silence', 'flipped']
  const name = kinds[Math.floor(chance() * kinds.length)] ?? 'cut'
  const after = Math.floor(chance() * 16)
  centre.hostilities.add({ case: name, on: 'any', after, account_id: sick.account_id })
  const outcome = await sick.connect(new Recorder())
  if (outcome.kind !== 'accepted') return
  const session = outcome.value
  await session.resolve({ kind: 'username', value: 'mara_lind' })
  const work: Promise<unknown>[] = [
    send(session, chat_id),
    send(session, chat_id),
    session.history({ chat_id, before: null, limit: 50 }),
    session.chats({ after: null, limit: 100 }),
    session.ping(),
    session.download({ chat_id, message_id, index: 0 }).then(async (outcome) => {
      if (outcome.kind === 'accepted') await readAll(outcome.value)
    }),
  ]
  sick.write('One more')
  await Promise.all(work)
}

describe('memory', () => {
  test(
    `is the same after ${cuts} seeded cuts`,
    async () => {
      const seed = Number(process.env.TEST_TELEGRAM_SEED ?? Date.now() % 1_000_000)
      const runSome = async (count: number, from: number) => {
        const problems: string[] = []
        const seeds = Array.from({ length: count }, (_, n) => from + n)
        // A few at a time: silence waits for its deadline.
        for (let n = 0; n < seeds.length; n += 5) {
          const some = seeds.slice(n, n + 5).map(async (each) => {
            const problem = await run((scene) => cutSomewhere(scene, each))
            if (problem !== undefined) problems.push(`seed ${each}: ${problem}`)
          })
          await Promise.all(some)
        }
        return problems
      }
      expect(await runSome(10, seed - 10)).toEqual([])
      const before = await countAlive(1)
      const heap = heapBytes()
      expect(await runSome(cuts, seed)).toEqual([])
      expect(unhandled).toEqual([])
      const after = await countAlive(before)
      const grown = heapBytes() - heap
      process.stdout.write(
        `seed ${seed}: ${before} timers and sockets before, ${after} after, heap ${grown} bytes more\n`,
      )
      expect(after).toBeLessThanOrEqual(before)
      expect(grown).toBeLessThan(bytesMax)
    },
    180_000 + cuts * 5_000,
  )

  test('is the same after every hostile case', async () => {
    expect(await runAll('sending')).toEqual({})
    const heap = heapBytes()
    expect(await runAll('sending')).toEqual({})
    expect(heapBytes() - heap).toBeLessThan(bytesMax)
  })
})
