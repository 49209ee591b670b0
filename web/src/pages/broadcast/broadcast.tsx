/** Broadcast: one message to the people of a stage or column, counted before it is sent, with the outcome of each after. */
import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { workspaceQuery } from '../../data/chats.ts'
import { useHere } from '../../data/place.ts'
import { ClosedPage } from '../../ui/closed-page.tsx'
import { Page } from '../../ui/page.tsx'
import { BroadcastForm } from './broadcast-form.tsx'
import { BroadcastList } from './broadcast-list.tsx'
import { OneBroadcast } from './one-broadcast.tsx'

export interface BroadcastSearch {
  /** The broadcast whose outcome is shown. */
  broadcast?: string
}

export function BroadcastPage() {
  const workspace = useHere()
  const { broadcast } = useSearch({ from: '/inside/w/$workspace_id/broadcast' })
  const navigate = useNavigate()
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const capability = state?.capabilities.broadcast
  const isMember = workspace.role === 'member'
  if (isMember || capability?.open === false) {
    const closed_by = isMember ? ({ kind: 'role', name: 'admin' } as const) : (capability?.closed_by ?? null)
    return (
      <Page title="Broadcast">
        <ClosedPage
          title={
            closed_by?.kind === 'role'
              ? 'Only admins and owners send broadcasts'
              : 'Broadcasts are turned off here'
          }
          closed_by={closed_by}
        />
      </Page>
    )
  }
  const show = (id: string) =>
    void navigate({
      to: '/w/$workspace_id/broadcast',
      params: { workspace_id: workspace.id },
      search: { broadcast: id },
    })
  return (
    <Page title="Broadcast">
      {broadcast === undefined ? (
        <div className="grid grid-cols-1 gap-10">
          <BroadcastForm workspace={workspace} onDone={show} />
          <BroadcastList workspace_id={workspace.id} />
        </div>
      ) : (
        <OneBroadcast workspace_id={workspace.id} broadcast_id={broadcast} />
      )}
    </Page>
  )
}
