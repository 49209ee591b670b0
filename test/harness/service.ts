/** The service as a client sees it: real HTTP, a real database, and the functions operators use. */

import { createAccount, type Status } from '../../src/capabilities/accounts/accounts.ts'
import { storeChats } from '../../src/capabilities/chats/chats.ts'
import { storeContacts } from '../../src/capabilities/contacts/contacts.ts'
import { setAllowed, setGates } from '../../src/capabilities/gates/gates.ts'
import { createKey, type NewKey } from '../../src/capabilities/keys/keys.ts'
import { storeMessages } from '../../src/capabilities/messages/messages.ts'
import { createUser } from '../../src/capabilities/users/users.ts'
import { createWorkspace } from '../../src/capabilities/workspaces/workspaces.ts'
import { makeLogger } from '../../src/cli/log.ts'
import { type OpenApp, openApp } from '../../src/cli/open.ts'
import { readConfig } from '../../src/config.ts'
import { type Gate, scopes } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import { buildServer, type ServerOptions } from '../../src/http/server.ts'
import { ownRoutes, workspaceRoutes } from '../../src/lists/dashboard-routes.ts'
import { operations } from '../../src/lists/operations.ts'
import { routes } from '../../src/lists/routes.ts'
import type { Chat, Message, Person } from '../../src/platform/port.ts'
import type { Route } from '../../src/route.ts'
import { type CopyOptions, copyDatabase, type TestDatabase } from './database.ts'
import { findUndocumented } from './documented.ts'

interface ServiceOptions extends Partial<ServerOptions>, CopyOptions {
  /** Operations of this test only, besides the contract's. */
  readonly routes?: readonly Route[]
  readonly env?: Readonly<Record<string, string>>
  /** Where it listens; any free port by default. */
  readonly port?: number
  /** A copy of the template by default. */
  readonly database?: TestDatabase
}

export interface Answer {
  readonly status: number
  readonly headers: Headers
  readonly body: Record<string, unknown> & { readonly code?: string; readonly error?: string }
}

export interface Ask {
  readonly key?: string | undefined
  readonly body?: unknown
  readonly headers?: Readonly<Record<string, string>>
}

export interface Tenant {
  readonly workspace_id: string
  readonly user_id: string
  /** Every scope. */
  readonly key: string
  readonly key_id: string
}

interface NewChat {
  readonly account_id: string
  readonly workspace_id: string
  readonly id?: Chat['id']
  readonly texts?: readonly string[]
  readonly name?: string
}

/** One message a minute, from a fixed morning on. */
function messageOf(text: string, id: number): Message {
  const timestamp = new Date(Date.UTC(2026, 10, 1, 8) + id * 60_000).toISOString()
  const rest = { sender_id: null, edited_at: null, attachments: [], random_id: null }
  return { id: String(id), text, is_sender: id % 2 === 0, timestamp, ...rest }
}

export class Service {
  readonly app: OpenApp
  readonly url: string
  readonly database: TestDatabase
  readonly log: string[]
  readonly #close: () => Promise<void>

  constructor(parts: {
    app: OpenApp
    url: string
    database: TestDatabase
    log: string[]
    close: () => Promise<void>
  }) {
    this.app = parts.app
    this.url = parts.url
    this.database = parts.database
    this.log = parts.log
    this.#close = parts.close
  }

