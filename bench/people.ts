/**
 * What people cost: buffers and CPU of a message that is sent, that a campaign sends, and that is received, over the same with the
 * code before there was a row for each person. Both run the same file in alternating rounds after a round that warms up; medians.
 *
 *   node bench/people.ts [--from COMMIT] [--rounds 5]
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { checkOut } from '../test/scale/release.ts'
import { number, quantile, row, verdict } from './harness.ts'
import { ask, type Running, stop } from './load.ts'

const { values } = parseArgs({
  options: { from: { type: 'string', default: '4d33f2db' }, rounds: { type: 'string', default: '5' } },
})
const stage = join('processes', 'people-stage.ts')
/** What may cost more by how much. Learning who somebody is costs what it costs, once for each person. */
const goals: Readonly<Record<string, number>> = {
  sends: 1.1,
  chats: 1.1,
  contacts: 1.1,
  'contacts whose names count': 1.1,
  'ingest in batches': 1.05,
  'ingest one by one': 1.05,
}

/**
 * Adapts the stage to the older code: one function has another name there, recipients have no people, and `ingest` takes the number
 * from which chats number their own messages.
 */
function inOldNames(source: string): string {
  return source
    .replace('ledger/request.ts', 'ledger/submit.ts')
    .replaceAll('requestOperation', 'submit')
    .replace("campaigns('contacts', true)", "campaigns('contacts')")
    .replace('caught_up: true })', "caught_up: true }, { ownCountUpTo: '-1000000000000' })")
}

interface Cost {
  readonly buffers: number
  readonly ms: number
}

const before = await checkOut(values.from)
const running: Running[] = []
try {
  const source = await readFile(join(import.meta.dirname, stage), 'utf8')
  await writeFile(join(before.directory, 'bench', stage), inOldNames(source))
  const [older, parts] = await begin(join(before.directory, 'bench', stage))
  const [newer] = await begin(join(import.meta.dirname, stage))
  const costs = new Map(parts.map((part) => [part, { older: [] as Cost[], newer: [] as Cost[] }]))
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const [part, found] of costs) {
      const cost = { older: await ask<Cost>(older, part), newer: await ask<Cost>(newer, part) }
      if (round === 0) continue
      found.older.push(cost.older)
      found.newer.push(cost.newer)
    }
    if (round === 0) await Promise.all([ask(older, 'analyze'), ask(newer, 'analyze')])
  }
  for (const [part, found] of costs) {
    for (const [name, of] of [
      ['buffers', ({ buffers }: Cost) => buffers],
      ['CPU, ms', ({ ms }: Cost) => ms],
    ] as const) {
      const [then, now] = [quantile(found.older.map(of), 0.5), quantile(found.newer.map(of), 0.5)]
      const digits = name === 'buffers' ? 0 : 2
      row(`${part}: ${name}, ${values.from} and now`, `${number(then, digits)}, ${number(now, digits)}`)
      // Each pair shares its moment of a busy machine.
      const ratio = quantile(
        found.newer.map((cost, at) => of(cost) / of(found.older[at] as Cost)),
        0.5,
      )
      const most = goals[part]
      if (most === undefined) row(`${part}: ${name}, ratio`, number(ratio, 2))
      else verdict(`${part}: ${name}, ratio`, ratio, { most })
    }
  }
} finally {
  for (const each of running) await stop(each)
  await before.remove()
}

async function begin(file: string): Promise<[Running, readonly string[]]> {
  const child = fork(file)
  const started: Running = { child, address: '' }
  running.push(started)
  const [message] = (await Promise.race([
    once(child, 'message'),
    once(child, 'exit').then(() => {
      throw new Error(`${file} did not start.`)
    }),
  ])) as [{ parts: readonly string[] }]
  return [started, message.parts]
}
