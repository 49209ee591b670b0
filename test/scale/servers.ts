/** The servers of others that teams put beside Parley: the limits in Redis, and PgBouncer before PostgreSQL, where they are installed. */
import type { PlantOptions } from '../faults/plant.ts'
import { hasPgBouncer, openPgBouncer, type PgBouncer } from '../harness/pgbouncer.ts'
import { hasRedis, openRedis } from '../harness/redis.ts'

/** By session every connection of a process is one of the server, which allows 100: six processes open up to 13 each. */
const poolSize = 80

export interface Servers {
  readonly used: readonly string[]
  readonly skipped: readonly string[]
  /** What a plant needs to use them. */
  readonly env: Readonly<Record<string, string>>
  readonly through: PlantOptions['through']
  close(): Promise<void>
}

export async function openServers(without: readonly string[]): Promise<Servers> {
  const installed = { redis: hasRedis(), pgbouncer: hasPgBouncer() }
  const names = Object.keys(installed) as (keyof typeof installed)[]
  const unknown = without.find((name) => !names.some((each) => each === name))
  if (unknown) throw new Error(`--without names one of ${names.join(', ')}, not ${unknown}.`)
  const used = names.filter((name) => installed[name] && !without.includes(name))
  const redis = used.includes('redis') ? await openRedis() : undefined
  let pooler: PgBouncer | undefined
  const through: PlantOptions['through'] = async ({ cluster }) => {
    const sizes = [`default_pool_size = ${poolSize}`, 'max_client_conn = 200']
    // By default it does not ask a server again for 15 s after it was away.
    pooler = await openPgBouncer(cluster, ['pool_mode = session', ...sizes, 'server_login_retry = 1'])
    return pooler.port
  }
  return {
    used,
    skipped: names.filter((name) => !used.includes(name)),
    env: redis ? { REDIS_URL: redis.url } : {},
    through: used.includes('pgbouncer') ? through : undefined,
    async close() {
      await pooler?.close()
      await redis?.close()
    },
  }
}