  async call(method: string, path: string, { key, body, headers = {} }: Ask = {}): Promise<Answer> {
    const response = await fetch(`${this.url}${path.startsWith('/api') ? '' : '/api/v1'}${path}`, {
      method,
      headers: {
        ...(key !== undefined && { authorization: `Bearer ${key}` }),
        ...(body !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body !== undefined && { body: typeof body === 'string' ? body : JSON.stringify(body) }),
    })
    const text = await response.text()
    const isFile = response.ok && !response.headers.get('content-type')?.startsWith('application/json')
    const parsed = text && !isFile ? JSON.parse(text) : {}
    const answer = { status: response.status, headers: response.headers, body: parsed }
    const undocumented = findUndocumented(method, path, answer)
    if (undocumented) throw new Error(undocumented)
    return answer
  }

  get = (path: string, ask?: Ask) => this.call('GET', path, ask)
  post = (path: string, ask?: Ask) => this.call('POST', path, ask)

  /** A workspace with a user and a key that has every scope. */
  async tenant(name = 'Acme'): Promise<Tenant> {
    const workspace = await createWorkspace(this.app, 'system', { name })
    const email = `${workspace.id}@acme.example`
    const user = await createUser(this.app, 'system', { email, workspace_id: workspace.id })
    const { key, id } = await this.key({ workspace_id: workspace.id, user_id: user.id })
    return { workspace_id: workspace.id, user_id: user.id, key, key_id: id }
  }

  key(wanted: Pick<NewKey, 'workspace_id' | 'user_id'> & Partial<NewKey>) {
    return createKey(this.app, 'system', { name: 'test', scopes, ...wanted })
  }

  /** An account in the given state, as a worker would have left it. */
  async account(workspace_id: string, status: Status = 'READY'): Promise<string> {
    const account = await createAccount(this.app, 'system', {
      workspace_id,
      platform: 'sandbox',
      name: 'Sales',
    })
    await this.app.db.run(sql`update accounts set status = ${status} where id = ${account.id}`)
    await this.settle()
    return account.id
  }

  /** A private chat with messages, oldest first, stored as if they had arrived. */
  async chat({
    account_id,
    workspace_id,
    id = '42',
    texts = ['hello'],
    name = 'Ines García',
  }: NewChat): Promise<string> {
    const account = { account_id, workspace_id }
    const person: Person = { id, name, username: `person_${id}`, phone: null, kind: 'person' }
    const chat: Chat = {
      id,
      kind: 'private',
      name,
      username: person.username,
      unread_count: 0,
      participants: [person],
    }
    await this.app.db.transaction(async (tx) => {
      const messages = texts.map((text, at) => messageOf(text, at + 1))
      await storeMessages(
        tx,
        account,
        messages.map((message) => ({ chat_id: id, message, announce: true })),
      )
      await storeChats(tx, account, [{ chat, last: messages.at(-1) ?? null }])
      await storeContacts(tx, account, [person])
    })
    return `platform:chat:${id}`
  }

  async open(...names: readonly (Gate | 'all')[]): Promise<void> {
    await setGates(this.app, 'system', { names, enabled: true })
  }

  async shut(...names: readonly Gate[]): Promise<void> {
    await setGates(this.app, 'system', { names, enabled: false })
  }

  async allow(
    { workspace_id, user_id }: Pick<Tenant, 'workspace_id' | 'user_id'>,
    allowed = true,
  ): Promise<void> {
    await setAllowed(this.app, 'system', { list: 'campaign_user', id: user_id, allowed })
    await setAllowed(this.app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed })
  }

  /** Makes the service see changes that a test made directly in the database. */
  async settle(): Promise<void> {
    await this.app.settings.refresh()
  }

  close(): Promise<void> {
    return this.#close()
  }
}

/** Opens every gate except `extended`, and a rate limit that no test reaches unless it sets one. */
export async function openService({ plans, ...options }: ServiceOptions = {}): Promise<Service> {
  const database = options.database ?? (await copyDatabase({ plans }))
  const log: string[] = []
  const config = readConfig({
    DATABASE_URL: database.url,
    PARLEY_SECRET: 'a secret for tests that is long enough',
    PARLEY_RATE_LIMIT: '1000000',
    ...options.env,
  })
  const listed = [...routes, ...(options.routes ?? [])]
  const app = await openApp({
    config,
    data_dir: '',
    log: makeLogger(config.log_level, { write: (line) => void log.push(line) }),
    claim: 'service',
    operations,
    routes: listed,
  })
  const readiness = { worker: () => 'elsewhere', journal: () => 'elsewhere', stopping: () => false }
  const server = await buildServer(app, listed, {
    readiness,
    dashboard: { workspaceRoutes, ownRoutes },
    ...options,
  })
  const url = await server.listen({ host: '127.0.0.1', port: options.port ?? 0 })
  app.listensAt(url)
  const close = async () => {
    await server.close()
    await app.close()
    await database.drop()
  }
  const service = new Service({ app, url, database, log, close })
  await service.open('all')
  return service
}
