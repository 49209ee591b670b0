/** Guesses which known name a misspelt one was meant to be. */

/** Longer than any name of ours: anything longer is not a typing error. */
const lengthMax = 40

/** The known name with the fewest changes, if they are few for its length. */
export function nearest(written: string, known: readonly string[]): string | undefined {
  if (written.length > lengthMax) return undefined
  const plain = plainOf(written)
  const ranked = known
    .map((name) => ({ name, changes: countChanges(plain, plainOf(name)) }))
    .sort((a, b) => a.changes - b.changes)
  const [best] = ranked
  if (!best || best.changes >= Math.min(plain.length, best.name.length)) return undefined
  return best.changes <= Math.max(1, Math.floor(best.name.length / 3)) ? best.name : undefined
}

/** `accountId`, `Account-ID` and `account_id` are the same word. */
function plainOf(name: string): string {
  return name.toLowerCase().replaceAll(/[^a-z0-9]/g, '')
}

/** Counts letters that are missing, added or replaced; two swapped letters count once. */
function countChanges(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, at) => at)
  for (let row = 1; row <= a.length; row++) {
    const next = [row]
    for (let at = 1; at <= b.length; at++) {
      const same = a[row - 1] === b[at - 1]
      const [left = 0, above = 0, corner = 0] = [next[at - 1], last[at], last[at - 1]]
      let fewest = Math.min(left + 1, above + 1, corner + (same ? 0 : 1))
      if (a[row - 1] === b[at - 2] && a[row - 2] === b[at - 1] && at > 1 && row > 1) {
        fewest = Math.min(fewest, (before[at - 2] ?? 0) + 1)
      }
      next.push(fewest)
    }
    before = last
    last = next
  }
  return last[b.length] ?? 0
}
