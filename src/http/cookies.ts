/** Our three cookies. Over TLS their name prefixes prove that no other site and no subdomain set them. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { deviceDays } from '../access/devices.ts'
import { sessionHours } from '../access/sessions.ts'
import type { Transport } from './origins.ts'

/** `sid` is the session, `device` a browser that has signed in before, `oidc` a sign-in under way at the identity provider. */
type Name = 'sid' | 'device' | 'oidc'

function nameFor(transport: Transport | undefined, name: Name): string {
  return transport === 'tls' ? `__Host-${name}` : name
}

/** Null deletes the cookie. */
export function setSessionCookie(request: FastifyRequest, reply: FastifyReply, token: string | null): void {
  setCookie(request, reply, { name: 'sid', value: token, seconds: sessionHours * 3600 })
}

export function setDeviceCookie(request: FastifyRequest, reply: FastifyReply, token: string): void {
  setCookie(request, reply, { name: 'device', value: token, seconds: deviceDays * 86_400 })
}

/** Null deletes the cookie. */
export function setFlowCookie(
  request: FastifyRequest,
  reply: FastifyReply,
  flow: { readonly cookie: string; readonly seconds: number } | null,
): void {
  setCookie(request, reply, { name: 'oidc', value: flow?.cookie ?? null, seconds: flow?.seconds ?? 0 })
}

interface Cookie {
  readonly name: Name
  readonly value: string | null
  readonly seconds: number
}

function setCookie(
  { transport }: FastifyRequest,
  reply: FastifyReply,
  { name, value, seconds }: Cookie,
): void {
  const parts = [
    `${nameFor(transport, name)}=${value ?? ''}`,
    'Path=/',
    `Max-Age=${value === null ? 0 : seconds}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(transport === 'tls' ? ['Secure'] : []),
  ]
  reply.header('Set-Cookie', parts.join('; '))
}

/** The session's token, if the request has exactly one. */
export function sessionTokenOf(request: FastifyRequest): string | undefined {
  return readCookie(request, 'sid')
}

export function deviceTokenOf(request: FastifyRequest): string | undefined {
  return readCookie(request, 'device')
}

export function flowOf(request: FastifyRequest): string | undefined {
  return readCookie(request, 'oidc')
}

/** Ignores all cookies that arrive in plain text over a network. */
function readCookie({ headers, transport }: FastifyRequest, name: Name): string | undefined {
  if (transport === undefined || transport === 'plain') return undefined
  const start = `${nameFor(transport, name)}=`
  const given = (headers.cookie ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(start))
  return given.length === 1 ? given[0]?.slice(start.length) : undefined
}
