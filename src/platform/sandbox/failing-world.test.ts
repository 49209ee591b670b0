/** A world that cannot write its log: it retries due acts, and nothing ends the service. */
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { send } from './account-acts.ts'
import { demoPeople } from './demo.ts'
import { openWorld, type World } from './world.ts'
import { drive } from './world-clock.ts'

let directory: string
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), 'parley-world-'))
})
afterEach(() => {
  vi.useRealTimers()
  rmSync(directory, { recursive: true })
})

/** A person will answer the account in a second. Once closed, the world's log accepts nothing any more. */
async function openClosedWorld(): Promise<World> {
  const world = openWorld({ data_dir: directory })
  const account = world.addAccount({ account_id: 'acc_one', name: 'Sales' })
  const { person_id } = world.addPerson({ name: 'Mara', behaviour: 'replies', delay_seconds: 1 })
  const message = { chat_id: `${person_id}`, text: 'Hello', random_id: '1' } as const
  send(world, account, { message, file: null })
  await world.close()
  vi.useFakeTimers()
  return world
}

test('retries a due act that could not be written', async () => {
  const failures: unknown[] = []
  const driver = drive(await openClosedWorld(), (error) => failures.push(error))
  vi.advanceTimersByTime(60_000)
  driver.stop()
  expect(failures.length).toBeGreaterThan(3)
  expect(String(failures[0])).toContain('The sandbox world is closed.')
})

test('people of the demo whose messages cannot be logged write another time, and the process survives', async () => {
  const world = await openClosedWorld()
  const talk = demoPeople(world).keepTalking()
  expect(() => vi.advanceTimersByTime(3_600_000)).not.toThrow()
  talk.stop()
})
