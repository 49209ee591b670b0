/** Chance decided by a seed: the same decisions in the same order. What they coincide with in time varies. */
export interface Random {
  /** From 0 to below 1. */
  (): number
  /** True in this share of cases. */
  chance(share: number): boolean
  whole(below: number): number
  between(least: number, most: number): number
  pick<T>(all: readonly T[]): T
  /** Picks from pairs of a thing and its weight. */
  weigh<T>(all: readonly (readonly [T, number])[]): T
  /** Another generator that does not affect this one. */
  fork(name: string | number): Random
}

export function makeRandom(seed: number): Random {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return Object.assign(next, {
    chance: (share: number) => next() < share,
    whole: (below: number) => Math.floor(next() * below),
    between: (least: number, most: number) => least + next() * (most - least),
    pick<T>(all: readonly T[]): T {
      const one = all[Math.floor(next() * all.length)]
      if (one === undefined) throw new Error('There is nothing to pick from.')
      return one
    },
    weigh<T>(all: readonly (readonly [T, number])[]): T {
      let left = next() * all.reduce((sum, [, weight]) => sum + weight, 0)
      for (const [one, weight] of all) {
        left -= weight
        if (left < 0) return one
      }
      throw new Error('There is nothing to pick from.')
    },
    fork(name: string | number): Random {
      let hash = seed ^ 0x9e3779b9
      for (const letter of String(name)) hash = Math.imul(hash ^ letter.charCodeAt(0), 0x01000193)
      return makeRandom(hash)
    },
  })
}
