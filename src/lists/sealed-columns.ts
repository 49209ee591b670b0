/** Every column whose values are sealed: a rotation of the secret seals each again. */
import { sealedColumns as accounts } from '../capabilities/accounts/sealed.ts'
import { sealedColumns as webhooks } from '../capabilities/webhooks/sealed.ts'
import type { SealedColumn } from '../db/sealed-column.ts'
import { storedKeys } from '../db/secret-use.ts'

export const sealedColumns: readonly SealedColumn[] = [storedKeys, ...accounts, ...webhooks]
