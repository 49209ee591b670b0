/** Health, readiness and metrics, for supervisors and operators. */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { readDispatch } from '../capabilities/gates/gates.ts'
import { isMigrated, listMigrations } from '../db/migrate.ts'
import { sql } from '../db/sql.ts'
import { canDrive } from '../ledger/liveness.ts'
import { ApiError } from '../lib/errors.ts'
import { sha256 } from '../lib/secrets.ts'
import { together } from '../lib/together.ts'
import { once } from './assets.ts'
import { describeWay } from './doctor-probe.ts'

export interface Readiness {
  /** The state of this process's background work: `ok`, `elsewhere`, or the problem. */
  worker(): string
  /** Its journal: `ok`, `unwritable`, `none`, or `elsewhere`. */
  journal(): string
  /** True once the process has begun to stop. */
  stopping(): boolean
}

export function mountHealth(app: App, server: FastifyInstance, readiness: Readiness): void {
  // The migration files do not change while a process runs.
  const migrations = once(() => listMigrations())
  const checkStore = together(async () => ({
    database: await check(() => app.db.one(sql`select 1 as up`)),
    migrations: await check(async () => {
      if (!(await isMigrated(app.db, await migrations()))) throw new Error('behind')
    }),
    limits: await check(() => app.limits.check()), // guard: readiness asks the limiter
  }))
  const checkDispatch = together(() => readSwitch(app))
  const checkSending = together(async () => ((await canDrive(app)) ? 'ok' : 'unavailable'))
  server.get('/healthz', async (request) => {
    request.operation = 'healthz'
    return { status: 'ok', ...describeWay(app, request) }
  })

  server.get('/readyz', async (request, reply) => {
    request.operation = 'readyz'
    const checks = {
      ...(await checkStore()),
      worker: readiness.worker(),
      ...(readiness.stopping() && { process: 'stopping' }),
    }
    const forSends = isForSends(request)
    // Reported, but no reason to send requests elsewhere: reads still work, and no other process could send either.
    const reported = { dispatch: await checkDispatch(), journal: readiness.journal() }
    const asked = { ...checks, ...(forSends && { sending: await checkSending() }) } // guard: readiness for sends
    const ready = Object.values(asked).every((state) => state === 'ok' || state === 'elsewhere')
    return reply
      .code(ready ? 200 : 503)
      .send({ status: ready ? 'ok' : 'unavailable', checks: { ...asked, ...reported } })
  })
}

/** `?role=send`: the caller asks whether messages can be sent. */
function isForSends({ query }: FastifyRequest): boolean {
  const { role } = query as { readonly role?: unknown }
  if (role !== undefined && role !== 'send') {
    throw new ApiError('invalid_request', { detail: 'The only role that can be asked for is send.' })
  }
  return role === 'send'
}

/** With a token set, requires it. Without one, every caller of the admin port may read. */
export function mountMetrics(app: App, server: FastifyInstance): void {
  server.get('/metrics', async (request, reply) => {
    request.operation = 'metrics'
    requireMetricsReader(app, request)
    return reply.type(app.metrics.contentType).send(await app.metrics.metrics())
  })
}

/** `owing`: a worker has not yet put back what its journals know, and nothing is sent until it has. */
async function readSwitch({ db }: App): Promise<'on' | 'off' | 'owing' | 'unknown'> {
  try {
    const { dispatch, owing } = await readDispatch(db)
    return !dispatch ? 'off' : owing.length > 0 ? 'owing' : 'on'
  } catch {
    return 'unknown'
  }
}

async function check(work: () => Promise<unknown>): Promise<string> {
  try {
    await work()
    return 'ok'
  } catch (error) {
    return error instanceof ApiError ? error.code : 'unavailable'
  }
}

function requireMetricsReader(app: App, request: FastifyRequest): void {
  const token = app.config.metrics_token
  if (!token) return
  const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
  if (!timingSafeEqual(sha256(given), sha256(token))) throw new ApiError('not_found')
}
