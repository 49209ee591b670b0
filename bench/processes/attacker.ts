/**
 * One key, one member and one stranger who want as much as they can get, in their own process. A message names the attack and
 * its seconds; the answer counts what came back, by status. Each attack has the next key and session.
 */
import { randomUUID } from 'node:crypto'
import { connect } from 'node:net'
import { getPriority, setPriority } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'

interface Attacker {
  readonly url: string
  readonly keys: readonly string[]
  readonly cookies: readonly string[]
  /** Of each member, the cookies of their sessions. */
  readonly members: readonly (readonly string[])[]
  readonly workspace_id: string
  readonly account_id: string
  readonly file: string
  readonly accomplice: Accomplice
}

/** An owner of a second workspace. */
interface Accomplice {
  readonly key: string
  readonly cookie: string
  readonly workspace_id: string
  readonly account_id: string
}

const { url, keys, cookies, members, workspace_id, account_id, file, accomplice }: Attacker = JSON.parse(
  process.env.ATTACKER ?? '',
)
const { hostname, port, host } = new URL(url)
// It stands for other machines, so the service gets the processor before it.
setPriority(Math.min(19, getPriority() + 10))

type Answer = number | 'cut off'
let endsAt = 0
let answers = new Map<Answer, number>()

function count(answer: Answer): void {
  answers.set(answer, (answers.get(answer) ?? 0) + 1)
}

interface Ask {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
}

const json = { 'content-type': 'application/json' }
let byKey: Readonly<Record<string, string>> = {}
let asMember: Readonly<Record<string, string>> = {}
const pathOf = (id: string) => `/dashboard/api/w/${id}`
const workspace = pathOf(workspace_id)

async function ask(path: string, { method = 'POST', ...rest }: Ask): Promise<void> {
  try {
    const answer = await fetch(`${url}${path}`, { method, ...rest, signal: AbortSignal.timeout(30_000) })
    await answer.arrayBuffer()
    count(answer.status)
    // A refused caller that repeats at once would measure itself.
    if (answer.status === 429) await sleep(250)
  } catch {
    count('cut off')
    await sleep(100)
  }
}

async function callers(most: number, work: () => Promise<void>): Promise<void> {
  const always = async () => {
    while (performance.now() < endsAt) await work()
  }
  await Promise.all(Array.from({ length: most }, always))
}

/** Twenty beginnings of words, which match most messages. */
const costly = { keywords: [...'abcdefghijklmnopqrst'], limit: 100 }
const contacts = Array.from({ length: 5_000 }, (_, at) => ({ identifier: `@person_${at}` }))
const steps = Array.from({ length: 5 }, () => ({ branch: 'no_reply', wait_hours: 24, variants: ['Again'] }))
let made = 0

function takeTurn(at: number): void {
  byKey = { authorization: `Bearer ${keys[at % keys.length]}` }
  asMember = { cookie: cookies[at % cookies.length] ?? '', origin: url }
}

/** Each has a different text, so that none is answered from a cache. */
function campaignOf(account_id: string): string {
  const message_text = `Hello {{name|you}}, this is number ${++made}`
  return JSON.stringify({ message_text, daily_quota_per_account: 1, account_id, contacts, steps })
}
const campaign = () => campaignOf(account_id)

/** Some eight megabytes each: well-formed and refused by the schema, full of names, and valid but for its account. */
const larges = [
  { contacts: Array.from({ length: 10_000 }, () => ({ odd: 'x'.repeat(700) })) },
  {
    contacts: Array.from({ length: 5_000 }, (_, at) => ({
      identifier: 7,
      chat_id: at,
      name: 'x'.repeat(1_400),
    })),
  },
  { contacts: Array.from({ length: 4_500 }, (_, at) => oddNames(at)) },
  {
    contacts: Array.from({ length: 5_000 }, (_, at) => ({
      identifier: `+49 1517 ${1_000_000 + at}`.padEnd(1_500),
    })),
  },
].map((contacts) => JSON.stringify({ message_text: 'x', account_id: `${account_id}x`, ...contacts }))
let next = 0
const large = () => larges[next++ % larges.length] ?? ''

