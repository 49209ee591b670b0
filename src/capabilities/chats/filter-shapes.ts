/** What the filters of a list of chats require of each other, and the gates that they need. */
import type { Gate } from '../../contract.ts'
import type { ChatFilters } from './chat-pages.ts'

/** For `refine`. */
export const columnWithValue = [
  ({ column_id, column_value }: ChatFilters) => (column_id === undefined) === (column_value === undefined),
  { path: ['column_id'], message: 'and column_value must be given together' },
] satisfies [unknown, { path: string[]; message: string }]

export function gatesOf({ stage_key, column_id }: ChatFilters): Gate[] {
  return [
    ...(stage_key === undefined ? [] : (['pipeline'] satisfies Gate[])),
    ...(column_id === undefined ? [] : (['crm'] satisfies Gate[])),
  ]
}
