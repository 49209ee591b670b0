/** Campaigns, for whoever is not this slice. */
export { type Control, controlCampaign } from './control.ts'
export { createCampaign } from './create.ts'
