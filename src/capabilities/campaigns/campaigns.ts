/** What other slices and the command line import from campaigns. Running them has its own public module, `running/running.ts`. */
export { describeBroadcast, insertBroadcast, listBroadcasts } from './broadcasts.ts'
export { creatorOut, recipientOut, totalsOut } from './campaign-shapes.ts'
export { listOpenCampaigns, stopCampaigns, takeOverCampaigns } from './control.ts'
export { mutation as takeOverNeeds } from './control-routes.ts'
export { seedCampaign } from './create.ts'
export { eraseRecipients } from './erased-recipients.ts'
export {
  controlAnyCampaign,
  createFromFile,
  type FromFileReport,
  listAllCampaigns,
  showCampaign,
  showForecast,
  verifyAnyCampaign,
} from './operator.ts'
export { coldLimitOf } from './planning/cold.ts'
export { requireKnown } from './planning/personalize.ts'
export { type ExclusionReason, whyExcluded } from './planning/why.ts'
export { clearEndedCampaign, clearRecipientNames } from './recipient-names.ts'
export type { FoundRecipient } from './recipients.ts'
