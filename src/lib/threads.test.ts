import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import type { Worker } from 'node:worker_threads'
import { expect, test } from 'vitest'
import { hangMs, until } from '../../test/harness/process.ts'
import { threadCalls } from './threads.ts'

const file = new URL('../../test/harness/odd-thread.ts', import.meta.url)
/** Returns the number of the thread that was called. */
const makeCalls = () => threadCalls<string, number>(file)

test('keeps a thread for the next call, and gives two calls at once one each', async () => {
  const call = makeCalls()
  const first = await call('answer')
  expect(await call('answer')).toBe(first)
  const both = await Promise.all([call('answer'), call('answer')])
  expect(new Set(both).size).toBe(2)
  expect(both).toContain(first)
})

test.each(['throw', 'exit'])(
  'a thread that dies (%s) fails its call, and the next call gets another',
  async (how) => {
    const call = makeCalls()
    const first = await call('answer')
    const [failed, other] = await Promise.allSettled([call(how), call('answer')])
    expect(failed).toMatchObject({ reason: { message: 'A thread died before it had answered.' } })
    expect(other).toMatchObject({ status: 'fulfilled' })
    const next = await call('answer')
    expect(next).not.toBe(first)
    expect([next]).toEqual([(other as { value: number }).value])
  },
)

test('a thread that dies while idle is not used again', async () => {
  const call = makeCalls()
  // On a busy machine the exit event may overtake the answer, which is another case.
  const first = await until('a thread answers and dies later', hangMs, () =>
    call('answer and throw').catch(() => undefined),
  )
  const next = await until('another thread answers', hangMs, () =>
    call('answer').then(
      (id) => (id === first ? undefined : id),
      () => undefined,
    ),
  )
  expect(next).not.toBe(first)
})

test('a thread that is idle for too long ends, and with it its memory', async () => {
  let isEnded = false
  process.once('worker', (thread: Worker) =>
    thread.once('exit', () => {
      isEnded = true
    }),
  )
  const call = threadCalls<string, number>(file, { idleMsMax: 20 })
  const first = await call('answer')
  await until('the thread has ended', hangMs, async () => isEnded || undefined)
  expect(await call('answer')).not.toBe(first)
})

test('the process waits for an answer, and for nothing else', async () => {
  const script = `
    import { threadCalls } from ${JSON.stringify(new URL('./threads.ts', import.meta.url).href)}
    const call = threadCalls(new URL(${JSON.stringify(file.href)}))
    await call('answer')
    process.stdout.write('answered ' + typeof (await call('answer')))`
  const { stdout } = await promisify(execFile)(process.execPath, ['--input-type=module', '-e', script], {
    timeout: 60_000,
  })
  expect(stdout).toBe('answered number')
})
