/**
 * Browsers that have signed in before. Each carries a token that grants no access: it distinguishes the user's own browser
 * from strangers, so that wrong passwords from elsewhere, however many, do not lock the user out. Nothing is stored.
 */
import { randomBytes, timingSafeEqual } from 'node:crypto'
import type { App } from '../app.ts'

/** How long a browser stays known after signing in. */
export const deviceDays = 180

/** The user of a browser. The signature covers the password hash, so a new password invalidates every token. */
interface DeviceOwner {
  readonly user_id: string
  readonly password_hash: string
}

interface KnownToken {
  /** The token that the browser sent. */
  readonly token: string | undefined
  /** What the token was signed with, if the password has just changed. */
  readonly password_hash?: string | null
}

/** A known browser keeps its id: with a new one at each sign-in, it would have new attempts without end. */
export async function issueDeviceToken(app: App, owner: DeviceOwner, known?: KnownToken): Promise<string> {
  const { token, password_hash = owner.password_hash } = known ?? {}
  const kept = password_hash === null ? undefined : await findDevice(app, token, { ...owner, password_hash })
  const id = kept ?? randomBytes(16).toString('base64url') // guard: a known browser keeps its id
  const { now } = await app.settings.current()
  const expires = String(Math.floor(now().getTime() / 1000) + deviceDays * 86_400)
  return `${id}.${expires}.${sign(app, owner, id, expires).toString('base64url')}`
}

/** The id of the user's browser. Undefined if the token is another user's, or is signed with an earlier password. */
export async function findDevice(
  app: App,
  token: string | undefined,
  owner: DeviceOwner,
): Promise<string | undefined> {
  const [, id, expires, given] = /^([\w-]{22})\.(\d{1,12})\.([\w-]{43})$/.exec(token ?? '') ?? []
  if (!id || !expires || !given) return undefined
  const signature = Buffer.from(given, 'base64url')
  const { user_id, password_hash } = owner
  const valid = app.secrets.signatures('device', user_id, password_hash, id, expires)
  if (!valid.some((each) => timingSafeEqual(signature, each))) return undefined // guard: a device token is signed
  const { now } = await app.settings.current()
  if (now().getTime() >= Number(expires) * 1000) return undefined // guard: age of a device token
  return id
}

function sign(
  { secrets }: App,
  { user_id, password_hash }: DeviceOwner,
  id: string,
  expires: string,
): Buffer {
  return secrets.sign('device', user_id, password_hash, id, expires)
}
