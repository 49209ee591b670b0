/** The address of a webhook. It may hold a receiver's token, so it is stored sealed. */
import type { App } from '../../app.ts'
import { lockSecretUse } from '../../db/secret-use.ts'
import type { Tx } from '../../db/sql.ts'
import { addressPlaceOf } from '../../lib/webhook-signatures.ts'

/** Sealed unless `url` is not empty: a process of release 0.3 wrote it there, and the loop has not come by yet. */
export interface StoredAddress {
  readonly url: string
  readonly url_sealed: Buffer | null
}

type Sealing = Pick<App, 'secrets'>

/** Undefined if it was sealed with another secret. */
export function readAddress(
  { secrets }: Sealing,
  webhook_id: string,
  stored: StoredAddress,
): string | undefined {
  const { url, url_sealed } = stored
  if (url !== '' || !url_sealed) return url
  try {
    return secrets.open('webhook', addressPlaceOf(webhook_id), url_sealed).toString()
  } catch {
    return undefined
  }
}

export function requireAddress(
  app: Sealing,
  { webhook_id, ...stored }: StoredAddress & { webhook_id: string },
): string {
  const url = readAddress(app, webhook_id, stored)
  if (url === undefined) throw new Error('The address was sealed with another secret.')
  return url
}

/** The columns for this address. Plain while processes of release 0.3 may read them. */
export async function storedAddressOf(
  app: Sealing,
  tx: Tx,
  { webhook_id, url }: { readonly webhook_id: string; readonly url: string },
): Promise<StoredAddress> {
  const use = await lockSecretUse(tx, app.secrets) // guard: a webhook is sealed with the secret in use
  if (use && !use.addresses_sealed) return { url, url_sealed: null } // guard: a process of before reads the address
  return sealAddress(app, webhook_id, url)
}

export function sealAddress({ secrets }: Sealing, webhook_id: string, url: string): StoredAddress {
  return { url: '', url_sealed: secrets.seal('webhook', addressPlaceOf(webhook_id), Buffer.from(url)) }
}
