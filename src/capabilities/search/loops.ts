/** The loops that put new messages into the index and keep its segments few. */
import { Gauge } from 'prom-client'
import type { App } from '../../app.ts'
import type { AccountKey } from '../../contract.ts'
import type { Loop } from '../../loop.ts'
import { countPending, findPending, findScattered, listPending, mergeSegments } from './search.ts'

const indexMs = 1_000
const mergeAllMs = 60_000

export function loops(app: App): readonly Loop[] {
  countLag(app)
  return [...indexLoops(), mergeAllLoop()]
}

/** How far the index is behind the messages. */
function countLag(app: App): void {
  new Gauge({
    name: 'parley_search_pending',
    help: 'Messages that are in no list of search yet. No more than 100,000 are counted.',
    registers: [app.metrics],
    async collect() {
      this.set(await countPending(app.db, 100_000))
    },
  })
}

/**
 * To merge the segments of a large account takes minutes: nobody's messages wait for that, nor for an account where it
 * fails.
 */
export function indexLoops(): [Loop, Loop] {
  const unmerged = new Map<string, AccountKey>()
  return [
    {
      name: 'list',
      restMs: indexMs,
      async step({ db }) {
        const accounts = await findPending(db)
        const failed: unknown[] = []
        for (const account of accounts) {
          await listPending(db, account).catch((error) => failed.push(error))
          unmerged.set(account.account_id, account)
        }
        if (failed.length > 0) throw failed[0]
        return accounts.length > 0
      },
    },
    {
      name: 'merge',
      restMs: indexMs,
      async step({ db }, signal) {
        const [account] = unmerged.values()
        if (!account) return false
        unmerged.delete(account.account_id)
        // What is left to do there waits until the others had their turn.
        if (await mergeSegments(db, account, { signal })) unmerged.set(account.account_id, account)
        return unmerged.size > 0
      },
    },
  ]
}

/** Merges all segments of an account once nothing is pending. */
export function mergeAllLoop(): Loop {
  // Where it failed, or somebody else was at it: these wait until the others had their turn.
  const passed = new Set<string>()
  return {
    name: 'gather',
    restMs: mergeAllMs,
    async step({ db }, signal) {
      const account = await findScattered(db, { except: [...passed] })
      if (!account) {
        passed.clear()
        return false
      }
      passed.add(account.account_id)
      if (await mergeSegments(db, account, { all: true, signal })) passed.delete(account.account_id)
      return true
    },
  }
}
