/** A signed-in user at the dashboard, with a browser's requests. */
import { beginSession } from '../../src/access/sessions.ts'
import type { App } from '../../src/app.ts'
import { sql } from '../../src/db/sql.ts'
import { newId } from '../../src/lib/ids.ts'
import type { Answer, Service } from './service.ts'

/** The cookie of a new session of this user, who gets a local identity if there is none. */
export async function signIn(service: { readonly app: Pick<App, 'db'> }, user_id: string): Promise<string> {
  const { db } = service.app
  const subject = newId()
  await db.run(sql`
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    select 'local', ${subject}, ${user_id}, ${subject}
    where not exists (select from identities where user_id = ${user_id})`)
  const identity = await db.one<{ issuer: string; subject: string }>(
    sql`select issuer, subject from identities where user_id = ${user_id} limit 1`,
  )
  const via = {
    kind: 'visitor',
    address: '127.0.0.1',
    user_agent: 'test',
    session_token: undefined,
    device_token: undefined,
  } as const
  const token = await db.transaction((tx) => beginSession(tx, { via }, { user_id, ...identity }))
  return `sid=${token}`
}

interface PersonAsk {
  /** Undefined: signed out. */
  readonly cookie?: string | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

/** Calls a route below /dashboard/api, as one of our own pages would. */
export async function askDashboard(
  service: Pick<Service, 'url'>,
  method: string,
  path: string,
  { cookie, body, headers = {} }: PersonAsk = {},
): Promise<Answer> {
  // A text is a file.
  const isFile = typeof body === 'string'
  const response = await fetch(`${service.url}/dashboard/api${path}`, {
    method,
    headers: {
      origin: service.url,
      ...(cookie !== undefined && { cookie }),
      ...(body !== undefined && { 'content-type': isFile ? 'text/csv' : 'application/json' }),
      ...headers,
    },
    ...(body !== undefined && { body: isFile ? body : JSON.stringify(body) }),
  })
  const { status, headers: received } = response
  // A stream has no end.
  if (received.get('content-type')?.startsWith('text/event-stream')) {
    await response.body?.cancel()
    return { status, headers: received, body: {} }
  }
  const text = await response.text()
  const saved = received.get('content-disposition') !== null
  return { status, headers: received, body: saved ? { text } : text ? JSON.parse(text) : {} }
}
