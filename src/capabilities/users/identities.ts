/** Identities at an identity provider, and the users they belong to. This never creates a user. */
import type { App } from '../../app.ts'
import type { Identity } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { record } from '../audit/audit.ts'

/** An identity that the provider has proved. */
interface ProvenIdentity extends Identity {
  /** Verified by the provider, and only set if that is enough to link it. */
  readonly email: string | undefined
  /** The user of the set-up link that led to the provider. */
  readonly invited: string | undefined
}

/** A user, and the identity that proved them. */
interface LinkedUser {
  readonly user_id: string
  readonly identity: Identity
}

/** Why no user was linked. The caller then rolls its transaction back, so that a set-up link stays valid. */
type LinkRefusal = 'unknown' | 'taken' | 'disabled'

/** The user of an identity. An unknown identity is first linked by a set-up link or a verified e-mail address. */
export async function linkIdentity(
  app: App,
  tx: Tx,
  proven: ProvenIdentity,
): Promise<LinkedUser | LinkRefusal> {
  const { issuer, subject } = proven
  const known = await tx.maybe<{ user_id: string; idp_user_uuid: string }>(
    sql`select user_id, idp_user_uuid from identities where issuer = ${issuer} and subject = ${subject}`,
  )
  const user_id = proven.invited ?? known?.user_id ?? (await findByEmail(tx, proven.email))
  if (user_id === undefined) return 'unknown'
  // The lock makes sure that an e-mail address links only one identity of a provider.
  const user = await tx.one<{ disabled_at: Date | null }>(
    sql`select disabled_at from users where id = ${user_id} for update`,
  )
  if (user.disabled_at) return 'disabled'
  if (known && known.user_id !== user_id) return 'taken'
  const identity = { issuer, subject, idp_user_uuid: known?.idp_user_uuid ?? proven.idp_user_uuid }
  if (known) return { user_id, identity }
  // If the provider gave the address to another person, it must not lead to its previous user.
  if (proven.invited === undefined && (await hasIdentity(tx, user_id, issuer))) return 'unknown' // guard: a reassigned address
  return (await insertIdentity(app, tx, user_id, proven)) ? { user_id, identity } : 'taken'
}

async function findByEmail(tx: Tx, email: string | undefined): Promise<string | undefined> {
  if (email === undefined) return undefined
  const user = await tx.maybe<{ id: string }>(sql`select id from users where lower(email) = lower(${email})`)
  return user?.id
}

async function hasIdentity(tx: Tx, user_id: string, issuer: string): Promise<boolean> {
  const found = await tx.maybe(
    sql`select 1 from identities where user_id = ${user_id} and issuer = ${issuer}`,
  )
  return found !== undefined
}

/** False if a concurrent transaction linked the same identity to another user. */
async function insertIdentity(app: App, tx: Tx, user_id: string, proven: ProvenIdentity): Promise<boolean> {
  const { issuer, subject, idp_user_uuid, invited } = proven
  const inserted = await tx.run(sql`
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    values (${issuer}, ${subject}, ${user_id}, ${idp_user_uuid}) on conflict do nothing`)
  if (inserted === 0) return false
  // As with a password, this invalidates links that could add another way to sign in.
  await endSetupLinks(tx, user_id)
  await record(app, tx, `user:${user_id}`, {
    action: 'user.identity_linked',
    target: user_id,
    detail: { issuer, by: invited === undefined ? 'email' : 'setup_link' },
  })
  return true
}

/** Invalidates a user's links: they would be another way to sign in, or lead further than their maker may go. */
export async function endSetupLinks(tx: Tx, user_id: string): Promise<void> {
  await tx.run(sql`
    update setup_links set used_at = domain_now() where user_id = ${user_id} and used_at is null`)
}

/** The links of every user of the instance. */
export async function endEverySetupLink(tx: Tx): Promise<void> {
  await tx.run(sql`update setup_links set used_at = domain_now() where used_at is null`)
}
