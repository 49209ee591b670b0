/** Campaigns as others know them. */
export {
  type Crossable,
  decideCrossing,
  endRecipient,
  lockFound,
  lockRecipients,
  type LockedRow,
  markEnded,
  markSubmitting,
  type Wanted,
  waitForRecipient,
} from './crossing.ts'
export type { FactsRow } from './recipient-facts.ts'
export { messagesDue } from './loops.ts'
export { adoptOutcomes } from './outcomes.ts'
export { chooseDue, type Due, listHeads } from './pick.ts'
export { noteReads, noteReplies } from './replies.ts'
