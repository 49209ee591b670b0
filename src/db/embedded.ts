/**
 * The embedded PostgreSQL: a child process with its data in the data directory, reachable through a
 * socket only.
 *
 * Every process that uses it holds a shared advisory lock, and the service an exclusive one as well. Locks end with
 * their connection, so a killed process leaves nothing to guess about: the next process finds the server running
 * and takes it over, and the last one to leave stops it.
 */
import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { Refusal } from '../lib/errors.ts'
import { type Cluster, explainFailure, layOut, role, segmentBytes } from './embedded-cluster.ts'
import { findServer, killServer, startServer, stopServer } from './embedded-server.ts'
import type { Connection } from './pool.ts'

export interface Embedded {
  readonly connection: Connection
  /** Resolves when this process has lost its claim on the data directory. */
  readonly lost: Promise<Error>
  /** Releases the claim, and stops the server if no other process uses it. */
  close(): Promise<void>
}

interface EmbeddedOptions {
  readonly data_dir: string
  /** The service claims the directory for itself; a command only needs a running server. */
  readonly claim: 'service' | 'command'
  /** Refuses a directory without a database, instead of creating one. */
  readonly existing?: boolean
}

const locks = { service: 7_346_001, use: 7_346_002 }
const startMsMax = 60_000
/** The pause between attempts to reach a server that does not start. */
const reclaimMs = 1_000
/** How many starts may fail before giving up. */
const startsMax = 5
/** How often the service checks that its data directory still exists. */
const lookMs = 1_000

/** What this process has opened. */
const opened = new Set<Embedded>()

/**
 * For a process that ends by force: no server stays behind that no other process uses, whatever this one still does with its
 * connections.
 */
export async function leaveServers(): Promise<void> {
  await Promise.all([...opened].map((embedded) => embedded.close()))
}

/** Another service has the data directory, so retrying is pointless. */
class ClaimTaken extends Refusal {}

export async function openEmbedded(options: EmbeddedOptions): Promise<Embedded> {
  const place = await layOut(options.data_dir, options)
  const connection = {
    host: place.socket_dir,
    user: role,
    password: place.password,
    database: 'postgres',
  }
  let closing = false
  let claim = await takeClaim(place, connection, options)
  let server = await findServer(place)
  const { promise: lost, resolve: lose } = Promise.withResolvers<Error>()
  let reclaiming: Promise<void> | undefined
  watch(claim)
  const looking = setInterval(look, lookMs).unref()

  /** A server whose files were deleted runs on for a minute and stores nothing: end it, and the process that uses it. */
  async function look(): Promise<void> {
    if (closing || existsSync(place.cluster)) return
    closing = true
    // If it has ended at this very moment, that is what we wanted.
    if (server) await killServer(place, server).catch(() => {})
    lose(
      new Refusal(
        `${place.cluster} was deleted or moved while the service was running. Stop the service first.`,
      ),
    )
  }

  function watch(client: pg.Client): void {
    client.once('end', () => {
      reclaiming = reclaim()
    })
  }

  /**
   * Restarts a crashed server as often as it takes: on a full disk it does not start before there is room. The claim is lost
   * only if another service took it meanwhile.
   */
  async function reclaim(): Promise<void> {
    while (!closing) {
      try {
        claim = await takeClaim(place, connection, options)
        server = await findServer(place)
        return watch(claim)
      } catch (error) {
        if (error instanceof ClaimTaken) return lose(error)
        await sleep(reclaimMs)
      }
    }
  }

  async function close(): Promise<void> {
    closing = true
    clearInterval(looking)
    // Stops a server that is just restarting like any other.
    await reclaiming
    await leave(place, claim)
    opened.delete(embedded)
  }

  let closed: Promise<void> | undefined
  const embedded: Embedded = {
    connection,
    lost,
    close() {
      closed ??= close()
      return closed
    },
  }
  opened.add(embedded)
  return embedded
}

/** The last process to leave stops the server. */
async function leave(place: Cluster, claim: pg.Client): Promise<void> {
  try {
    await claim.query('select pg_advisory_unlock_shared($1)', [locks.use])
    const { rows } = await claim.query('select pg_try_advisory_lock($1) as last', [locks.use])
    if (rows[0].last) await stopServer(place)
    if (rows[0].last && !place.socket_dir.startsWith(place.data_dir))
      await rm(place.socket_dir, { recursive: true })
  } catch {
    // The server is gone already, and with it every claim.
  } finally {
    await claim.end().catch(() => {})
  }
}

async function takeClaim(
  place: Cluster,
  connection: Connection,
  options: EmbeddedOptions,
): Promise<pg.Client> {
  const client = await reachServer(place, connection)
  try {
    if (options.claim === 'service') {
      const { rows } = await client.query('select pg_try_advisory_lock($1) as mine', [locks.service])
      if (!rows[0].mine) {
        throw new ClaimTaken(
          `Another Parley service is running on ${place.data_dir}. Stop it, or give this one its own --data-dir.`,
        )
      }
    }
    await client.query('select pg_advisory_lock_shared($1)', [locks.use])
    return client
  } catch (error) {
    await client.end().catch(() => {})
    if (error instanceof Refusal) throw error
    // The server went down meanwhile, because the last process that used it stopped it.
    return takeClaim(place, connection, options)
  }
}

/** Connects to the running server, or starts one. */
async function reachServer(place: Cluster, connection: Connection): Promise<pg.Client> {
  const deadline = performance.now() + startMsMax
  let child: Awaited<ReturnType<typeof startServer>> | undefined
  let starts = 0
  while (performance.now() < deadline) {
    const client = new pg.Client({ ...connection, connectionTimeoutMillis: 2_000 })
    client.on('error', () => {})
    try {
      await client.connect()
      return client
    } catch (error) {
      await client.end().catch(() => {})
      const code = (error as NodeJS.ErrnoException).code
      if (code === '28P01') {
        throw new Refusal(
          `The database of ${place.data_dir} rejects the password in ${place.data_dir}/postgres.password.`,
        )
      }
      const nobodyThere = code === 'ENOENT' || code === 'ECONNREFUSED'
      const isStarting = child && child.exitCode === null && child.signalCode === null // guard: a server killed at its start
      if (nobodyThere && !isStarting && !(await findServer(place))) {
        // A start also fails beside another process's server, which may have stopped since: that is retried.
        if (child?.exitCode && starts >= startsMax) {
          throw await explainFailure(place, 'does not start', segmentBytes)
        }
        child = await startServer(place)
        starts++
      }
    }
    await sleep(20)
  }
  throw await explainFailure(place, 'did not respond for a minute', segmentBytes)
}
