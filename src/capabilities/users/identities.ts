/** Identities at an identity provider, and the users they belong to. Nobody is created here. */
import type { App } from '../../app.ts'
import type { Identity } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { record } from '../audit/audit.ts'

/** Somebody who has proved to be this user. */
export interface Linked {
  readonly user_id: string
  readonly identity: Identity
}

export interface Proven extends Identity {
  /** Verified by the provider, and only where that is enough to be linked. */
  readonly email: string | undefined
  /** Of the set-up link that was followed to the provider. */
  readonly setup_hash: Buffer | undefined
}

export type Unlinked = 'unknown' | 'taken' | 'link' | 'disabled'

/** Thrown to undo the transaction, so that a set-up link that could not be used stays good. */
class Undone extends Error {
  readonly reason: Unlinked

  constructor(reason: Unlinked) {
    super(reason)
    this.reason = reason
  }
}

/** The user behind an identity, which is linked first where a set-up link or a verified e-mail address says to whom. */
export async function linkIdentity(app: App, proven: Proven): Promise<Linked | Unlinked> {
  try {
    return await app.db.transaction((tx) => link(app, tx, proven))
  } catch (error) {
    if (error instanceof Undone) return error.reason
    throw error
  }
}

async function link(app: App, tx: Tx, proven: Proven): Promise<Linked> {
  const known = await findIdentity(tx, proven)
  const user_id = await chooseUser(tx, proven, known?.user_id)
  // Locked, so that of two identities of one provider only one is linked by an e-mail address.
  const user = await tx.maybe<{ disabled_at: Date | null }>(
    sql`select disabled_at from users where id = ${user_id} for update`,
  )
  if (!user || user.disabled_at) throw new Undone('disabled')
  if (known && known.user_id !== user_id) throw new Undone('taken')
  const { issuer, subject } = proven
  const identity = { issuer, subject, idp_user_uuid: known?.idp_user_uuid ?? proven.idp_user_uuid }
  if (known) return { user_id, identity }
  await insertIdentity(app, tx, user_id, proven)
  return { user_id, identity }
}

interface Known {
  readonly user_id: string
  readonly idp_user_uuid: string
}

function findIdentity(tx: Tx, { issuer, subject }: Proven): Promise<Known | undefined> {
  return tx.maybe<Known>(
    sql`select user_id, idp_user_uuid from identities where issuer = ${issuer} and subject = ${subject}`,
  )
}

/** A set-up link says for itself whose it is; without one a known identity does, and only then an e-mail address. */
async function chooseUser(tx: Tx, { email, setup_hash }: Proven, known: string | undefined): Promise<string> {
  if (setup_hash) {
    const link = await tx.maybe<{ user_id: string }>(sql`
      update setup_links set used_at = domain_now()
      where token_hash = ${setup_hash} and used_at is null and expires_at > domain_now()
      returning user_id`)
    if (!link) throw new Undone('link')
    return link.user_id
  }
  if (known) return known
  const user =
    email !== undefined &&
    (await tx.maybe<{ id: string }>(sql`select id from users where lower(email) = lower(${email})`))
  if (!user) throw new Undone('unknown')
  return user.id
}

async function insertIdentity(app: App, tx: Tx, user_id: string, proven: Proven): Promise<void> {
  const { issuer, subject, idp_user_uuid, setup_hash } = proven
  // An address that was given to somebody else at the provider must not lead to the user who had it before.
  const other =
    !setup_hash &&
    (await tx.maybe(sql`select 1 from identities where user_id = ${user_id} and issuer = ${issuer}`))
  if (other) throw new Undone('unknown')
  const inserted = await tx.run(sql`
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    values (${issuer}, ${subject}, ${user_id}, ${idp_user_uuid}) on conflict do nothing`)
  if (inserted === 0) throw new Undone('taken')
  await record(app, tx, `user:${user_id}`, {
    action: 'user.identity_linked',
    target: user_id,
    detail: { issuer, by: setup_hash ? 'setup_link' : 'email' },
  })
}
