/** Erasures and this worker's disk: each is written there before it begins, and a restored database learns them from there. */
import type { App } from '../app.ts'
import {
  applyErasures,
  eraseNext,
  erasureWanted,
  type KeptErasure,
  listErasures,
  type Turn,
} from '../capabilities/erasing/erasing.ts'
import { beginErasures, erasureListIn, keepErasures, readErasures } from '../ledger/erasure-list.ts'
import type { Loop } from '../loop.ts'

const restMs = 2_000
/** After a batch it rests twice as long as it worked, so that an erasure takes a third of one connection and sends of others go on. */
const rest = { mostMs: 2_000, timesItsWork: 2 }

/** Repeats in the database what the list of this disk has. Throws if that fails: nothing may be sent before. */
export async function repeatErasures(app: App, directory: string): Promise<void> {
  const list = await readErasures<KeptErasure>(erasureListIn(directory))
  if (!list) return
  const applied = await applyErasures(app, list.erasures)
  const level = applied + list.damaged > 0 ? 'error' : 'info'
  app.log[level](
    { applied, damaged: list.damaged },
    'the worker compared the erasures of this disk with the database',
  )
}

/** Copies erasures to this disk, those that other workers have begun too, and then takes part in the job. */
export function erasureLoop(directory: string): Loop {
  /** What this disk has. */
  let kept: Set<string> | undefined
  const turn: Turn = { workspace_id: null }
  return {
    name: 'erasures',
    restMs,
    wakeOn: erasureWanted,
    async step(app) {
      kept ??= await readKept(directory)
      const known = kept
      const missing = await listErasures(app.db, known)
      if (missing.length > 0) {
        await keepErasures(erasureListIn(directory), missing)
        for (const { id } of missing) known.add(id)
      }
      const startedAt = app.sources.now()
      const more = await eraseNext(app, known, turn)
      const restedMs = Math.min(rest.mostMs, rest.timesItsWork * (app.sources.now() - startedAt))
      if (more && restedMs > 0) await app.sources.sleep(restedMs)
      return more
    },
  }
}

async function readKept(directory: string): Promise<Set<string>> {
  const list = await readErasures<KeptErasure>(erasureListIn(directory))
  if (!list) await beginErasures(directory)
  return new Set(list?.erasures.map(({ id }) => id))
}
