/** The verbs for receivers of events, against a service in this process. */

import { Webhook } from 'standardwebhooks'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { splitItems } from '../src/cli/events-feed.ts'
import { emitted } from '../src/events/emit.ts'
import { version } from '../src/lib/version.ts'
import { patchEnv } from './faults/patch.ts'
import { runVerb } from './harness/operator.ts'
import { endProcesses, hangMs, runParley, spawnParley, until } from './harness/process.ts'
import type { Tenant } from './harness/service.ts'
import { Receiver, WebhookPlace } from './harness/webhooks.ts'

let place: WebhookPlace
let own: Tenant
let receiver: Receiver
beforeAll(async () => {
  place = await WebhookPlace.open()
  await place.work()
  own = await place.service.tenant('Own')
  receiver = await Receiver.open()
})
afterAll(async () => {
  await endProcesses()
  await place.close()
  await receiver.close()
})

/** A busy machine starts few processes a second. */
const patient = { timeout: 120_000 }

const env = () => ({ PARLEY_API_KEY: own.key, PARLEY_BASE_URL: place.service.url })

async function json<T = Record<string, unknown>>(...args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await runVerb([...args, '--json'], env())
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as T
}

describe('parley webhook', () => {
  test('create, list, update, test, deliveries, resend, delete', patient, async () => {
    const made = await json<{ id: string; secret: string }>(
      'webhook',
      'create',
      receiver.url,
      '--events',
      'message.received',
    )
    expect(made).toMatchObject({ url: receiver.url, events: ['message.received'], active: true })
    expect(made.secret).toMatch(/^whsec_/)
    const { secret: _, ...listed } = made
    expect(await json('webhook', 'list')).toEqual([listed])
    expect(await json('webhook', 'update', made.id, '--no-active', '--events', '*')).toMatchObject({
      active: false,
      events: ['*'],
    })
    const tested = await json<{ id: string }>('webhook', 'test', made.id)
    expect(tested).toMatchObject({
      type: 'webhook.test',
      state: 'delivered',
      status: 200,
      ms: expect.any(Number),
      error: null,
    })
    expect(await json('webhook', 'deliveries', made.id, '--state', 'delivered')).toMatchObject([
      { id: tested.id, type: 'webhook.test' },
    ])
    expect(await json('webhook', 'resend', made.id, tested.id)).toMatchObject({ state: 'pending' })
    await until('it came twice', hangMs, () => receiver.received.length === 2)
    expect(await json('webhook', 'delete', made.id)).toMatchObject({ ok: true })
    expect(await json('webhook', 'list')).toEqual([])
  })

  test(
    'create and rotate say that the secret is shown once; later deliveries have both signatures',
    patient,
    async () => {
      const note = 'The secret is shown only now. Keep it like a password; `webhook rotate` creates another.'
      const made = await runVerb(['webhook', 'create', receiver.url], env())
      expect([made.code, made.stdout.trimEnd().split('\n').slice(-2)]).toEqual([0, ['', note]])
      const field = (name: string) => new RegExp(`^${name} +(\\S+)$`, 'm').exec(made.stdout)?.[1] ?? ''
      const rotated = await runVerb(['webhook', 'rotate', field('id')], env())
      const later = 'For 24 hours Parley also signs deliveries with the previous secret.'
      expect([rotated.code, rotated.stdout.trimEnd().split('\n').slice(-2)]).toEqual([0, [note, later]])
      const secret = /whsec_\S+/.exec(rotated.stdout)?.[0] ?? ''
      expect(secret).not.toBe(field('secret'))
      receiver.received.length = 0
      await json('webhook', 'test', field('id'))
      const { body = '', headers = {} } = receiver.received[0] ?? {}
      for (const each of [secret, field('secret')]) {
        expect(new Webhook(each).verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body))
      }
      await json('webhook', 'delete', field('id'))
    },
  )

  test('test exits 1 with the answer of an endpoint that refuses, or without one', patient, async () => {
    const { id } = await place.endpoint(own, receiver.url)
    receiver.status(410)
    const refused = await runParley(['webhook', 'test', id, '--json'], env())
    expect([refused.code, refused.stderr]).toEqual([
      1,
      expect.stringMatching(/^The endpoint answered 410 after \d+ ms\.\n$/),
    ])
    expect(JSON.parse(refused.stdout)).toMatchObject({ state: 'failed', status: 410, error: null })
    receiver.answer = (response) => void response.socket?.destroy()
    const cut = await runVerb(['webhook', 'test', id], env())
    expect([cut.code, cut.stderr]).toEqual([
      1,
      expect.stringMatching(/^The endpoint gave no answer \(\w+\) after \d+ ms\.\n$/),
    ])
    receiver.answer = (response) => void response.end()
    await json('webhook', 'delete', id)
  })

  test('test exits 1 when no worker makes the attempt', patient, async () => {
    const { id } = await place.endpoint(own, receiver.url)
    await place.rest()
    const brief = patchEnv([{ marker: 'limit: wait for a test', replace: 'const testMsMax = 1_000' }])
    const { code, stdout, stderr } = await runParley(['webhook', 'test', id], { ...env(), ...brief })
    expect([code, stdout, stderr]).toEqual([
      1,
      '',
      expect.stringContaining('No worker made the attempt within 1 seconds. The test stays queued'),
    ])
    await place.work()
    await place.untilState(id, 'delivered', 1)
    await json('webhook', 'delete', id)
  })

  test('explains what is wrong', patient, async () => {
    const refused = async (args: readonly string[], environment: Record<string, string>) => {
      const { code, stdout, stderr } = await runVerb(args, environment)
      expect([code, stdout]).toEqual([1, ''])
      return stderr
    }
    const nowhere = { PARLEY_API_KEY: own.key, PARLEY_BASE_URL: 'http://127.0.0.1:9' }
    expect(await refused(['webhook', 'list'], {})).toContain('Set PARLEY_API_KEY')
    expect(await refused(['webhook', 'list'], nowhere)).toContain('does not respond')
    expect(await refused(['webhook', 'delete', '../me'], env())).toContain('not available in this workspace')
    expect(await refused(['events', '--forward-to', 'ftp://x'], env())).toContain(
      '--forward-to must be an address',
    )
    expect(await refused(['events', '--forward-to', 'http://localhost', '--secret', 'x'], env())).toContain(
      '--secret must be',
    )
  })
})

