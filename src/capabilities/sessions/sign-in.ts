/** Signing in with an e-mail address and a password. */
import { beginSession } from '../../access/sessions.ts'
import type { App } from '../../app.ts'
import type { Visitor } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isPassword } from '../../lib/passwords.ts'
import { sha256 } from '../../lib/secrets.ts'
import { localIssuer } from '../users/users.ts'

/** So that nobody tries many passwords on one person, from one place or from many. */
const fromOneAddress = { limit: 10, seconds: 900 }
const forOneEmail = { limit: 100, seconds: 3600 }

interface Given {
  readonly email: string
  readonly password: string
}

/** A user whose password was right. */
export interface Proven {
  readonly user_id: string
  readonly subject: string
  readonly password_hash: string
}

/**
 * Every attempt is counted, also for an address that nobody here has, which costs and answers the same: who asks learns
 * nothing about who is here.
 */
export async function requirePassword(app: App, { via }: Visitor, given: Given): Promise<Proven> {
  // In small letters as the database writes them, or one address spelled in many ways would have many attempts.
  const { address, user } = await app.db.one<{ address: string; user: Proven | null }>(sql`
    select lower(${given.email}) as address, (
      select json_build_object('user_id', u.id, 'password_hash', u.password_hash, 'subject', i.subject)
      from users u join identities i on i.user_id = u.id and i.issuer = ${localIssuer}
      where lower(u.email) = lower(${given.email}) and u.disabled_at is null) as user`)
  // The limiter's store needs to know nobody's address.
  const email = sha256(address).toString('base64url')
  await countAttempt(app, `sign-in:${email}:${via.address}`, fromOneAddress)
  await countAttempt(app, `sign-in:${email}`, forOneEmail)
  const right = await isPassword(given.password, user?.password_hash)
  if (!user || !right) throw new ApiError('sign_in_refused')
  return user
}

export async function countAttempt(
  app: App,
  who: string,
  rule: { limit: number; seconds: number },
): Promise<void> {
  const { allowed, retry_after } = await app.limits.take(who, rule)
  if (allowed) return
  throw new ApiError('rate_limited', {
    detail: 'Too many attempts to sign in. Wait as long as Retry-After says.',
    retry_after,
  })
}

/** The password may have been changed, or the user disabled, while it was compared: whoever does so waits for us, or we see it. */
export async function signIn(app: App, tx: Tx, visitor: Visitor, proven: Proven): Promise<string> {
  const { user_id, subject, password_hash } = proven
  const still = await tx.maybe(sql`
    select 1 from users
    where id = ${user_id} and password_hash = ${password_hash} and disabled_at is null for share`)
  if (!still) throw new ApiError('sign_in_refused') // guard: what was compared still holds
  const token = await beginSession(tx, visitor, { user_id, issuer: localIssuer, subject })
  app.log.info({ user_id, address: visitor.via.address }, 'signed in')
  return token
}
