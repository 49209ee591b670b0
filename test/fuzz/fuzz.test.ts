import { Agent, request } from 'node:http'
import { connect } from 'node:net'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { apiPrefix } from '../../src/contract.ts'
import { errors } from '../../src/lib/errors.ts'
import { makeRandom, type Random } from '../faults/random.ts'
import {
  always,
  type CheckedAnswer,
  findUndocumented,
  findUnsound,
  isDocumented,
} from '../harness/documented.ts'
import { makeRaw } from './raw.ts'
import { type FuzzRequest, makeRequest } from './requests.ts'
import { type Stage, setStage, type Voice } from './stage.ts'

const wanted = Number(process.env.FUZZ_REQUESTS ?? 1_000)
const seed = Number(process.env.FUZZ_SEED ?? 1)
/** Far more than a slow machine takes for one. */
const msMax = 60_000 + wanted * 100
const clients = 8

let stage: Stage
const agent = new Agent({ keepAlive: true, maxSockets: clients })
beforeAll(async () => {
  stage = await setStage()
}, 300_000)
afterAll(async () => {
  agent.destroy()
  await stage.workplace.close()
})

function printCounts(seen: ReadonlyMap<string, number>): void {
  const counts = [...seen].sort().map(([label, count]) => `${label}: ${count}`)
  process.stdout.write(`${counts.join(', ')}\n`)
}

interface FuzzAnswer extends CheckedAnswer {
  readonly text: string
}

/** The path goes on the wire unchanged; `fetch` would normalise it. */
function ask({ method, path, headers, body }: FuzzRequest): Promise<FuzzAnswer> {
  const { hostname, port } = new URL(stage.workplace.service.url)
  const length = body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }
  return new Promise((resolve, reject) => {
    const asked = request(
      { hostname, port, method, path: `${apiPrefix}${path}`, headers: { ...headers, ...length }, agent },
      (response) => {
        let text = ''
        response.setEncoding('utf8').on('data', (piece: string) => {
          text += piece
        })
        response.on('error', reject)
        response.on('end', () => {
          const given = new Headers(
            Object.entries(response.headers).map(([name, value]) => [name, String(value)]),
          )
          resolve({
            status: response.statusCode ?? 0,
            headers: given,
            // An export is an archive.
            body: text && given.get('content-type')?.includes('json') ? JSON.parse(text) : {},
            text,
          })
        })
      },
    )
    asked.on('error', reject)
    asked.setTimeout(60_000, () => asked.destroy(new Error('No answer for a minute.')))
    asked.end(body)
  })
}

function problemOf(asked: FuzzRequest, { forbidden }: Voice, answer: FuzzAnswer): string | undefined {
  const what = `${asked.method} ${asked.path} answered ${answer.status}`
  if (answer.status >= 500 && answer.status !== 503) return `${what}: ${answer.text}`
  const missing = always.find((name) => !answer.headers.has(name))
  if (missing) return `${what} without ${missing}.`
  const shown = forbidden.find((text) => answer.text.includes(text))
  if (shown) return `${what} with something of another workspace.`
  if (isDocumented(asked.path)) return findUndocumented(asked.method, asked.path, answer)
  if (answer.status < 400) return `${what}, and the document has no such address.`
  return asked.method === 'HEAD' ? undefined : findUnsound(what, answer)
}

/** Mostly an account and a chat that belong together and to the caller, otherwise anything that exists. */
function knownTo(random: Random, { places }: Voice): ReadonlyMap<string, readonly unknown[]> {
  if (places.length === 0 || random.chance(0.2)) return stage.known
  const { account_id, chat_id } = random.pick(places)
  return new Map<string, readonly unknown[]>(stage.known)
    .set('account_id', [account_id])
    .set('chat_id', [chat_id])
}

/** Later requests use ids from earlier answers. */
function keep({ headers, body }: FuzzAnswer): void {
  const { next_cursor, next_before } = body as { next_cursor?: unknown; next_before?: unknown }
  for (const [name, value] of [
    ['cursor', next_cursor],
    ['before', next_before],
    ['operation_id', headers.get('x-operation-id')],
  ] as const) {
    const values = stage.known.get(name)
    if (!values || typeof value !== 'string') continue
    values.push(value)
    if (values.length > 50) values.shift()
  }
}

