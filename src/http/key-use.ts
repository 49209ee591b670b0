/** Stores when keys were last used, in batches: no request waits for it. */
import type { App } from '../app.ts'
import { noteKeyUse } from '../capabilities/keys/keys.ts'
import type { AnyCaller } from '../contract.ts'

const flushMs = 5_000

export function trackKeyUse(app: App): { note(caller: AnyCaller): void; flush(): Promise<void> } {
  const used = new Set<string>()
  let timer: NodeJS.Timeout | undefined

  async function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    const ids = [...used]
    used.clear()
    if (ids.length === 0) return
    // Losing a minute of "last used" during a database outage does no harm.
    await noteKeyUse(app, ids).catch((err) =>
      app.log.warn({ err }, 'the time of last use of some keys was not stored'),
    )
  }

  return {
    note(caller) {
      if (caller.via.kind !== 'key') return
      used.add(caller.via.id)
      timer ??= setTimeout(flush, flushMs).unref()
    },
    flush,
  }
}
