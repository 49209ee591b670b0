import { describe, expect, test } from 'vitest'
import { fairQueue } from './queue.ts'

const refuse = () => new Error('too many')

describe('turns of many keys', () => {
  /** What has started, in order, and how to end it. `expire` ends every wait. */
  function makeTurns(bounds: { atOnceMax?: number; eachMax?: number; waitingMax?: number } = {}) {
    const waits = new Set<() => void>()
    const timer = (_ms: number, done: () => void) => {
      waits.add(done)
      return () => waits.delete(done)
    }
    const run = fairQueue({ atOnceMax: 2, waitingMax: 3, waitMsMax: 10, refuse, ...bounds })
    const begun: string[] = []
    const ends = new Map<string, () => void>()
    const enter = (name: string, left?: AbortSignal) =>
      run({ key: name.slice(0, 1), timer, left }, async () => {
        begun.push(name)
        await new Promise<void>((resolve) => ends.set(name, resolve))
        return name
      })
    const end = async (name: string) => {
      ends.get(name)?.()
      await new Promise((resolve) => setImmediate(resolve))
    }
    const expire = () => {
      for (const done of [...waits]) done()
    }
    return { enter, begun, end, expire, waits, countWaiting: run.countWaiting }
  }

  test('runs one at a time per key, two in all, and the keys take turns', async () => {
    const { enter, begun, end, waits } = makeTurns()
    const all = ['a1', 'a2', 'a3', 'b1', 'b2', 'c1'].map((name) => enter(name))
    await end('')
    expect(begun).toEqual(['a1', 'b1'])
    for (const name of ['a1', 'b1', 'a2', 'b2', 'c1', 'a3']) await end(name)
    // Two of a came before c, and c still waited for one turn of a only.
    expect(begun).toEqual(['a1', 'b1', 'a2', 'b2', 'c1', 'a3'])
    expect(await Promise.all(all)).toEqual(['a1', 'a2', 'a3', 'b1', 'b2', 'c1'])
    expect(waits.size).toBe(0)
  })

  test('runs as many per key as it may have, and leaves the rest of the places to other keys', async () => {
    const { enter, begun, end, countWaiting } = makeTurns({ atOnceMax: 3, eachMax: 2, waitingMax: 9 })
    const all = ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1'].map((name) => enter(name))
    await end('')
    expect(begun).toEqual(['a1', 'a2', 'b1'])
    expect(countWaiting()).toBe(4)
    for (const name of ['a1', 'a2', 'b1', 'a3', 'b2', 'c1', 'a4']) await end(name)
    // Each place that became free went to the key that had waited longest.
    expect(begun).toEqual(['a1', 'a2', 'b1', 'a3', 'b2', 'c1', 'a4'])
    expect(await Promise.all(all)).toHaveLength(7)
    expect(countWaiting()).toBe(0)
  })

  test('a key with nothing running does not wait behind another that has too much', async () => {
    const { enter, begun, end } = makeTurns()
    void enter('a1')
    const waiting = ['a2', 'a3', 'a4'].map((name) => enter(name))
    const fifth = enter('a5').catch((error) => error.message)
    void enter('b1')
    await end('')
    expect(await Promise.race([fifth, 'waits'])).toBe('too many')
    expect(begun).toEqual(['a1', 'b1'])
    for (const name of ['a1', 'a2', 'a3', 'a4', 'b1']) await end(name)
    await Promise.all(waiting)
  })

  test('refuses a caller that waited too long, and running work continues', async () => {
    const { enter, begun, end, expire } = makeTurns()
    const first = enter('a1')
    const second = enter('a2')
    expire()
    await expect(second).rejects.toThrow('too many')
    await end('a1')
    expect(await first).toBe('a1')
    expect(begun).toEqual(['a1'])
  })

  test("a caller that leaves stops waiting, and takes no other caller's place", async () => {
    const { enter, begun, end, waits } = makeTurns()
    const first = enter('a1')
    const leaving = new AbortController()
    const second = enter('a2', leaving.signal)
    const third = enter('a3')
    leaving.abort(new Error('left'))
    expect(waits.size).toBe(1)
    await expect(second).rejects.toThrow('left')
    await expect(enter('a4', leaving.signal)).rejects.toThrow('left')
    await end('a1')
    await end('a3')
    expect(await Promise.all([first, third])).toEqual(['a1', 'a3'])
    expect(begun).toEqual(['a1', 'a3'])
    expect(waits.size).toBe(0)
  })

  test('work that fails gives its turn back', async () => {
    const run = fairQueue({ atOnceMax: 1, waitingMax: 1, waitMsMax: 10, refuse })
    const turn = { key: 'a', timer: () => () => {}, left: undefined }
    const failing = () => Promise.reject(new Error('broken'))
    await expect(run(turn, failing)).rejects.toThrow('broken')
    await expect(run(turn, failing)).rejects.toThrow('broken')
  })
})
