/**
 * What this disk remembers of the database: which one it is and how far its restore counter had come. A database whose
 * counter is lower was restored from an older copy; it may have forgotten what was sent, so nothing is sent until a
 * person says so.
 */
import { mkdir, readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import {
  listUnsafeSettings,
  raiseRestoreCounter,
  readInstance,
  remember,
  renewGeneration,
} from '../access/ledger/restore-counter.ts'
import type { App } from '../app.ts'
import { setDispatch } from '../capabilities/gates/gates.ts'
import { Refusal } from '../lib/errors.ts'
import type { OperationKinds } from '../operation.ts'
import type { Entry, Intent } from './journal.ts'
import { listJournals, readJournal } from './journal.ts'

interface Seen {
  readonly id: string
  readonly restore_counter: string
  readonly generation: string
}

export interface RestoreGuard {
  /** The highest restore counter that was seen. */
  counter(): string
  /** It had gone back in time when this process began. */
  readonly went_back: boolean
  /** Raises the database's restore counter and remembers it. True: the database has gone back in time. */
  raise(): Promise<boolean>
}

const fileName = 'instance.json'

export async function openRestoreGuard(
  app: App,
  { directory, kinds }: { directory: string; kinds: OperationKinds },
): Promise<RestoreGuard> {
  const unsafe = await listUnsafeSettings(app.db)
  if (unsafe.length > 0) {
    throw new Refusal(`The database does not keep what it has committed: ${unsafe.join(', ')} must be on.`)
  }
  await mkdir(directory, { recursive: true, mode: 0o700 })
  const path = join(directory, fileName)
  const known = await readSeen(path)
  const instance = await readInstance(app.db)
  const same = known?.id === instance.id
  const lower = same && BigInt(instance.restore_counter) < BigInt(known.restore_counter)
  const went_back = same && (lower || known.generation !== instance.generation)
  if (went_back) await goBack(app, { directory, kinds }, { why: 'older', instance_id: instance.id })
  else if (!same && !instance.fresh && app.config.instance_id !== instance.id) {
    await goBack(app, { directory, kinds }, { why: 'unknown', instance_id: instance.id })
  }
  let seen: Seen = lower ? await renewGeneration(app.db) : instance
  await keep(path, seen)

  return {
    counter: () => seen.restore_counter,
    went_back,
    async raise() {
      const now = await raiseRestoreCounter(app.db)
      const older = now.id !== seen.id || BigInt(now.restore_counter) <= BigInt(seen.restore_counter)
      const another = older || now.generation !== seen.generation
      if (another) await goBack(app, { directory, kinds }, { why: 'older', instance_id: now.id })
      // Told to those who were away, by whoever has seen it with their own eyes.
      seen = older ? await renewGeneration(app.db) : now
      await keep(path, seen)
      return another
    },
  }
}

async function readSeen(path: string): Promise<Seen | undefined> {
  try {
    const { beat, ...seen } = JSON.parse(await readFile(path, 'utf8'))
    // Files of earlier versions call it `beat`.
    return { restore_counter: beat, ...seen }
  } catch {
    return undefined
  }
}

async function keep(path: string, { id, restore_counter, generation }: Seen): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify({ id, restore_counter, generation }), { mode: 0o600 })
  await rename(`${path}.new`, path)
}

const sentences = {
  older: 'the database is an older copy of itself: sending is switched off until `parley dispatch on`',
  unknown:
    'this disk does not know the database and nobody works on it: sending is switched off until `parley dispatch on`',
} as const

/** Off first, then every journal of this disk tells what it knows. */
async function goBack(
  app: App,
  { directory, kinds }: { directory: string; kinds: OperationKinds },
  { why, instance_id }: { why: keyof typeof sentences; instance_id: string },
): Promise<void> {
  app.log.error({ why, instance_id }, sentences[why])
  await setDispatch(app, 'system', false)
  if (why === 'unknown') return
  let restored = 0
  const workers = Map.groupBy(await listJournals(directory), ({ worker_id }) => worker_id)
  for (const files of workers.values()) {
    const entries = (await Promise.all(files.map((file) => readJournal(directory, file)))).flat()
    // guard: journals are put back
    for (const intent of listPossible(entries)) restored += await putBack(app, kinds, intent)
  }
  app.log.error({ restored }, 'operations that the database had forgotten were put back from the journals')
}

/** What may have happened. An attempt that provably came to nothing leaves nothing to put back. */
function listPossible(entries: readonly Entry[]): Intent[] {
  const nothing = new Set<string>()
  for (const entry of entries) {
    if (entry.entry !== 'outcome') continue
    const { kind } = entry.outcome
    if (kind === 'refused' || kind === 'flood_wait' || kind === 'not_written') nothing.add(entry.token)
    else if (kind === 'accepted') nothing.delete(entry.token)
  }
  return entries.filter((entry) => entry.entry === 'intent').filter(({ token }) => !nothing.has(token))
}

/** What became of it is told by the replay of the journals, which finds the token on the row. */
async function putBack(app: App, kinds: OperationKinds, intent: Intent): Promise<number> {
  const forgettable = kinds.get(intent.kind)?.forgettable ?? false
  const id = await app.db.transaction((tx) => remember(tx, intent, { forgettable }))
  return id === undefined ? 0 : 1
}
