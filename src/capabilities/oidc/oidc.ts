/** Signing in with an identity provider (OpenID Connect). It creates no user: it links an identity to one. */
import { issueDeviceToken } from '../../access/devices.ts'
import { beginSession, endOtherSessions } from '../../access/sessions.ts'
import type { App } from '../../app.ts'
import type { OidcConfig } from '../../config.ts'
import type { Visitor } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { ApiError, type ErrorCode } from '../../lib/errors.ts'
import { consumeSetupLink, linkIdentity, requireSetupLink } from '../users/users.ts'
import { flowSeconds, openFlow, sealFlow } from './flow.ts'
import { askWho, beginAt, isUnreachable } from './provider.ts'
import { readReturnTo } from './return-to.ts'

/** Why a sign-in is refused: a code for the sign-in page and a sentence for other clients. */
const refusals = {
  failed: ['sign_in_refused', (label) => `Signing in with ${label} failed. Please try again.`],
  unknown: [
    'sign_in_refused',
    (label) =>
      `No user of this instance is linked to this ${label} account yet. Ask an admin of your workspace for a set-up link.`,
  ],
  taken: ['sign_in_refused', (label) => `This ${label} account is linked to another user of this instance.`],
  link: ['sign_in_refused', () => 'This set-up link has been used or has expired. Ask for a new one.'],
  disabled: ['sign_in_refused', () => 'This user is disabled. Ask an operator of this instance.'],
  unavailable: [
    'provider_unavailable',
    (label) => `${label} does not respond. Sign in with e-mail and password, or try again later.`,
  ],
} as const satisfies Record<string, readonly [ErrorCode, (label: string) => string]>

type Reason = keyof typeof refusals

/** A refused sign-in, with the reason code that the sign-in page knows. */
export class OidcRefusal extends ApiError {
  readonly reason: Reason
  readonly return_to: string

  constructor({ label }: OidcConfig, reason: Reason, return_to = readReturnTo(undefined)) {
    const [code, sentence] = refusals[reason]
    const detail = sentence(label)
    super(code, { detail: `${detail.charAt(0).toUpperCase()}${detail.slice(1)}` })
    this.reason = reason
    this.return_to = return_to
  }
}

interface StartedSignIn {
  /** Where to redirect the browser. */
  readonly location: string
  /** The cookie that the browser brings back, and how many seconds it lasts. */
  readonly cookie: string
  readonly seconds: number
}

/** With a set-up link, the person who signs in at the provider is linked to the link's user. */
export async function beginSignIn(
  app: App,
  { return_to, setup_token = null }: { return_to?: string | undefined; setup_token?: string | null },
): Promise<StartedSignIn> {
  const config = requireOidc(app)
  const going = readReturnTo(return_to)
  if (setup_token !== null) await requireSetupLink(app.db, setup_token)
  // An unreachable or misconfigured provider means the same to the person who signs in: no provider.
  const { location, ...secrets } = await beginAt(app, config).catch((error) => {
    throw refused(app, config, { error, reason: 'unavailable', return_to: going })
  })
  const { now } = await app.settings.current()
  const expires_at = now().getTime() + flowSeconds * 1_000
  const cookie = sealFlow(app, { ...secrets, return_to: going, setup_token, expires_at })
  return { location, cookie, seconds: flowSeconds }
}

interface FinishedSignIn {
  readonly session_token: string
  /** Undefined for a user without a password: only password sign-ins use it. */
  readonly device_token: string | undefined
  readonly return_to: string
}

/** The callback. A browser without the flow's cookie did not start this sign-in. */
export async function finishSignIn(
  app: App,
  visitor: Visitor,
  { query, cookie }: { query: string; cookie: string | undefined },
): Promise<FinishedSignIn> {
  const config = requireOidc(app)
  const flow = await openFlow(app, cookie)
  if (!flow) throw new OidcRefusal(config, 'failed')
  const { return_to, setup_token } = flow
  const identity = await askWho(app, config, { query, ...flow }).catch((error) => {
    throw refused(app, config, { error, reason: isUnreachable(error) ? 'unavailable' : 'failed', return_to })
  })
  const email = config.link_by_email ? identity.email : undefined
  return app.db.transaction(async (tx) => {
    const invited = setup_token === null ? undefined : await consume(tx, setup_token)
    if (invited === null) throw new OidcRefusal(config, 'link', return_to)
    const linked = await linkIdentity(app, tx, { ...identity, email, invited })
    if (typeof linked === 'string') throw new OidcRefusal(config, linked, return_to)
    const { user_id } = linked
    // Ends earlier sessions, as every set-up link does.
    if (invited) await endOtherSessions(tx, { user_id, except: null })
    const session_token = await beginSession(tx, visitor, { user_id, ...linked.identity })
    app.log.info({ user_id, address: visitor.via.address, issuer: identity.issuer }, 'signed in')
    return { session_token, device_token: await makeDeviceToken(app, tx, visitor, user_id), return_to }
  })
}

async function makeDeviceToken(
  app: App,
  tx: Tx,
  { via }: Visitor,
  user_id: string,
): Promise<string | undefined> {
  const { password_hash } = await tx.one<{ password_hash: string | null }>(
    sql`select password_hash from users where id = ${user_id}`,
  )
  if (password_hash === null) return undefined
  return issueDeviceToken(app, { user_id, password_hash }, { token: via.device_token })
}

/** Null if the link was used, or expired, while the person was at the provider. */
async function consume(tx: Tx, token: string): Promise<string | null> {
  try {
    return await consumeSetupLink(tx, token)
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_found') return null
    throw error
  }
}

/** What the sign-in page shows about the provider. */
export function describeProvider({ config }: App): { label: string } | null {
  return config.oidc ? { label: config.oidc.label } : null
}

export function requireOidc({ config }: App): OidcConfig {
  if (!config.oidc) {
    throw new ApiError('not_found', { detail: 'This instance has no identity provider to sign in with.' })
  }
  return config.oidc
}

/** The library's errors may contain codes and tokens, so only the message and the code are logged. */
function refused(
  app: App,
  config: OidcConfig,
  { error, reason, return_to }: { error: unknown; reason: Reason; return_to: string },
): OidcRefusal {
  const { message, code } = error as Error & { code?: string }
  app.log.warn({ reason, code, problem: message }, 'signing in with the identity provider failed')
  return new OidcRefusal(config, reason, return_to)
}
