/** Campaigns as others know them. */
export { describeBroadcast, insertBroadcast } from './broadcasts.ts'
export { recipientOut, totalsOut } from './campaign-shapes.ts'
export { seedCampaign } from './create.ts'
export {
  type Crossable,
  decideCrossing,
  endRecipient,
  type LockedRow,
  lockFound,
  lockRecipients,
  markEnded,
  markReached,
  markSubmitting,
  type Wanted,
  waitForRecipient,
} from './crossing.ts'
export { messagesDue } from './loops.ts'
export {
  controlAnyCampaign,
  createFromFile,
  type FromFileReport,
  foretellCampaign,
  listAllCampaigns,
  showCampaign,
  verifyAnyCampaign,
} from './operator.ts'
export { adoptOutcomes } from './outcomes.ts'
export { findFault, needsName, parseTemplate, requireKnown, textMax } from './personalize.ts'
export { chooseDue, type Due, type Head, listHeads } from './pick.ts'
export type { FactsRow } from './recipient-facts.ts'
export type { Found } from './recipients.ts'
export { noteReads, noteReplies } from './replies.ts'