describe('parley events', () => {
  test('prints one document per line, and ends', patient, async () => {
    await place.emitMany(own.workspace_id, 3, (n) => ({ n, text: 'a "b", [c] {d} \\ 😀\n' }))
    await until('they are there', hangMs, async () => {
      const { body } = await place.service.get('/events', { key: own.key })
      return (body.events as unknown[]).length === 3
    })
    const { code, stdout, stderr } = await runParley(['events', '--after', '1'], env())
    expect([code, stderr]).toEqual([0, ''])
    const lines = stdout.trimEnd().split('\n')
    expect(lines.map((line) => JSON.parse(line).sequence)).toEqual([2, 3])
  })

  test('exits 1 when a forwarded event is refused, and still posts the next one', patient, async () => {
    receiver.received.length = 0
    receiver.answer = (response, { body }) =>
      void response.writeHead(JSON.parse(body).sequence === 2 ? 500 : 204).end()
    const forward = ['--forward-to', receiver.url, '--secret', `whsec_${'A'.repeat(43)}=`]
    const some = await runParley(['events', ...forward], env())
    expect([some.code, receiver.received.length]).toEqual([1, 3])
    expect(some.stderr).toMatch(/^The receiver refused evt_\w+: 500\nThe receiver refused 1 event\.\n$/)
    const none = await runVerb(['events', '--after', '2', ...forward], env())
    expect([none.code, none.stderr]).toEqual([0, ''])
    const follower = spawnParley(['events', '--follow', ...forward], env())
    await until('it has posted the last one', 180_000, () => receiver.received.length === 7)
    await until('it has said what was not taken', 180_000, () => follower.stderr().includes(': 500\n'))
    follower.signal('SIGINT')
    const ended = await follower.exit()
    expect([ended.code, ended.stderr]).toEqual([
      1,
      expect.stringMatching(/\nThe receiver refused 1 event\.\n$/),
    ])
    receiver.answer = (response) => void response.end()
  })

  test('follows, and forwards the exact bytes, signed with the secret that it prints', patient, async () => {
    receiver.received.length = 0
    const follower = spawnParley(['events', '--after', '3', '--follow', '--forward-to', receiver.url], env())
    const secret = await until(
      'it prints its secret',
      180_000,
      () => /whsec_\S+/.exec(follower.stderr())?.[0],
    )
    await place.emitMany(own.workspace_id, 2, (n) => ({ n, text: 'Grüße, "x" 😀' }))
    place.service.app.wake.signal(emitted)
    await until('both came', 180_000, () => receiver.received.length === 2)
    const response = await fetch(`${place.service.url}/api/v1/events?after=3`, {
      headers: { authorization: `Bearer ${own.key}` },
    })
    const feed = await response.text()
    for (const { body, headers } of receiver.received) {
      expect(headers['user-agent']).toBe(`Parley/${version}`)
      expect(feed).toContain(body)
      expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toEqual(JSON.parse(body))
    }
    follower.signal('SIGTERM')
    await follower.exit()
  })

  test('says once that there is no answer, and retries', patient, async () => {
    const nowhere = { PARLEY_API_KEY: own.key, PARLEY_BASE_URL: 'http://127.0.0.1:9' }
    const follower = spawnParley(['events', '--follow'], nowhere)
    await until('it says so', 180_000, () => follower.stderr().endsWith(' Retrying.\n'))
    follower.signal('SIGTERM')
    const { stderr } = await follower.exit()
    expect(stderr.trim().split('\n')).toEqual([
      expect.stringContaining('http://127.0.0.1:9 does not respond.'),
    ])
  })

  test('the items of a page are cut out byte for byte', () => {
    const items = ['{"a":"],[{\\"","b":[1,[2]]}', '{ "n" : 1.50 }', '"x\\\\"', '{}']
    expect(splitItems(`{"events":[${items.join(',')}],"next_cursor":null,"more":["no"]}`)).toEqual(items)
    expect(splitItems('{"events":[],"has_more":false}')).toEqual([])
  })
})
