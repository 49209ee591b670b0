/** Signing in with an e-mail address and a password. */
import { findDevice, issueDeviceToken } from '../../access/devices.ts'
import { beginSession } from '../../access/sessions.ts'
import type { App, Taking } from '../../app.ts'
import type { Visitor } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { sourceOf } from '../../lib/addresses.ts'
import { ApiError } from '../../lib/errors.ts'
import { isPassword, type PasswordTurn, requireTurn } from '../../lib/passwords.ts'
import { sha256 } from '../../lib/secrets.ts'
import { localIssuer } from '../users/users.ts'

/** How many attempts strangers have: on one user from one source, on one user in total, and from one source in total. */
const onUserFromSource = { limit: 10, seconds: 900 }
const onUser = { limit: 100, seconds: 3600 }
const fromSource = { limit: 100, seconds: 900 }
/** A browser that is known to be this user's has its own limit. */
const fromDevice = { limit: 10, seconds: 900 }

interface Credentials {
  readonly email: string
  readonly password: string
}

/** A user who gave the right password. */
interface ProvenUser {
  readonly user_id: string
  readonly subject: string
  readonly password_hash: string
}

/**
 * Counts every attempt. An address that no user has costs and answers the same, so that strangers learn nothing about who
 * has an account.
 */
export async function requirePassword(app: App, { via }: Visitor, given: Credentials): Promise<ProvenUser> {
  // Lower-cased as the database does it: otherwise each spelling of an address would have attempts of its own.
  const { address, user } = await app.db.one<{ address: string; user: ProvenUser | null }>(sql`
    select lower(${given.email}) as address, (
      select json_build_object('user_id', u.id, 'password_hash', u.password_hash, 'subject', i.subject)
      from users u join identities i on i.user_id = u.id and i.issuer = ${localIssuer}
      where lower(u.email) = lower(${given.email}) and u.disabled_at is null) as user`)
  const device = user && (await findDevice(app, via.device_token, user))
  const turn: PasswordTurn =
    user && device
      ? { lane: 'known', source: user.user_id } // guard: a known browser has its own place
      : { lane: 'stranger', source: sourceOf(via.address) }
  requireTurn(turn) // guard: a full queue uses up no attempt
  await countAttempts(app, device ? [attemptOf(device)] : attemptsOf(address, turn.source))
  const right = await isPassword(given.password, user?.password_hash, turn)
  if (!user || !right) throw new ApiError('sign_in_refused')
  return user
}

function attemptOf(device: string): Taking {
  return { caller: `sign-in:device:${device}`, rule: fromDevice }
}

/** The source first, so that a source without attempts left uses up none of a user's. */
function attemptsOf(address: string, source: string): Taking[] {
  // The limiter's store gets no e-mail address.
  const email = sha256(address).toString('base64url')
  return [
    { caller: `sign-in:from:${source}`, rule: fromSource }, // guard: attempts of one source
    { caller: `sign-in:${email}:${source}`, rule: onUserFromSource },
    { caller: `sign-in:${email}`, rule: onUser },
  ]
}

export async function countAttempts(app: App, attempts: readonly Taking[]): Promise<void> {
  const { allowed, retry_after } = await app.limits.takeAll(attempts)
  if (allowed) return
  throw new ApiError('rate_limited', {
    detail: 'Too many sign-in attempts. Retry after the seconds in Retry-After.',
    retry_after,
  })
}

export interface SignedIn {
  readonly session_token: string
  readonly device_token: string
}

/** The password or the user may have changed during the comparison: the lock makes that change wait, or this sees it. */
export async function signIn(app: App, tx: Tx, visitor: Visitor, proven: ProvenUser): Promise<SignedIn> {
  const { user_id, subject, password_hash } = proven
  const still = await tx.maybe(sql`
    select 1 from users
    where id = ${user_id} and password_hash = ${password_hash} and disabled_at is null for no key update`)
  if (!still) throw new ApiError('sign_in_refused') // guard: what was compared still holds
  const session_token = await beginSession(tx, visitor, { user_id, issuer: localIssuer, subject })
  app.log.info({ user_id, address: visitor.via.address }, 'signed in')
  const device_token = await issueDeviceToken(app, proven, { token: visitor.via.device_token })
  return { session_token, device_token }
}
