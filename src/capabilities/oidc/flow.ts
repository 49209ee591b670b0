/** State kept between the redirect to the provider and the callback: a sealed cookie in the browser that started it. */
import { z } from 'zod'
import type { App } from '../../app.ts'

/** Ten minutes are enough to enter a password and a second factor at the provider. */
export const flowSeconds = 600

const shape = z.object({
  state: z.string(),
  nonce: z.string(),
  /** PKCE: only the holder of this can exchange the code. */
  verifier: z.string(),
  return_to: z.string(),
  /** The set-up link that an unknown identity is to be linked by. */
  setup_token: z.string().nullable(),
  expires_at: z.number(),
})
type Flow = z.infer<typeof shape>

const place = 'oidc-flow'

export function sealFlow(app: App, flow: Flow): string {
  return app.secrets.seal('session', place, Buffer.from(JSON.stringify(flow))).toString('base64url')
}

/** Undefined if the cookie is missing, forged or expired. */
export async function openFlow(app: App, cookie: string | undefined): Promise<Flow | undefined> {
  if (!cookie) return undefined
  const { now } = await app.settings.current()
  try {
    const text = app.secrets.open('session', place, Buffer.from(cookie, 'base64url')).toString()
    const flow = shape.parse(JSON.parse(text))
    if (flow.expires_at <= now().getTime()) return undefined // guard: age of a flow
    return flow
  } catch {
    return undefined
  }
}
