/** Seals the addresses that release 0.3 stored in plain, once none of its processes runs. */
import type { App } from '../../app.ts'
import { given } from '../../db/given.ts'
import { countProcesses, findSecretUse, lockSecretUse, sealAddresses } from '../../db/secret-use.ts'
import { sql } from '../../db/sql.ts'
import type { Loop } from '../../loop.ts'
import { sealAddress } from './address.ts'

const sealedAtOnce = 100
const restMs = 30_000

export const sealWebhookAddresses: Loop = { name: 'seal-webhook-addresses', restMs, step: sealPlain }

/** Returns whether there are more. */
export async function sealPlain(app: App): Promise<boolean> {
  const use = await findSecretUse(app.db)
  if (!use || !app.secrets.isTied) return false
  if (!use.addresses_sealed) {
    const { unnamed } = await countProcesses(app.db, [])
    if (unnamed > 0) return false // guard: addresses stay plain while a process of before runs
    await app.db.transaction(sealAddresses)
  }
  return app.db.transaction(async (tx) => {
    const rows = await tx.rows<{ id: string; url: string }>(sql`
      select id, url from webhooks where url <> '' order by id limit ${sealedAtOnce} for no key update skip locked`)
    if (rows.length === 0) return false
    await lockSecretUse(tx, app.secrets)
    const sealed = rows.map(({ id, url }) => ({ id, url_sealed: sealAddress(app, id, url).url_sealed }))
    await tx.run(sql`
      update webhooks w set url = '', url_sealed = s.url_sealed
      from ${given(sealed, { id: 'uuid', url_sealed: 'bytea' })} as s where w.id = s.id`)
    return rows.length === sealedAtOnce
  })
}
