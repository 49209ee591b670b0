/** The background work of search: index new messages, merge segments, reindex segments of another format. */
import { Gauge } from 'prom-client'
import type { App } from '../../app.ts'
import { sharedMetric } from '../../lib/metrics.ts'
import type { Loop } from '../../loop.ts'
import {
  countPending,
  findMergeable,
  findPending,
  indexPending,
  mergeSegments,
  reindexOutdated,
  settleForgetting,
} from './index/search-index.ts'

const indexMs = 1_000
const mergeMs = 2_000
const reindexMs = 60_000

export function loops(app: App): readonly Loop[] {
  countLag(app)
  return makeLoops()
}

/** Each call makes its own state. Merging a large account takes minutes, and indexing does not wait for it. */
export function makeLoops(): readonly [index: Loop, merge: Loop, reindex: Loop] {
  return [indexLoop(), mergeLoop(), reindexLoop()]
}

/** Exports how many messages wait for indexing. */
function countLag(app: App): void {
  const name = 'parley_search_pending'
  sharedMetric(app.metrics, name, () => {
    return new Gauge({
      name,
      help: 'Messages that are not in the search index yet. Counts at most 100,000.',
      registers: [app.metrics],
      async collect() {
        this.remove()
        const pending = await countPending(app.db, 100_000).catch(() => undefined)
        if (pending !== undefined) this.set(pending)
      },
    })
  })
}

function indexLoop(): Loop {
  return {
    name: 'search-index',
    restMs: indexMs,
    async step({ db }) {
      const owners = await findPending(db)
      const failed: unknown[] = []
      // An account that fails does not block the others.
      for (const owner of owners) await indexPending(db, owner).catch((error) => failed.push(error))
      if (failed.length > 0) throw failed[0]
      return owners.length > 0
    },
  }
}

function mergeLoop(): Loop {
  // Accounts whose merge failed, or whose segments another process holds: the others come first.
  const passed = new Set<string>()
  return {
    name: 'search-merge',
    restMs: mergeMs,
    async step({ db }, signal) {
      const owner = await findMergeable(db, { except: [...passed] })
      if (!owner) {
        passed.clear()
        await settleForgetting(db)
        return false
      }
      passed.add(owner.account_id)
      if (await mergeSegments(db, owner, { signal })) passed.delete(owner.account_id)
      return true
    },
  }
}

function reindexLoop(): Loop {
  return {
    name: 'search-reindex',
    restMs: reindexMs,
    step: ({ db }) => reindexOutdated(db),
  }
}