function oddNames(item: number): object {
  return Object.fromEntries(Array.from({ length: 150 }, (_, at) => [`k${item}${at}`, 0]))
}
/** Megabytes of a table without an entry. */
const table = `username,name\n${',,,,,,,,,,,,,,,\n'.repeat(500_000)}`

interface Hold {
  readonly bytes?: number
  /** Reads what comes, so that it notices the end of the answer. */
  readonly reads?: boolean
}

/** Sends a request, or the beginning of one, and reads nothing of its answer until the time is up. */
function hold(head: string, { bytes = 0, reads = false }: Hold = {}): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect(Number(port), hostname)
    const end = () => {
      socket.destroy()
      resolve()
    }
    const timer = setTimeout(end, Math.max(0, endsAt - performance.now()))
    socket.on('error', () => {})
    socket.on('close', () => {
      clearTimeout(timer)
      count('cut off')
      resolve()
    })
    socket.on('connect', () => {
      if (reads) socket.resume()
      else socket.pause()
      socket.write(`${head}\r\n\r\n`)
      if (bytes > 0) socket.write(Buffer.alloc(bytes, ' '))
    })
  })
}

/** Opens so many streams in all, and a new one for each that ends. */
async function holdStreams(most: number, cookies: readonly string[]): Promise<void> {
  const always = async (cookie = '') => {
    const head = request('GET /dashboard/api/stream', { cookie, origin: url, connection: 'close' })
    while (performance.now() < endsAt) {
      await hold(head, { reads: true })
      await sleep(500)
    }
  }
  await Promise.all(Array.from({ length: most }, (_, at) => always(cookies[at % cookies.length])))
}

async function holdMany(most: number, head: string, bytes = 0): Promise<void> {
  while (performance.now() < endsAt) {
    await Promise.all(Array.from({ length: most }, () => hold(head, { bytes })))
    await sleep(100)
  }
}

const request = (line: string, headers: Readonly<Record<string, string>>) =>
  [
    `${line} HTTP/1.1`,
    ...Object.entries({ host, ...headers }).map(([name, value]) => `${name}: ${value}`),
  ].join('\r\n')
const unfinished = (line: string, headers: Readonly<Record<string, string>>) =>
  request(line, { ...headers, 'content-type': 'application/json', 'content-length': '8000000' })

const tool = JSON.stringify({
  jsonrpc: '2.0',
  id: 1,
  method: 'tools/call',
  params: { name: 'service_search_messages', arguments: costly },
})
const agent = { ...json, accept: 'application/json, text/event-stream' }

const post = (path: string, headers: () => Readonly<Record<string, string>>, body: () => string) =>
  ask(path, { headers: { ...headers(), ...json, 'idempotency-key': randomUUID() }, body: body() })
const key = () => byKey
const member = () => asMember
const searching = () => JSON.stringify(costly)

type Headers = () => Readonly<Record<string, string>>

function importInto(workspace: string, headers: Headers): Promise<void> {
  return ask(`${workspace}/suppressions/import?file_name=commas.csv`, {
    headers: { ...headers(), 'content-type': 'text/csv' },
    body: table,
  })
}

interface Owner {
  readonly byKey: Headers
  readonly asMember: Headers
  readonly workspace: string
  readonly campaign: () => string
}

/** Each kind of work that holds a connection for long, at once. */
async function everything({ byKey, asMember, workspace, campaign }: Owner): Promise<void> {
  await Promise.all([
    callers(4, () => post('/api/v1/search', byKey, searching)),
    callers(4, () => post(`${workspace}/campaigns/preview`, asMember, campaign)),
    callers(4, () => post(`${workspace}/campaigns`, asMember, campaign)),
    callers(2, () => importInto(workspace, asMember)),
    callers(2, () => ask(`${workspace}/suppressions/export`, { method: 'GET', headers: asMember() })),
  ])
}

