/** What the address of a campaign says. */
import type { RecipientStatus } from '../../data/campaigns.ts'

export interface CampaignSearch {
  /** Only recipients with this status. */
  status?: RecipientStatus
  /** Part of a name. */
  name?: string
  /** The recipient whose history is shown. */
  recipient?: string
}

export type Go = (search: CampaignSearch) => void
