import { describe, expect, test } from 'vitest'
import { LaneQueue } from './lane-queue.ts'

type Lane = 'one' | 'two'

/** A queue, and work in it that runs until the test ends it. */
function open(atOnceMax: number, waitingMax: number) {
  const refuse = () => new Error('too many')
  const queue = new LaneQueue<Lane>({ lanes: ['one', 'two'], atOnceMax, waitingMax, refuse })
  /** The names of running work, and of what has ended or was refused, in order. */
  const running: string[] = []
  const begun: string[] = []
  const refused: string[] = []
  const ends = new Map<string, () => void>()
  const add = (name: string, source: string, lane: Lane = 'one') => {
    const work = async () => {
      begun.push(name)
      running.push(name)
      await new Promise<void>((resolve) => ends.set(name, resolve))
      running.splice(running.indexOf(name), 1)
    }
    return queue.run({ lane, source }, work).catch(() => void refused.push(name))
  }
  const settle = () => new Promise((resolve) => setImmediate(resolve))
  const end = async (name: string) => {
    ends.get(name)?.()
    await settle()
  }
  const endAll = async () => {
    while (running.length > 0) await end(running[0] as string)
  }
  return { queue, add, end, endAll, settle, running, begun, refused }
}

describe('a queue', () => {
  test('runs two, queues three in turn and refuses the sixth', async () => {
    const { add, endAll, settle, running, begun, refused } = open(2, 3)
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f']) void add(name, name)
    await settle()
    expect(running).toEqual(['a', 'b'])
    expect(refused).toEqual(['f'])
    await endAll()
    expect(begun).toEqual(['a', 'b', 'c', 'd', 'e'])
    void add('again', 'a')
    await settle()
    expect(running).toEqual(['again'])
    await endAll()
  })

  test('gives the place of failed work to the next', async () => {
    const { queue } = open(1, 0)
    const failing = () => Promise.reject(new Error('broken'))
    for (let at = 0; at < 2; at++) {
      await expect(queue.run({ lane: 'one', source: 'a' }, failing)).rejects.toThrow('broken')
    }
  })

  test('hands a place over, so that a caller who arrives in between does not get it', async () => {
    const { add, end, endAll, running } = open(1, 2)
    const first = add('first', 'a')
    void add('second', 'b')
    const third = first.then(() => add('third', 'c'))
    await end('first')
    expect(running).toEqual(['second'])
    await endAll()
    await third
  })
})

describe('a source', () => {
  test('gives places to others: the latest of the source that has most is refused', async () => {
    const { add, endAll, settle, begun, refused } = open(1, 3)
    for (const name of ['m1', 'm2', 'm3', 'm4', 'm5']) void add(name, 'many')
    await settle()
    expect(refused).toEqual(['m5'])
    for (const name of ['a', 'b', 'c', 'd']) {
      void add(name, name)
      await settle()
    }
    expect(refused).toEqual(['m5', 'm4', 'm3', 'm2', 'd'])
    await endAll()
    expect(begun).toEqual(['m1', 'a', 'b', 'c'])
  })

  test('prefers those that have nothing running', async () => {
    const { add, end, endAll, settle, running } = open(2, 9)
    for (const name of ['m1', 'm2', 'm3', 'm4']) void add(name, 'many')
    void add('a', 'a')
    await settle()
    await end('m1')
    expect(running).toEqual(['m2', 'a'])
    await endAll()
  })
})

describe('a lane', () => {
  test('has its own places, and its turn', async () => {
    const { queue, add, end, endAll, settle, running, refused } = open(1, 2)
    for (const name of ['a', 'b', 'c', 'd']) void add(name, name)
    await settle()
    expect(refused).toEqual(['d'])
    expect(() => queue.requirePlace({ lane: 'one', source: 'e' })).toThrow('too many')
    queue.requirePlace({ lane: 'two', source: 'e' })
    void add('e', 'e', 'two')
    void add('f', 'f', 'two')
    await end('a')
    expect(running).toEqual(['b'])
    await end('b')
    expect(running).toEqual(['e'])
    await end('e')
    expect(running).toEqual(['c'])
    await endAll()
  })
})
