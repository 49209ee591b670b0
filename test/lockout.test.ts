/** No one is locked out: people sign in during attacks, and new connections are served while others hold thousands. */
import { createServer, request as httpRequest, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { createUser } from '../src/capabilities/users/users.ts'
import { hashPassword } from '../src/lib/passwords.ts'
import { crowdQueue } from './harness/crowd.ts'
import { copyDatabase } from './harness/database.ts'
import { endProcesses, hangMs, spawnParley, until } from './harness/process.ts'
import { openService, type Service } from './harness/service.ts'
import { testSecret } from './harness/worker.ts'

const password = 'correct horse battery'
const crowded = 'Too many people are signing in right now.'

let service: Service
let proxy: Proxy
beforeAll(async () => {
  service = await openService({ env: { PARLEY_TRUSTED_PROXIES: '127.0.0.1' } })
  proxy = await openProxy(service.url)
})
afterAll(async () => {
  await proxy.close()
  await service.close()
})

interface Proxy {
  readonly url: string
  close(): Promise<void>
}

/**
 * A reverse proxy on loopback. A header that only it knows says where its clients are; it appends that, as proxies
 * do.
 */
async function openProxy(to: string): Promise<Proxy> {
  const { hostname, port } = new URL(to)
  const server: Server = createServer((asked, answer) => {
    const { 'x-client': client, 'x-forwarded-for': forged, ...headers } = asked.headers
    const said = [forged, client].filter(Boolean).join(', ')
    const passed = httpRequest(
      {
        hostname,
        port,
        method: asked.method,
        path: asked.url,
        headers: { ...headers, 'x-forwarded-for': said },
      },
      (heard) => {
        answer.writeHead(heard.statusCode ?? 502, heard.headers)
        heard.pipe(answer)
      },
    )
    passed.on('error', () => answer.destroy())
    asked.pipe(passed)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = async () => {
    server.closeAllConnections()
    await new Promise((resolve) => server.close(resolve))
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, close }
}

interface Attempt {
  readonly email: string
  /** The client's address. */
  readonly from: string
  readonly forged?: string
  readonly device?: string
}

async function signIn({ email, from, forged, device }: Attempt) {
  const answer = await fetch(`${proxy.url}/dashboard/api/sign-in`, {
    method: 'POST',
    headers: {
      origin: proxy.url,
      'content-type': 'application/json',
      'x-client': from,
      ...(forged && { 'x-forwarded-for': forged }),
      ...(device && { cookie: device }),
    },
    body: JSON.stringify({ email, password }),
  })
  const [, known] = answer.headers.getSetCookie()
  const { error = '' } = (await answer.json()) as { error?: string }
  return { status: answer.status, error, device: known?.split(';')[0] }
}

let serial = 0
async function people(count: number): Promise<string[]> {
  const { workspace_id } = await service.tenant()
  // One hash for all: making each would take longer than the test.
  const password_hash = await hashPassword(password, { lane: 'setup', source: 'test' })
  const emails = Array.from({ length: count }, () => `person${serial++}@acme.example`)
  for (const email of emails) await createUser(service.app, 'system', { email, workspace_id, password_hash })
  return emails
}

/** This many connections sign in with unknown e-mail addresses until the test ends them. */
function attack(connections: number, from: (at: number) => string) {
  let going = true
  const heard = { crowded: 0, refused: 0, wrong: 0 }
  const all = Promise.all(
    Array.from({ length: connections }, async (_, at) => {
      while (going) {
        const { status, error } = await signIn({
          email: `${crypto.randomUUID()}@acme.example`,
          from: from(at),
        })
        if (error.startsWith(crowded)) heard.crowded++
        else if (status === 429) heard.refused++
        else heard.wrong++
        // Refusals cost the service little, and this process as much as the rest of the test.
        if (status === 429) await sleep(20)
      }
    }),
  )
  const end = async () => {
    going = false
    await all
  }
  return { heard, end }
}

describe('sign-ins under attack', () => {
  test('200 for 20 people at 20 places while 60 connections of one source try random e-mail addresses', async () => {
    const emails = await people(20)
    const { heard, end } = attack(60, () => '203.0.113.1')
    await until('the attack is under way', hangMs, () => heard.crowded + heard.refused > 0)
    const answers = await Promise.all(emails.map((email, at) => signIn({ email, from: `198.51.100.${at}` })))
    await end()
    expect(answers.map(({ status }) => status)).toEqual(Array(20).fill(200))
  })

  test('200 for a known browser while 60 sources fill the queue', async () => {
    const [email = ''] = await people(1)
    const { device = '' } = await signIn({ email, from: '198.51.100.200' })
    expect(device).toMatch(/^device=/)
    const { heard, end } = attack(60, (at) => `203.0.113.${at + 2}`)
    for (let time = 0; time < 5; time++) {
      const before = heard.crowded
      await until('the queue is full', hangMs, () => heard.crowded > before + 10)
      expect(await signIn({ email, from: `203.0.113.${time + 2}`, device })).toMatchObject({ status: 200 })
    }
    await end()
  })

  test('429 while the queue is full consumes no attempt', async () => {
    const [email = ''] = await people(1)
    const crowd = crowdQueue()
    // Ten are all that one source has for one user.
    for (let attempt = 0; attempt < 12; attempt++) {
      const answer = await signIn({ email, from: '198.51.100.201' })
      expect(answer).toMatchObject({ status: 429, error: expect.stringContaining(crowded) })
    }
    await crowd.end()
    expect(await signIn({ email, from: '198.51.100.201' })).toMatchObject({ status: 200 })
  })

  test('429 for one source after 100 attempts, whatever X-Forwarded-For it sends', async () => {
    const rule = { limit: 100, seconds: 900 }
    for (let taken = 0; taken < 95; taken++) await service.app.limits.take('sign-in:from:192.0.2.1', rule)
    const statuses: number[] = []
    for (let at = 0; at < 7; at++) {
      const email = `${crypto.randomUUID()}@acme.example`
      statuses.push((await signIn({ email, from: '192.0.2.1', forged: `198.51.100.${at}` })).status)
    }
    expect(statuses).toEqual([401, 401, 401, 401, 401, 429, 429])
    const [email = ''] = await people(1)
    expect(await signIn({ email, from: '192.0.2.2', forged: '192.0.2.1' })).toMatchObject({ status: 200 })
  })
})

describe('2,100 sockets, idle or with endless headers', () => {
  test('leave room: 100 of 100 new connections are served', async () => {
    const database = await copyDatabase()
    const env = { DATABASE_URL: database.url, PARLEY_SECRET: testSecret }
    const url = new URL(await spawnParley(['serve', '--port', '0'], env).ready())
    const held: Socket[] = []
    const dial = () =>
      new Promise<Socket>((resolve) => {
        const socket = connect(Number(url.port), url.hostname, () => resolve(socket))
        socket.on('error', () => {})
      })
    for (let at = 0; at < 2_100; at += 50) {
      held.push(...(await Promise.all(Array.from({ length: 50 }, dial))))
      for (const socket of held.slice(-25)) socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\nX-')
    }
    const served = await Promise.all(
      Array.from({ length: 100 }, async () => {
        const socket = await dial()
        socket.write('GET /healthz HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n')
        let heard = ''
        for await (const bytes of socket) heard += String(bytes)
        return heard.startsWith('HTTP/1.1 200')
      }),
    )
    expect(served.filter(Boolean)).toHaveLength(100)
    for (const socket of held) socket.destroy()
    await endProcesses()
    await database.drop()
  })
})
