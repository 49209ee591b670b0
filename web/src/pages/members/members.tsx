/** The members of a workspace and their roles. */
import { useQuery } from '@tanstack/react-query'
import { UserPlus, Users } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { useHere, useSession } from '../../data/place.ts'
import { type Member, membersQuery, type Workspace } from '../../data/queries.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import type { MemberDialog } from './open-member-dialog.tsx'

const Actions = lazy(async () => ({ default: (await import('./member-actions.tsx')).Actions }))
/** Loaded when the first one is opened, then kept for their animation. */
const Dialogs = lazy(async () => ({ default: (await import('./open-member-dialog.tsx')).Dialogs }))
const Remove = lazy(async () => ({ default: (await import('./remove-member.tsx')).Remove }))

export function MembersPage() {
  const workspace = useHere()
  return workspace.role === 'member' ? (
    <OwnMembership workspace={workspace} />
  ) : (
    <Members workspace={workspace} />
  )
}

/** Only admins see the other members. Every member may leave. */
function OwnMembership({ workspace }: { workspace: Workspace }) {
  const { user } = useSession()
  const [leaving, setLeaving] = useState(false)
  const own = { user_id: user.id, email: user.email }
  return (
    <Page title="Members" about={`You are a member of ${workspace.name}.`}>
      <Empty
        icon={Users}
        title="Only admins see the members"
        action={<Button onClick={() => setLeaving(true)}>Leave this workspace…</Button>}
      >
        Ask an admin or an owner of this workspace to add a member or to change your role.
      </Empty>
      <Suspense>
        <Remove workspace={workspace} member={leaving ? own : undefined} onClose={() => setLeaving(false)} />
      </Suspense>
    </Page>
  )
}

function Members({ workspace }: { workspace: Workspace }) {
  const query = useQuery(membersQuery(workspace.id))
  const [open, setOpen] = useState<MemberDialog | null>()
  const admin = workspace.role !== 'member'
  const invite = admin && (
    <Button kind="primary" onClick={() => setOpen({ what: 'invite' })}>
      <UserPlus aria-hidden className="size-4" />
      Add member
    </Button>
  )
  return (
    <Page title="Members" action={invite}>
      <Loaded query={query}>
        {({ members }) => (
          <Table
            label="Members"
            rows={members}
            rowKey={({ user_id }) => user_id}
            empty={{ icon: Users, title: 'No members yet', children: 'Add the first member.' }}
            columns={[
              { heading: 'Person', lead: true, cell: (member) => <Person of={member} /> },
              {
                heading: 'Role',
                cell: ({ role }) => <Badge tone={role === 'owner' ? 'good' : 'plain'}>{role}</Badge>,
              },
              { heading: 'Joined', cell: ({ joined_at }) => <Time at={joined_at} /> },
              {
                heading: 'Last seen',
                cell: ({ last_seen_at, setup_link }) => (
                  <>
                    {last_seen_at ? (
                      <Time at={last_seen_at} />
                    ) : (
                      <span className="text-muted">Never signed in</span>
                    )}
                    {setup_link && (
                      <span className="block text-xs text-muted">
                        Link by <bdi>{setup_link.created_by?.name ?? 'an operator'}</bdi>,{' '}
                        <Time at={setup_link.created_at} />
                      </span>
                    )}
                  </>
                ),
              },
              {
                heading: 'Actions',
                actions: true,
                cell: (member) => (
                  <Suspense>
                    <Actions of={member} workspace={workspace} onOpen={setOpen} />
                  </Suspense>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {open !== undefined && (
        <Suspense>
          <Dialogs open={open ?? undefined} onClose={() => setOpen(null)} workspace={workspace} />
        </Suspense>
      )}
    </Page>
  )
}

function Person({ of: { name, email } }: { of: Member }) {
  return (
    <span className="block max-w-80">
      <bdi className="block truncate font-medium">{name || email}</bdi>
      {name && <span className="block truncate text-xs text-muted">{email}</span>}
    </span>
  )
}
