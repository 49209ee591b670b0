/** Whether Telegram's data centre accepts connections, directly and through proxies, and what time it has. It logs in nowhere. */
import { randomBytes } from 'node:crypto'
import { connect, type Socket } from 'node:net'
import { defaultProductionDc, defaultTestDc } from '@mtcute/core/utils.js'
import { shownProxy } from '../../lib/proxy-url.ts'
import type { ReachOptions, ReachProblem } from '../module.ts'
import type { AccountProxy } from '../port.ts'
import { dialThrough, type Place, ProxyFailed } from './dial.ts'
import type { Dc } from './open.ts'
import { explainClock } from './server-clock.ts'

const connectMsMax = 10_000

export async function findUnreached(
  dc: Dc | 'test' | null,
  { proxies, direct }: Pick<ReachOptions, 'proxies' | 'direct'>,
): Promise<readonly ReachProblem[]> {
  const { ipAddress, port } = (dc === 'test' ? defaultTestDc : defaultProductionDc).main
  const target = dc === null || dc === 'test' ? { address: ipAddress, port } : dc
  const [ownWay, ...throughProxies] = await Promise.all([
    direct ? lookDirectly(target) : undefined,
    ...proxies.map((proxy) => lookThrough(proxy, target)),
  ])
  // A tenant's proxy can make up a time, so with a way of our own theirs do not count, and otherwise the nearest one does.
  const ways = ownWay ? [ownWay] : throughProxies // guard: the doctor asks the time through a proxy
  return [
    ...[ownWay, ...throughProxies].flatMap((way) => (way && 'problem' in way ? [way] : [])),
    ...compareClocks(
      ways.flatMap((way) => ('seconds' in way && way.seconds !== undefined ? [way.seconds] : [])),
    ),
  ]
}

/** Without seconds: Telegram answers, and says nothing of the time. */
type Reached = { readonly seconds: number | undefined }
type Way = ReachProblem | Reached

async function lookDirectly({ address, port }: Place): Promise<Way> {
  const answer = await askTime(connect({ host: address, port }))
  if ('seconds' in answer) return answer
  return {
    problem: `Telegram's data centre at ${address}:${port} accepts no connection (${answer.failure}).`,
  }
}

async function lookThrough(proxy: AccountProxy, target: Place): Promise<Way> {
  try {
    const answer = await askTime(await dialThrough(proxy, target, AbortSignal.timeout(connectMsMax)))
    if ('seconds' in answer) return answer
    return {
      problem: `The proxy ${shownProxy(proxy)} does not lead to Telegram's data centre (${answer.failure}).`,
    }
  } catch (error) {
    if (error instanceof ProxyFailed) return { problem: error.message }
    throw error
  }
}

/** Every answer carries Telegram's time. */
function compareClocks(times: readonly number[]): readonly ReachProblem[] {
  const offsets = times.map((seconds) => seconds - Date.now() / 1000)
  const [nearest = 0] = offsets.toSorted((one, other) => Math.abs(one) - Math.abs(other))
  const problem = explainClock(nearest) // guard: the doctor compares the clocks
  return problem === undefined ? [] : [{ problem, advice: 'Let this machine set its clock by NTP.' }]
}

type TimeAnswer = Reached | { readonly failure: string }

/** `req_pq_multi`, the first step of a key exchange, which needs no key and leaves nothing behind. */
function requestOf(): Buffer {
  const frame = Buffer.alloc(48)
  frame.writeUInt32LE(0xee_ee_ee_ee, 0) // the intermediate transport
  frame.writeUInt32LE(40, 4)
  frame.writeUInt32LE((randomBytes(4).readUInt32LE() & ~3) >>> 0, 16)
  frame.writeUInt32LE(Math.floor(Date.now() / 1000), 20)
  frame.writeUInt32LE(20, 24)
  frame.writeUInt32LE(0xbe_7e_8e_f1, 28)
  randomBytes(16).copy(frame, 32)
  return frame
}

/** Behind the length of the frame and eight bytes of no key comes the message id, whose upper half is the time. */
const timeAt = 4 + 8 + 4

function askTime(socket: Socket): Promise<TimeAnswer> {
  return new Promise((resolve) => {
    let received = Buffer.alloc(0)
    const end = (answer: TimeAnswer) => {
      socket.destroy()
      resolve(answer)
    }
    // Before it is connected, Node keeps what is written.
    socket.write(requestOf())
    socket.on('data', (bytes) => {
      received = Buffer.concat([received, bytes])
      if (received.length >= timeAt + 4) {
        const isTelegram = received.readBigUInt64LE(4) === 0n
        end(isTelegram ? { seconds: received.readUInt32LE(timeAt) } : { failure: 'another service answers' })
      }
      // A transport error.
      else if (received.length >= 8 && received.readUInt32LE(0) === 4) end({ seconds: undefined })
    })
    socket.setTimeout(connectMsMax, () => end({ failure: 'timeout' }))
    socket.once('error', (error: NodeJS.ErrnoException) => end({ failure: error.code ?? 'error' }))
    socket.once('close', () => end({ failure: 'closed' }))
  })
}
