/** The two addresses that a browser visits on its way to the identity provider and back. */
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { beginSignIn, finishSignIn, OidcRefusal, requireOidc } from '../capabilities/oidc/oidc.ts'
import { sourceOf } from '../lib/addresses.ts'
import { ApiError } from '../lib/errors.ts'
import { quote } from '../lib/text.ts'
import { flowOf, setDeviceCookie, setFlowCookie, setSessionCookie } from './cookies.ts'
import { visitorOf } from './dashboard.ts'
import { requirePrivate } from './origins.ts'

export function mountOidc(app: App, server: FastifyInstance): void {
  mount('start', async (request, reply) => {
    const { return_to } = request.query as { return_to?: unknown }
    const begun = await beginSignIn(app, {
      return_to: typeof return_to === 'string' ? return_to : undefined,
    })
    setFlowCookie(request, reply, begun)
    return begun.location
  })
  mount('callback', async (request, reply) => {
    // The cookie is valid for one return, whatever its result.
    setFlowCookie(request, reply, null)
    const { search } = new URL(request.url, app.base_url())
    const { session_token, device_token, return_to } = await finishSignIn(app, visitorOf(request), {
      query: search,
      cookie: flowOf(request),
    })
    setSessionCookie(request, reply, session_token)
    if (device_token !== undefined) setDeviceCookie(request, reply, device_token)
    return return_to
  })

  function mount(name: string, visit: (request: FastifyRequest, reply: FastifyReply) => Promise<string>) {
    server.get(`/dashboard/oidc/${name}`, async (request, reply) => {
      request.operation = `oidc_${name}`
      try {
        await requireWay(app, request)
        return reply.redirect(await visit(request, reply))
      } catch (error) {
        const browser = request.headers.accept?.includes('text/html')
        if (!browser || !(error instanceof OidcRefusal)) throw error
        request.refusal = error.code
        return reply.redirect(`/dashboard/sign-in?${refusalQuery(error)}`)
      }
    })
  }
}

/** The sign-in page explains what happened. */
function refusalQuery({ reason, return_to }: OidcRefusal): string {
  return new URLSearchParams({ refused: reason, return_to }).toString()
}

/** Checks for both directions: there is a provider, the address is the one it knows, and the rate allows it. */
async function requireWay(app: App, request: FastifyRequest): Promise<void> {
  const { label } = requireOidc(app)
  requirePrivate(request)
  const { host = '' } = request.headers
  // The provider redirects to this one address, so the cookie has to be set there.
  if (host.toLowerCase() !== new URL(app.base_url()).host) {
    throw new ApiError('origin_refused', {
      detail: `Signing in with ${label} works only at ${app.base_url()}, but the Host header says ${quote(host)}. A proxy must pass the Host header on.`,
    })
  }
  // Each visit may cost a request to the provider.
  const rule = { limit: app.config.rate_limit, seconds: 60 }
  const window = await app.limits.take(`oidc:${sourceOf(request.client_address)}`, rule)
  if (!window.allowed) throw new ApiError('rate_limited', { retry_after: window.retry_after })
}
