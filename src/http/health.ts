/** Health, readiness and metrics, for supervisors and operators. */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { isMigrated } from '../db/migrate.ts'
import { sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { sha256 } from '../lib/secrets.ts'

export interface Readiness {
  /** The background work of this process: `ok`, `elsewhere`, or what is wrong with it. */
  worker(): string
  /** True once the process has been told to stop. */
  stopping(): boolean
}

export function mountHealth(app: App, server: FastifyInstance, readiness: Readiness): void {
  server.get('/healthz', async (request) => {
    request.operation = 'healthz'
    return { status: 'ok' }
  })

  server.get('/readyz', async (request, reply) => {
    request.operation = 'readyz'
    const checks = {
      database: await check(() => app.db.one(sql`select 1 as up`)),
      migrations: await check(async () => {
        if (!(await isMigrated(app.db))) throw new Error('behind')
      }),
      worker: readiness.worker(),
      ...(readiness.stopping() && { process: 'stopping' }),
    }
    const ready = Object.values(checks).every((state) => state === 'ok' || state === 'elsewhere')
    return reply.code(ready ? 200 : 503).send({ status: ready ? 'ok' : 'unavailable', checks })
  })

  server.get('/metrics', async (request, reply) => {
    request.operation = 'metrics'
    requireMetricsReader(app, request)
    return reply.type(app.metrics.contentType).send(await app.metrics.metrics())
  })
}

async function check(work: () => Promise<unknown>): Promise<string> {
  try {
    await work()
    return 'ok'
  } catch (error) {
    return error instanceof ApiError ? error.code : 'unavailable'
  }
}

/** With a token: whoever has it. Without: this machine only, and not through a proxy. */
function requireMetricsReader(app: App, request: FastifyRequest): void {
  const token = app.config.metrics_token
  const given = /^Bearer (.+)$/.exec(request.headers.authorization ?? '')?.[1] ?? ''
  const allowed = token ? timingSafeEqual(sha256(given), sha256(token)) : isFromHere(request)
  if (!allowed) throw new ApiError('not_found')
}

/**
 * Whether the caller is on this machine and names it: not through a proxy, and not a browser's page whose host name was
 * pointed at this address (DNS rebinding).
 */
export function isFromHere(request: FastifyRequest): boolean {
  const { host, 'x-forwarded-for': forwarded, forwarded: standard } = request.headers
  const name = host?.replace(/:\d+$/, '') ?? ''
  const direct = forwarded === undefined && standard === undefined
  return isLoopback(request.ip) && direct && ['localhost', '127.0.0.1', '[::1]'].includes(name)
}

function isLoopback(ip: string): boolean {
  return ip === '::1' || /^(::ffff:)?127\./.test(ip)
}
