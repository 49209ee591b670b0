/** The HTTP server: the API, the dashboard's doors, the reference and health. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { admit } from '../access/perform.ts'
import type { App } from '../app.ts'
import { endStreams, presenceOf } from '../capabilities/live/live.ts'
import { apiPrefix } from '../contract.ts'
import { ApiError } from '../lib/errors.ts'
import { makeOpenApi } from '../openapi/openapi.ts'
import type { Route } from '../route.ts'
import { mountAsset } from './assets.ts'
import { headerValues, makeBase, pathOf, type Server, toServer } from './base.ts'
import { bodyMs } from './body.ts'
import { type DashboardRoutes, dashboardDoors, guardDashboard, setDashboardHeaders } from './dashboard.ts'
import { mountPages } from './dashboard-pages.ts'
import { mountDocs, type Source } from './docs.ts'
import { findDoor, mountDoor, mountMissing } from './doors.ts'
import { mountHealth, type Readiness } from './health.ts'
import { trackKeyUse } from './key-use.ts'
import { type EnterByKey, mountMcp } from './mcp.ts'
import { makeMetrics } from './metrics.ts'
import { mountOidc } from './oidc.ts'
import { queryKeysOf } from './query-key.ts'
import { json } from './send.ts'

export interface ServerOptions {
  readonly readiness: Readiness
  /** The dashboard's own routes; without them there is no dashboard. */
  readonly dashboard?: DashboardRoutes
  /** Where its pages were built. */
  readonly pages?: string
  /** What the reference page shows besides the API. */
  readonly sources?: readonly Source[]
  /** How long a client may take for its headers, and for a JSON body. */
  readonly headersMs?: number
  readonly bodyMs?: number
}

/** For a year. Other hosts of the same domain are not ours to decide about, so it names no subdomains. */
const transportSecurity = 'max-age=31536000'

export async function buildServer(
  app: App,
  routes: readonly Route[],
  options: ServerOptions,
): Promise<Server> {
  const metrics = makeMetrics(app)
  const isSecure = app.config.base_url?.startsWith('https:')
  const server = makeBase({
    log: app.log,
    rate_limit: app.config.rate_limit,
    headersMs: options.headersMs,
    trusted_proxies: app.config.trusted_proxies,
    ...(isSecure && { always: { 'strict-transport-security': transportSecurity } }),
    meetFirst: setDashboardHeaders,
    enterFirst: async (request) => {
      const found = findDoor(doors, pathOf(request))
      await found?.door.enter(request, { route: undefined, params: found.params })
    },
    answered: metrics.observe,
    dropped: metrics.drop,
  })
  guardDashboard(app, server)
  const enter = makeEnter(app, server)
  const doors = [
    { prefix: apiPrefix, routes, enter, channel: 'rest' } as const,
    ...(options.dashboard ? dashboardDoors(app, routes, options.dashboard) : []),
  ]
  const mounting = { bodyMs: options.bodyMs ?? bodyMs, drop: metrics.drop }
  for (const door of doors) mountDoor(app, server, door, mounting)
  if (routes.length > 0) mountMcp(app, server, { routes, enter, ...mounting })
  mountMissing(server, doors)
  if (options.dashboard) {
    mountOidc(app, server)
    presenceOf(app)
    server.addHook('preClose', async () => endStreams(app))
  }
  const url = `${apiPrefix}/openapi.json`
  const make = () => JSON.stringify(makeOpenApi(routes))
  mountAsset(server, url, { operation: 'get_openapi', type: json, make })
  mountHealth(app, server, options.readiness)
  const paged = options.pages !== undefined && (await mountPages(server, options.pages))
  if (routes.length > 0) {
    const dashboard = paged ? '/dashboard/' : undefined
    const sources = [{ title: 'API', slug: 'api', url }, ...(options.sources ?? [])]
    await mountDocs(server, { sources, dashboard })
    mountHome(server, dashboard ?? '/docs/')
  }
  return toServer(server)
}

/** Redirects the bare address to a page. */
function mountHome(server: FastifyInstance, to: string): void {
  server.get('/', async (request, reply) => {
    request.operation = 'home'
    return reply.redirect(to, 302)
  })
}

/** Authenticates a request by its key and counts it against the key's rate. A session is not accepted here. */
function makeEnter(app: App, server: FastifyInstance): EnterByKey {
  const uses = trackKeyUse(app)
  server.addHook('onClose', () => uses.flush())
  return async (request) => {
    const { caller, window } = await admit(app, {
      authorization: authorizationOf(request),
    })
    request.caller = caller
    request.window = window
    if (!window.allowed) throw new ApiError('rate_limited', { retry_after: window.retry_after })
    uses.note(caller)
    return caller
  }
}

/** A key in the address counts at one path only, and only if there is no header. */
function authorizationOf(request: FastifyRequest): readonly string[] {
  const given = headerValues(request, 'authorization')
  return given.length > 0 ? given : queryKeysOf(request.raw).map((key) => `Bearer ${key}`)
}
