/** The columns of accounts whose values are sealed. */
import type { SealedColumn } from '../../db/sealed-column.ts'
import { sealedShown, sealedTyped } from './login-requests.ts'
import { sealedSessions } from './platform-store.ts'
import { sealedProxies } from './proxy.ts'

export const sealedColumns: readonly SealedColumn[] = [
  sealedSessions,
  sealedProxies,
  sealedShown,
  sealedTyped,
]
