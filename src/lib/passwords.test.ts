import { readdirSync, readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { hashPassword, isPassword } from './passwords.ts'

const password = 'correct horse battery'
const turn = { lane: 'stranger', source: '203.0.113.7' } as const

test('a hash is argon2id with 19 MiB and two passes, and different each time', async () => {
  const hashes = await Promise.all([hashPassword(password, turn), hashPassword(password, turn)])
  for (const hash of hashes) expect(hash).toMatch(/^\$argon2id\$v=19\$m=19456,t=2,p=1\$[^$]{22}\$[^$]{43}$/)
  expect(hashes[0]).not.toBe(hashes[1])
})

test('only the stored password matches, in any Unicode form', async () => {
  const stored = await hashPassword('caf\u00e9 horse battery', turn)
  expect(await isPassword('cafe\u0301 horse battery', stored, turn)).toBe(true)
  expect(await isPassword('cafe horse battery', stored, turn)).toBe(false)
  expect(await isPassword('', stored, turn)).toBe(false)
})

test('no password matches when none is stored', async () => {
  for (const given of [password, '', 'A'.repeat(43)])
    expect(await isPassword(given, undefined, turn)).toBe(false)
})

test('a stored value that is not a hash is a fault, and the next comparison still works', async () => {
  await expect(isPassword(password, 'no hash', turn)).rejects.toThrow('A password could not be compared')
  expect(await isPassword(password, await hashPassword(password, turn), turn)).toBe(true)
})

test('hashes two at a time, queues forty, and asks further callers to retry', async () => {
  const all = await Promise.allSettled(
    Array.from({ length: 45 }, () => isPassword(password, undefined, turn)),
  )
  const refused = all.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
  expect(refused).toHaveLength(3)
  for (const reason of refused) expect(reason).toMatchObject({ code: 'rate_limited', retry_after: 2 })
})

/** The niceness of each thread of this process, by its number. The name of a thread may have spaces. */
function niceOfThreads(): Map<number, number> {
  const threads = readdirSync('/proc/self/task').map((id) => {
    const stat = readFileSync(`/proc/self/task/${id}/stat`, 'utf8')
    return [Number(id), Number(stat.slice(stat.lastIndexOf(')') + 2).split(' ')[16])] as const
  })
  return new Map(threads)
}

test.runIf(process.platform === 'linux')(
  'the hashing threads have a lower priority than all others',
  async () => {
    await Promise.all([hashPassword(password, turn), hashPassword(password, turn)])
    const threads = niceOfThreads()
    const own = threads.get(process.pid) ?? 0
    expect(own).toBeLessThan(19)
    const others = [...threads.values()].filter((nice) => nice !== own)
    expect(others).toEqual(Array(2).fill(Math.min(19, own + 10)))
  },
)
