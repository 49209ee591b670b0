/** Which acts an account's state offers. */
import type { Account } from '../../data/accounts.ts'

type State = Pick<Account, 'status' | 'login_stored' | 'first_messages_stopped_at' | 'campaigns_held_at'>

/** A login that Telegram reported as ended is tried once more by enabling the account. Without one, only a login helps. */
export function offersEnable(account: State): boolean {
  const { status, login_stored } = account
  if (status === 'NEEDS_LOGIN' && login_stored) return true // guard: a login is tried once more
  if (status === 'RESTRICTED' || status === 'DISABLED') return true
  return account.first_messages_stopped_at !== null || account.campaigns_held_at !== null
}
