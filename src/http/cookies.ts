/** The cookie of a session. Its name says over TLS that no other site and no subdomain can have set it. */
import type { FastifyReply, FastifyRequest } from 'fastify'
import { sessionHours } from '../access/sessions.ts'
import type { Transport } from './origins.ts'

function nameFor(transport: Transport | undefined): string {
  return transport === 'tls' ? '__Host-sid' : 'sid'
}

/** Null takes the cookie away. */
export function setSessionCookie(request: FastifyRequest, reply: FastifyReply, token: string | null): void {
  const { transport } = request
  const seconds = token === null ? 0 : sessionHours * 3600
  const parts = [
    `${nameFor(transport)}=${token ?? ''}`,
    'Path=/',
    `Max-Age=${seconds}`,
    'HttpOnly',
    'SameSite=Lax',
    ...(transport === 'tls' ? ['Secure'] : []),
  ]
  reply.header('Set-Cookie', parts.join('; '))
}

/** The token of the session, where exactly one came. Over a network in plain text none counts. */
export function sessionTokenOf({ headers, transport }: FastifyRequest): string | undefined {
  if (transport === undefined || transport === 'plain') return undefined
  const name = `${nameFor(transport)}=`
  const given = (headers.cookie ?? '')
    .split(';')
    .map((part) => part.trim())
    .filter((part) => part.startsWith(name))
  return given.length === 1 ? given[0]?.slice(name.length) : undefined
}
