/** A process that may have thirty streams (`patched.ts`). */
import { beforeAll, expect, test } from 'vitest'
import { createUser } from '../../src/capabilities/users/users.ts'
import { signIn } from '../harness/person.ts'
import { hangMs, until } from '../harness/process.ts'
import { openService, type Service, type Tenant } from '../harness/service.ts'
import { askStream, type OpenStream, openStream } from '../harness/stream.ts'

let service: Service
let one: Tenant
beforeAll(async () => {
  service = await openService()
  one = await service.tenant('One')
})

async function openMany(user_id: string, count: number): Promise<OpenStream[]> {
  const streams: OpenStream[] = []
  for (let at = 0; at < count; at += 5) {
    const cookie = await signIn(service, user_id)
    for (let n = at; n < Math.min(at + 5, count); n++) streams.push(await openStream(service, cookie))
  }
  return streams
}

async function colleague({ workspace_id }: Tenant, serial: number): Promise<string> {
  const wanted = { email: `member${serial}@one.example`, workspace_id, role: 'member' } as const
  return (await createUser(service.app, 'system', wanted)).id
}

const replaced = ({ others }: OpenStream) => others.at(-1) === 'event: replaced\ndata: {}'

test("200 for another tenant while one member has all streams: that member's oldest gives way", async () => {
  const streams = await openMany(one.user_id, 30)
  const other = await service.tenant('Other')
  const added = await openMany(other.user_id, 3)
  await Promise.all(streams.slice(0, 3).map((stream) => stream.hasEnded()))
  expect(streams.map(replaced)).toEqual(streams.map((_, at) => at < 3))
  const again = await openMany(one.user_id, 1)
  await until('its own oldest gives way', hangMs, () => streams[3] && replaced(streams[3]))
  expect([...added, ...again].filter(({ ended }) => ended)).toEqual([])
  for (const stream of [...streams, ...added, ...again]) stream.close()
  await until('all are closed', hangMs, () => streams.every(({ ended }) => ended))
})

test('503 where each user has one until one closes, and a stop waits for none of them', async () => {
  const crowd = await Promise.all(Array.from({ length: 30 }, (_, at) => colleague(one, at)))
  const opened = async () => {
    const streams: OpenStream[] = []
    for (const user_id of crowd) streams.push(...(await openMany(user_id, 1)))
    return streams
  }
  const streams = await opened()
  const cookie = await signIn(service, await colleague(one, 30))
  const refused = await askStream(service, { cookie })
  expect([refused.statusCode, refused.headers['retry-after']]).toEqual([503, '30'])
  let text = ''
  for await (const part of refused.setEncoding('utf8')) text += part
  expect(JSON.parse(text)).toMatchObject({ code: 'stream_unavailable' })
  expect(streams.filter(({ ended }) => ended)).toEqual([])
  streams[0]?.close()
  const added = await until('there is room', hangMs, () => openStream(service, cookie).catch(() => undefined))
  await service.close()
  await Promise.all([added, ...streams].map((stream) => stream.hasEnded()))
})
