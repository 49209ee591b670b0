/** The people an account knows. */
import type { AccountKey } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { normalise, tokenise, toTsvector } from '../../lib/tokens.ts'
import type { Person } from '../../platform/port.ts'

/**
 * Inserts or updates contacts. Fields that the platform leaves out keep their value. Each person at most once. A person whose names
 * the platform has not shown is skipped: what is stored here is learned as seen now.
 */
export async function storeContacts(tx: Tx, account: AccountKey, all: readonly Person[]): Promise<void> {
  const people = all.filter(({ stale }) => !stale) // guard: no name that was not shown is stored
  if (people.length === 0) return
  await tx.run(sql`
    insert into contacts as c (account_id, provider_id, workspace_id, name, username, phone, sort_name, name_tokens)
    select ${account.account_id}, id, ${account.workspace_id}, name, username, phone, sort_name, tokens::tsvector
    from ${given(people, {
      id: 'bigint',
      name: 'text',
      username: 'text',
      phone: 'text',
      sort_name: ['text', ({ name }) => normalise(name)],
      tokens: ['text', ({ name }) => toTsvector(tokenise(name))],
    })} as person
    -- Skips known and unchanged contacts, which are most: a conflict would lock and rewrite their rows.
    where (select (k.name, k.username, k.phone)
        is not distinct from (person.name, person.username, coalesce(person.phone, k.phone))
      from contacts k where k.account_id = ${account.account_id} and k.provider_id = person.id) is not true
    on conflict (account_id, provider_id) do update
      set name = excluded.name, username = excluded.username, phone = coalesce(excluded.phone, c.phone),
        sort_name = excluded.sort_name, name_tokens = excluded.name_tokens`)
}

/** Throws 503 if the table is missing: an operation that ends by storing a contact must not start without it. */
export async function requireContacts(db: Db): Promise<void> {
  await db.run(sql`select from contacts limit 0`)
}

/** What these accounts' address books show of an erased person. */
export async function eraseContacts(tx: Tx, account_ids: readonly string[], number: string): Promise<void> {
  await tx.run(sql`delete from contacts where account_id = any(${account_ids}) and provider_id = ${number}`)
}
