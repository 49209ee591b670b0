/** What a storm prints. */
import type { CallRecord, Evidence } from './oracle.ts'

export function say(line: string): void {
  process.stdout.write(`${new Date().toISOString().slice(11, 19)} ${line}\n`)
}

export function printTable(title: string, counts: Readonly<Record<string, number>>): void {
  const width = Math.max(...Object.keys(counts).map((name) => name.length))
  const lines = Object.entries(counts).map(([name, count]) => `  ${name.padEnd(width)} ${count}`)
  say([title, ...lines].join('\n'))
}

/** How the operations ended, what the platform accepted, and the last answer to each key. */
export function printOutcomes({ operations, journal, history }: Evidence): void {
  printTable(
    'operations',
    countBy(operations, ({ kind, state, reason }) => [kind, state, reason ?? ''].join(' ').trim()),
  )
  printTable(
    'accepted',
    countBy(journal, ({ kind }) => kind),
  )
  const last = new Map<string, CallRecord>()
  for (const asked of history) last.set(asked.key, asked)
  printTable('last answers', countBy([...last.values()], nameOf))
  printTable('all answers', countBy(history, nameOf))
}

/** Counts errors by sentence and cause: a deadlock or a bug stands out among lost connections. */
export function countErrors(counts: Record<string, number>, output: string): void {
  for (const line of output.split('\n')) {
    const name = errorIn(line)
    if (name) counts[name] = (counts[name] ?? 0) + 1
  }
}

function errorIn(line: string): string | undefined {
  if (!line.startsWith('{')) return /bug in Parley|unhandled/i.test(line) ? line.slice(0, 120) : undefined
  if (!line.includes('"level":"error"') && !line.includes('"40P01"')) return undefined
  try {
    const { msg, loop, err } = JSON.parse(line)
    return [msg, loop, err?.type, err?.code, err?.cause?.code].filter(Boolean).join(', ')
  } catch {
    return undefined
  }
}

function nameOf({ status, code, replayed }: CallRecord): string {
  if (status === null) return 'no answer'
  return `${status} ${code ?? ''}${replayed ? ' replayed' : ''}`.trimEnd()
}

function countBy<T>(all: readonly T[], key: (one: T) => string): Record<string, number> {
  const counts: Record<string, number> = {}
  for (const one of all) counts[key(one)] = (counts[key(one)] ?? 0) + 1
  return Object.fromEntries(Object.entries(counts).sort(([one], [other]) => (one < other ? -1 : 1)))
}
