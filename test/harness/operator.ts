/** Commands of an operator: each runs as its own process, on the database of a service under test. */
import { expect } from 'vitest'
import { spawnParley } from './process.ts'
import type { Service } from './service.ts'
import { testSecret } from './worker.ts'

/** A busy machine starts few processes a second. */
export const patient = { timeout: 180_000 }

/** `input` goes to its standard input. */
export const run = (service: Service, args: readonly string[], input?: string) => {
  const env = { DATABASE_URL: service.database.url, PARLEY_SECRET: testSecret }
  return spawnParley(args, env, undefined, [], input).exit()
}

/** The JSON that the command prints. */
export async function runJson<T>(service: Service, args: readonly string[]): Promise<T> {
  const { code, stdout, stderr } = await run(service, [...args, '--json'])
  expect([code, stderr]).toEqual([0, ''])
  return JSON.parse(stdout) as T
}

/** The sentence with which the command refuses. */
export async function runRefused(service: Service, args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await run(service, args)
  expect([code, stdout]).toEqual([1, ''])
  return stderr
}