test(
  `${wanted} requests made from the document, with seed ${seed}: nothing that it does not name`,
  async () => {
    const random = makeRandom(seed)
    const seen = new Map<string, number>()
    const problems: string[] = []
    let left = wanted
    const go = async () => {
      while (left-- > 0 && problems.length < 20) {
        const voice = random.pick(stage.voices)
        const asked = makeRequest({
          random,
          known: knownTo(random, voice),
          authorization: voice.authorization,
        })
        const answer = await ask(asked).catch((error: Error) => error)
        if (answer instanceof Error) {
          problems.push(
            `${asked.method} ${asked.path} ${String(asked.body).slice(0, 300)}: ${answer.message}`,
          )
          continue
        }
        const problem = problemOf(asked, voice, answer)
        if (problem)
          problems.push(`${problem} | ${JSON.stringify(asked.headers)} ${String(asked.body).slice(0, 600)}`)
        const label = `${answer.status} ${(answer.body as { code?: string }).code ?? ''}`.trim()
        seen.set(label, (seen.get(label) ?? 0) + 1)
        keep(answer)
      }
    }
    await Promise.all(Array.from({ length: clients }, go))
    printCounts(seen)
    expect(problems).toEqual([])
    expect(stage.workplace.service.log.filter((line) => line.includes('"level":"error"'))).toEqual([])
    // Otherwise the generator misses its targets.
    expect((seen.get('200') ?? 0) / wanted).toBeGreaterThan(0.15)
  },
  msMax,
)

/** Sends the bytes and reads one whole answer, or until the connection ends. */
function speak(bytes: Buffer): Promise<string> {
  const { hostname, port } = new URL(stage.workplace.service.url)
  return new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(Number(port), hostname)
    socket.setEncoding('latin1').on('data', (text: string) => {
      answer += text
      if (isWhole(answer)) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => resolve(answer))
    socket.setTimeout(30_000, () => {
      reject(new Error(`It hangs after ${JSON.stringify(answer.slice(0, 200))}.`))
      socket.destroy()
    })
    socket.write(bytes)
  })
}

/** Ends like one of our bodies or, for an answer to HEAD, like a head. */
function isWhole(answer: string): boolean {
  const final = answer.replace(goOn, '')
  return final.includes('\r\n\r\n') && /(?:\}|\r\n\r\n)$/.test(final)
}

const goOn = /^(HTTP\/1\.1 100 Continue\r\n\r\n)+/

/** Of the first answer; no answer at all counts as one. */
function rawProblemOf(answer: string): string | undefined {
  if (answer === '') return undefined
  const final = answer.replace(goOn, '')
  if (final === '') return undefined
  const [head = '', ...rest] = final.split('\r\n\r\n')
  const [first = '', ...lines] = head.split('\r\n')
  const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(first)?.[1])
  if (Number.isNaN(status)) return 'It is no answer.'
  if (status >= 500 && status !== 503) return `It answered ${status}.`
  if (status < 400) return undefined
  const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s).slice(0, 2) as [string, string]))
  const text = rest.join('\r\n\r\n').slice(0, Number(headers.get('content-length') ?? 0))
  // An answer to HEAD has no body; what comes next is the next answer.
  if (text === '' || text.startsWith('HTTP/')) return undefined
  const body = JSON.parse(Buffer.from(text, 'latin1').toString())
  const known: readonly number[] = Object.values(errors).map(([own]) => own)
  if (!known.includes(status)) return `It answered ${status}, a status that no code has.`
  return findUnsound(`It answered ${status}`, { status, headers, body })
}

test(
  `${Math.ceil(wanted / 10)} requests that are hardly HTTP, with seed ${seed}: a refusal in the one form, or a closed connection`,
  async () => {
    const random = makeRandom(seed).fork('raw')
    const key = stage.voices[0]?.authorization?.replace('Bearer ', '') ?? ''
    const problems: string[] = []
    const seen = new Map<string, number>()
    let left = Math.ceil(wanted / 10)
    const go = async () => {
      while (left-- > 0 && problems.length < 20) {
        const bytes = makeRaw(random, key)
        const answer = await speak(bytes).catch((error: Error) => error)
        const problem = answer instanceof Error ? answer.message : rawProblemOf(answer)
        if (problem) problems.push(`${problem} | ${JSON.stringify(bytes.toString('latin1').slice(0, 600))}`)
        const label = answer instanceof Error ? 'hung' : (/ ([2-5]\d\d) /.exec(answer)?.[1] ?? 'closed')
        seen.set(label, (seen.get(label) ?? 0) + 1)
      }
    }
    await Promise.all(Array.from({ length: clients }, go))
    printCounts(seen)
    expect(problems).toEqual([])
    expect(stage.workplace.service.log.filter((line) => line.includes('"level":"error"'))).toEqual([])
    const { service } = stage.workplace
    expect((await service.get('/me', { key })).status).toBe(200)
  },
  msMax,
)
