/** The proxy of an account. Its URL may hold credentials, so it is sealed; what is shown has none. */
import type { App } from '../../app.ts'
import { sealedColumn } from '../../db/sealed-column.ts'
import { lockSecretUse } from '../../db/secret-use.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { type ProxyUrl, parseProxyUrl, proxyHostProblemOf, shownProxy } from '../../lib/proxy-url.ts'
import type { AccountProxy } from '../../platform/port.ts'

interface StoredProxy {
  readonly proxy: string | null
  readonly proxy_sealed: Buffer | null
}

/** Refuses a malformed URL, and a host that no user may name. */
export function requireProxyUrl({ config }: App, url: string | null | undefined): ProxyUrl | null {
  if (url === null || url === undefined) return null
  const proxy = parseProxyUrl(url)
  const problem = typeof proxy === 'string' ? proxy : proxyHostProblemOf(proxy, config.proxy_allow) // guard: a private proxy is refused
  if (typeof proxy === 'string' || problem !== undefined) {
    throw new ApiError('invalid_request', { detail: `proxy ${problem}.` })
  }
  return proxy
}

/** The columns for this URL; null: no proxy. */
export async function sealProxy(
  app: App,
  tx: Tx,
  { account_id, url }: { readonly account_id: string; readonly url: string | null },
): Promise<StoredProxy> {
  const proxy = requireProxyUrl(app, url)
  if (url === null || proxy === null) return { proxy: null, proxy_sealed: null }
  await lockSecretUse(tx, app.secrets) // guard: a proxy is sealed with the secret in use
  const proxy_sealed = app.secrets.seal('proxy', placeOf(account_id), Buffer.from(url))
  return { proxy: shownProxy(proxy), proxy_sealed }
}

/** The proxy that every connection of the account goes through; null: none. `unreadable`: stored under another secret. */
export async function findProxy(
  { db, secrets, config }: Pick<App, 'db' | 'secrets' | 'config'>,
  account_id: string,
): Promise<AccountProxy | null | 'unreadable'> {
  const { proxy_sealed } = await db.one<StoredProxy>(
    sql`select proxy, proxy_sealed from accounts where id = ${account_id}`,
  )
  if (!proxy_sealed) return null
  try {
    const url = secrets.open('proxy', placeOf(account_id), proxy_sealed).toString()
    const proxy = parseProxyUrl(url)
    return typeof proxy === 'string' ? 'unreadable' : { ...proxy, allow: config.proxy_allow }
  } catch {
    return 'unreadable'
  }
}

export interface AccountProxies {
  /** Each once, however many accounts use it. */
  readonly proxies: readonly AccountProxy[]
  /** Whether an account has none, or there is no account yet. */
  readonly direct: boolean
  /** Accounts whose proxy was stored under another secret. */
  readonly unreadable: readonly string[]
}

const proxiedMax = 200

/** How the enabled accounts of a platform reach it. */
export async function listProxies(
  app: Pick<App, 'db' | 'secrets' | 'config'>,
  platform: string,
): Promise<AccountProxies> {
  const accounts = await app.db.rows<{ id: string; proxy: string | null }>(sql`
    select id, proxy from accounts where platform = ${platform} and status <> 'DISABLED' order by id limit ${proxiedMax}`)
  const found = new Map<string, AccountProxy>()
  const unreadable: string[] = []
  for (const { id, proxy } of accounts) {
    if (proxy === null || found.has(proxy)) continue
    const opened = await findProxy(app, id)
    if (opened === 'unreadable') unreadable.push(id)
    else if (opened) found.set(proxy, opened)
  }
  const direct = accounts.length === 0 || accounts.some(({ proxy }) => proxy === null)
  return { proxies: [...found.values()], direct, unreadable }
}

export const unreadableProxy = 'The proxy was stored under another PARLEY_SECRET. Set it again.'

export async function requireProxy(app: App, account_id: string): Promise<AccountProxy | null> {
  const proxy = await findProxy(app, account_id)
  if (proxy === 'unreadable') throw new ApiError('conflict', { detail: unreadableProxy })
  return proxy
}

function placeOf(account_id: string): string {
  return `accounts:${account_id}:proxy` // guard: a proxy is bound to its account
}

export const sealedProxies = sealedColumn({
  name: 'accounts.proxy_sealed',
  purpose: 'proxy',
  table: sql`accounts`,
  key: sql`id`,
  column: sql`proxy_sealed`,
  placeOf,
})