const two: readonly Owner[] = [
  { byKey: key, asMember: member, workspace, campaign },
  {
    byKey: () => ({ authorization: `Bearer ${accomplice.key}` }),
    asMember: () => ({ cookie: accomplice.cookie, origin: url }),
    workspace: pathOf(accomplice.workspace_id),
    campaign: () => campaignOf(accomplice.account_id),
  },
]

const attacks: Readonly<Record<string, () => Promise<void>>> = {
  'search, API': () => callers(40, () => post('/api/v1/search', key, searching)),
  'search, MCP': () => callers(40, () => ask('/api/mcp', { headers: { ...byKey, ...agent }, body: tool })),
  'search, dashboard': () => callers(40, () => post(`${workspace}/search`, member, searching)),
  export: () =>
    callers(20, () => ask(`${workspace}/suppressions/export`, { method: 'GET', headers: asMember })),
  'export, unread': () => holdMany(100, request(`GET ${workspace}/suppressions/export`, asMember)),
  import: () => callers(4, () => importInto(workspace, member)),
  preview: () => callers(12, () => post('/api/v1/campaigns/preview', key, campaign)),
  'preview, dashboard': () => callers(12, () => post(`${workspace}/campaigns/preview`, member, campaign)),
  creation: () => callers(20, () => post('/api/v1/campaigns', key, campaign)),
  'creation, dashboard': () => callers(20, () => post(`${workspace}/campaigns`, member, campaign)),
  'everything, two workspaces': async () => void (await Promise.all(two.map(everything))),
  'large bodies': () => callers(20, () => post('/api/v1/campaigns', key, large)),
  'large bodies, preview': () => callers(20, () => post('/api/v1/campaigns/preview', key, large)),
  'large bodies, dashboard': () => callers(20, () => post(`${workspace}/campaigns`, member, large)),
  'unfinished bodies': () => holdMany(110, unfinished('POST /api/v1/campaigns', byKey), 7_900_000),
  'unfinished, dashboard': () =>
    holdMany(110, unfinished(`POST ${workspace}/campaigns`, asMember), 7_900_000),
  'streams, one member': () => holdStreams(210, members[0] ?? []),
  'streams, many members': () => holdStreams(1_100, members.flat()),
  downloads: () => callers(20, () => ask(`/api/v1${file}`, { method: 'GET', headers: byKey })),
  'downloads, unread': () => holdMany(100, request(`GET /api/v1${file}`, byKey)),
  'downloads, dashboard': () => holdMany(100, request(`GET ${workspace}${file}`, asMember)),
  'a stranger, bodies': () =>
    holdMany(110, unfinished('POST /dashboard/api/sign-in', { origin: url }), 900_000),
  'a stranger, sign-ins': () =>
    callers(20, () =>
      ask('/dashboard/api/sign-in', {
        headers: { origin: url, ...json },
        body: JSON.stringify({ email: `${randomUUID()}@example.org`, password: 'a wrong password' }),
      }),
    ),
  'a stranger, keys': () =>
    callers(40, () =>
      ask('/api/v1/me', { method: 'GET', headers: { authorization: `Bearer ${randomUUID()}` } }),
    ),
}

let begun = 0
process.on('message', async (message: 'list' | 'stop' | { name: string; seconds: number }) => {
  if (message === 'stop') process.exit(0)
  if (message === 'list') return void process.send?.({ names: Object.keys(attacks) })
  endsAt = performance.now() + message.seconds * 1_000
  answers = new Map()
  takeTurn(begun++)
  await attacks[message.name]?.()
  process.send?.({ answers: Object.fromEntries(answers) })
})
process.send?.({ address: '' })
