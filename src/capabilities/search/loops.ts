/** The background work of search: index what is new, merge segments, index anew what has another format. */
import type { App } from '../../app.ts'
import {
  findMergeable,
  findPending,
  indexPending,
  mergeSegments,
  reindexOutdated,
} from './index/search-index.ts'

const indexMs = 1_000
const mergeMs = 2_000
const reindexMs = 60_000

/** Each call has a state of its own. To merge a large account takes minutes, and indexing does not wait for it. */
export function makeLoops() {
  return [indexLoop(), mergeLoop(), reindexLoop()] as const
}

function indexLoop() {
  return {
    name: 'search-index',
    restMs: indexMs,
    async step({ db }: App): Promise<boolean> {
      const owners = await findPending(db)
      const failed: unknown[] = []
      // An account that fails is in no other account's way.
      for (const owner of owners) await indexPending(db, owner).catch((error) => failed.push(error))
      if (failed.length > 0) throw failed[0]
      return owners.length > 0
    },
  }
}

function mergeLoop() {
  // Accounts whose merge failed, or that somebody else holds: the others have their turn first.
  const passed = new Set<string>()
  return {
    name: 'search-merge',
    restMs: mergeMs,
    async step({ db }: App, signal: AbortSignal): Promise<boolean> {
      const owner = await findMergeable(db, { except: [...passed] })
      if (!owner) {
        passed.clear()
        return false
      }
      passed.add(owner.account_id)
      if (await mergeSegments(db, owner, { signal })) passed.delete(owner.account_id)
      return true
    },
  }
}

function reindexLoop() {
  return {
    name: 'search-reindex',
    restMs: reindexMs,
    step: ({ db }: App): Promise<boolean> => reindexOutdated(db),
  }
}
