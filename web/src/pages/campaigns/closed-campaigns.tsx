/** What a campaign page says to members, and while a gate or an allowlist closes it. */

import { ClosedPage } from '../closed-page.tsx'
import type { WorkspaceState } from '../inbox/inbox-queries.ts'

type ClosedBy = WorkspaceState['capabilities']['campaigns']['closed_by']

export function ClosedCampaigns({ closed_by }: { closed_by: ClosedBy }) {
  const title = closed_by?.kind === 'role' ? 'Only admins and owners see campaigns' : 'Campaigns are closed'
  return <ClosedPage title={title} closed_by={closed_by} />
}
