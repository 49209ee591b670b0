/** The dashboard's doors: who may enter, and the headers of every answer below /dashboard. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { admitUser } from '../access/perform.ts'
import type { App } from '../app.ts'
import { ownPrefix, type Visitor, workspacePrefix } from '../contract.ts'
import { ApiError } from '../lib/errors.ts'
import type { Route } from '../route.ts'
import { pathOf } from './base.ts'
import { deviceTokenOf, sessionTokenOf } from './cookies.ts'
import { type Door, type Enter, matchPrefix } from './doors.ts'
import { requireNoForeignReader, requireOwnHost, requireOwnOrigin, requirePrivate } from './origins.ts'

/** The dashboard's own routes, besides the contract's. */
export interface DashboardRoutes {
  readonly workspaceRoutes: readonly Route[]
  readonly ownRoutes: readonly Route[]
}

const dashboardHeaders = {
  'content-security-policy': [
    "default-src 'none'",
    "script-src 'self'",
    // The pages' libraries position menus and dialogs with style attributes.
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    // Voice messages and videos of chats.
    "media-src 'self'",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; '),
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
}

function isDashboardPath(path: string): boolean {
  return matchPrefix('/dashboard', path) !== undefined
}

/** Set on every answer, including one to a malformed address. */
export function setDashboardHeaders(request: FastifyRequest, reply: FastifyReply): void {
  if (isDashboardPath(pathOf(request))) reply.headers(dashboardHeaders)
}

/** Pages and routes answer only under an address of ours, so that a rebound name learns nothing. */
export function guardDashboard(app: App, server: FastifyInstance): void {
  server.addHook('onRequest', (request, _reply, done) => {
    if (!isDashboardPath(pathOf(request))) return done()
    try {
      request.transport = requireOwnHost(app.config, request.headers.host ?? '')
      done()
    } catch (error) {
      done(error as ApiError)
    }
  })
}

export function dashboardDoors(app: App, routes: readonly Route[], dashboard: DashboardRoutes): Door[] {
  const enter = makeEnter(app)
  const outside = dashboard.ownRoutes.filter(({ asked_by }) => asked_by === undefined)
  if (outside.length > 0) throw new Error(`${outside[0]?.name} needs a workspace, and has none there.`)
  return [
    {
      prefix: workspacePrefix,
      routes: [...routes, ...dashboard.workspaceRoutes],
      enter,
      channel: 'dashboard',
    },
    { prefix: ownPrefix, routes: dashboard.ownRoutes, enter, channel: 'dashboard' },
  ]
}

/** Identifies the user by the session's cookie alone; a key is not accepted here. */
function makeEnter(app: App): Enter {
  return async (request, { route, params: { workspace_id } }) => {
    // No hook has run for a malformed address.
    request.transport ??= requireOwnHost(app.config, request.headers.host ?? '')
    requireOwnOrigin(app.config, request, route)
    if (route?.live) requireNoForeignReader(app.config, request)
    const token = sessionTokenOf(request)
    if (route?.asked_by === 'visitor') {
      // Also if nothing changes: the token of a set-up link is as good as a password.
      if (route.method !== 'GET') requirePrivate(request)
      return visitorOf(request)
    }
    // A browser reopens its stream automatically: that must not keep a session alive.
    const used = !route?.live // guard: a stream is no use of its session
    const device_token = deviceTokenOf(request)
    const asked = { token, workspace_id, used, device_token }
    const { user, member, disabled, window } = await admitUser(app, asked)
    request.caller = member ?? user
    request.window = window
    if (!window.allowed) throw new ApiError('rate_limited', { retry_after: window.retry_after })
    if (workspace_id === undefined) return user
    // Only members may learn whether the workspace exists.
    if (!member) throw new ApiError('not_found')
    if (disabled) throw new ApiError('workspace_disabled') // guard: members of a disabled workspace
    return member
  }
}

export function visitorOf(request: FastifyRequest): Visitor {
  return {
    via: {
      kind: 'visitor',
      address: request.client_address,
      user_agent: request.headers['user-agent'] ?? '',
      session_token: sessionTokenOf(request),
      device_token: deviceTokenOf(request),
    },
  }
}
