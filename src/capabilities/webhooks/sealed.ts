/** The columns of webhooks whose values are sealed: the secrets that sign deliveries, and the addresses. */
import { type SealedColumn, sealedColumn } from '../../db/sealed-column.ts'
import { sql } from '../../db/sql.ts'
import { addressPlaceOf, secretPlaceOf } from '../../lib/webhook-signatures.ts'

const webhooks = { purpose: 'webhook', table: sql`webhooks`, key: sql`id` } as const

export const sealedColumns: readonly SealedColumn[] = [
  sealedColumn({ ...webhooks, name: 'webhooks.secret', column: sql`secret`, placeOf: secretPlaceOf }),
  sealedColumn({
    ...webhooks,
    name: 'webhooks.previous_secret',
    column: sql`previous_secret`,
    placeOf: secretPlaceOf,
  }),
  sealedColumn({
    ...webhooks,
    name: 'webhooks.url_sealed',
    column: sql`url_sealed`,
    placeOf: addressPlaceOf,
  }),
]
