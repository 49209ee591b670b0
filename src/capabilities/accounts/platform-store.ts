/** What an adapter stores for an account: the session of its login, sealed, and whom the account can write to. */
import type { App } from '../../app.ts'
import { given } from '../../db/given.ts'
import { sealedColumn } from '../../db/sealed-column.ts'
import { lockSecretUse } from '../../db/secret-use.ts'
import { type Sql, sql, type Tx } from '../../db/sql.ts'
import { type HeldLease, requireLease } from '../../ledger/leases.ts'
import type { Secrets } from '../../lib/secrets.ts'
import type { AccountStore, StoredPeer } from '../../platform/port.ts'
import { isGone } from '../people/people.ts'

/** The store of an account, for the worker that holds its lease. */
export function openAccountStore(app: App, held: Omit<HeldLease, 'writes'>): AccountStore {
  const { account_id } = held
  return {
    async readSession() {
      const session = await findSession(app, account_id)
      if (session !== 'unreadable') return session
      app.log.error({ account_id }, 'the login of an account was stored under another PARLEY_SECRET')
      return null
    },
    writeSession: (session) =>
      app.db.transaction(async (tx) => {
        // A login revokes the lease, so its session is never replaced by one that was read before it.
        await requireLease(tx, held) // guard: a session is written under the lease
        await lockSecretUse(tx, app.secrets) // guard: a session is sealed with the secret in use
        await tx.run(sql`
          update platform_sessions set sealed = ${sealSession(app.secrets, account_id, session)}
          where account_id = ${account_id}`)
      }),
    listPeers: ({ after, limit }) =>
      app.db.rows<StoredPeer>(sql`
        select number::text as number, text from platform_peers
        where account_id = ${account_id} and (${after}::bigint is null or number > ${after}::bigint)
        order by platform_peers.number limit ${limit}`),
    writePeers: (peers) =>
      app.db.transaction(async (tx) => {
        await requireLease(tx, held) // guard: peers are written under the lease
        await tx.run(sql`
          insert into platform_peers (account_id, number, text)
          select p.account_id, p.chat_id, case when ${isGone(sql`p`)} -- guard: peers of erased people have no names
            then ${unnamed(sql`p.text`)} else p.text end
          from (
            select ${account_id} as account_id, g.number as chat_id, g.text
            from ${given(peers, { number: 'bigint', text: 'text' })} as g) p
          on conflict (account_id, number) do update set text = excluded.text`)
      }),
  }
}

/** A table of strangers may be long. */
const tidyMsMax = 60_000

/** Erases what workers of release 0.3 stored of login codes and of strangers, once for each account. */
export async function tidyAccount(app: App, held: Omit<HeldLease, 'writes'>): Promise<void> {
  const { account_id } = held
  const untidied = await app.db.maybe(sql`
    select 1 from account_hosts where account_id = ${account_id} and not tidied`)
  if (!untidied) return
  await app.db.transaction(async (tx) => {
    await tx.run(sql`select set_config('statement_timeout', ${String(tidyMsMax)}, true)`)
    await requireLease(tx, held)
    await tx.run(sql`select tidy_account(${account_id})`)
  })
}

/** Null: no login is stored. `unreadable`: it was stored under another secret, or for another account. */
export async function findSession(
  { db, secrets }: Pick<App, 'db' | 'secrets'>,
  account_id: string,
): Promise<Uint8Array | null | 'unreadable'> {
  const row = await db.maybe<{ sealed: Buffer }>(
    sql`select sealed from platform_sessions where account_id = ${account_id}`,
  )
  if (!row) return null
  try {
    return secrets.open('platform_session', placeOf(account_id), row.sealed)
  } catch {
    return 'unreadable'
  }
}

export function sealSession(secrets: Secrets, account_id: string, session: Uint8Array): Buffer {
  return secrets.seal('platform_session', placeOf(account_id), session)
}

function placeOf(account_id: string): string {
  return `platform_sessions:${account_id}` // guard: a session is bound to its account
}

export const sealedSessions = sealedColumn({
  name: 'platform_sessions.sealed',
  purpose: 'platform_session',
  table: sql`platform_sessions`,
  key: sql`account_id`,
  column: sql`sealed`,
  placeOf,
})

/** A row of the store of an erased person: without what they are called, and with what a call about them needs. */
const unnamed = (text: Sql): Sql => sql`((${text})::jsonb - 'username' || '{"name": ""}')::text`

/** What the stores of these accounts call an erased person. */
export async function erasePeers(tx: Tx, account_ids: readonly string[], number: string): Promise<void> {
  await tx.run(sql`
    update platform_peers p set text = ${unnamed(sql`p.text`)}
    where account_id = any(${account_ids}) and number = ${number}`)
}
