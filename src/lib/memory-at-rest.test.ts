import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { lookAtRest } from './memory-at-rest.ts'

const megabyte = 1024 * 1024

/** A process of which the test says what it uses. */
function stage() {
  const own = { kept: 100, garbage: 0, cores: 0, collections: 0 }
  const look = lookAtRest({
    bytes: () => (own.kept + own.garbage) * megabyte,
    cores: () => own.cores,
    collect: () => {
      own.garbage = 0
      own.collections++
    },
  })
  return { own, look }
}

test('garbage is collected once the process rests, and again after the next burst', () => {
  const { own, look } = stage()
  for (let bursts = 1; bursts <= 2; bursts++) {
    Object.assign(own, { garbage: 200, cores: 1 })
    look()
    own.cores = 0.01
    look()
    expect(own).toMatchObject({ garbage: 0, collections: bursts })
  }
})

test('a process at work is not stopped', () => {
  const { own, look } = stage()
  Object.assign(own, { garbage: 200, cores: 0.5 })
  look()
  expect(own.collections).toBe(0)
})

test('what stays in use is not collected for again, and no little growth is', () => {
  const { own, look } = stage()
  own.kept = 300
  for (let looks = 0; looks < 3; looks++) look()
  own.garbage = 50
  look()
  expect(own.collections).toBe(1)
})

test('the memory goes back to the machine', async () => {
  const script = `
    import { collectAtRest } from ${JSON.stringify(new URL('./memory-at-rest.ts', import.meta.url).href)}
    const rss = () => process.memoryUsage.rss() / 1e6
    collectAtRest(50)
    let kept = Array.from({ length: 1_500_000 }, (_, n) => ({ n, list: [n] }))
    const full = rss()
    kept = undefined
    while (rss() > full - 50) await new Promise((done) => setTimeout(done, 50))
    process.exit(kept)`
  await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script])
})
