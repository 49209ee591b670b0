/** Marks operations whose state has changed, for pages that show their chats and campaigns. */
import type { App } from '../app.ts'
import { chatIdOf } from '../lib/shapes.ts'
import type { Mark } from '../mark.ts'
import type { Operation } from '../operation.ts'

type MarkedOperation = Pick<Operation, 'workspace_id' | 'account_id' | 'chat_id'> &
  Partial<Pick<Operation, 'campaign_id'>>

/** After the commit. */
export function markOperations({ wake }: Pick<App, 'wake'>, rows: readonly MarkedOperation[]): void {
  wake.mark(...rows.flatMap(marksOf)) // guard: the ledger marks operations
}

function marksOf({ workspace_id, account_id, chat_id, campaign_id }: MarkedOperation): Mark[] {
  const chat = chat_id === null ? {} : { chat_id: chatIdOf(chat_id) }
  const own: Mark = { workspace_id, kind: 'operations', account_id, ...chat }
  return campaign_id ? [own, { workspace_id, kind: 'campaigns' }] : [own]
}
