/** An asset that is the same for every caller is made once, however many request it and however early. */
import { afterEach, expect, test } from 'vitest'
import { makeLogger } from '../cli/log.ts'
import { mountAsset } from './assets.ts'
import { makeBase, type Server, toServer } from './base.ts'

let server: Server
afterEach(() => server.close())

async function serve(make: () => string): Promise<string> {
  const base = makeBase({ log: makeLogger('silent'), rate_limit: 1_000 })
  mountAsset(base, '/asset', { operation: 'asset', type: 'text/plain', make })
  server = toServer(base)
  return server.listen({ host: '127.0.0.1', port: 0 })
}

async function ask(url: string): Promise<[number, string]> {
  const response = await fetch(`${url}/asset`)
  return [response.status, await response.text()]
}

test('makes it on the first request, and never again', async () => {
  let made = 0
  const url = await serve(() => `number ${++made}`)
  expect(made).toBe(0)
  const answers = await Promise.all(Array.from({ length: 10 }, () => ask(url)))
  expect(await ask(url)).toEqual([200, 'number 1'])
  expect(answers).toEqual(Array(10).fill([200, 'number 1']))
  expect(made).toBe(1)
})

test('tries again after a failure', async () => {
  let asked = 0
  const url = await serve(() => {
    if (++asked === 1) throw new Error('not this time')
    return 'here'
  })
  expect((await ask(url))[0]).toBe(500)
  expect(await ask(url)).toEqual([200, 'here'])
})
