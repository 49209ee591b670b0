/** What is kept between the way to the provider and the way back: a sealed cookie in the browser that began it. */
import { z } from 'zod'
import type { App } from '../../app.ts'

/** Ten minutes are enough to type a password and a second factor at the provider. */
export const flowSeconds = 600

const shape = z.object({
  state: z.string(),
  nonce: z.string(),
  /** PKCE: only who has this can exchange the code. */
  verifier: z.string(),
  return_to: z.string(),
  /** Of the set-up link that an unknown identity is to be linked by. */
  setup_token: z.string().nullable(),
  expires_at: z.number(),
})
export type Flow = z.infer<typeof shape>

const place = 'oidc-flow'

export function sealFlow(app: App, flow: Flow): string {
  return app.secrets.seal('session', place, Buffer.from(JSON.stringify(flow))).toString('base64url')
}

/** Undefined for a cookie that is missing, made by somebody else, or too old. */
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
