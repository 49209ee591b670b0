/** Every workspace and every user of the instance. */
import { useQuery } from '@tanstack/react-query'
import { Building2, Plus, UserPlus, Users } from 'lucide-react'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { type ListedWorkspace, peopleQuery, type User } from '../../data/operator.ts'
import { useSession } from '../../data/place.ts'
import { useChange } from '../../data/queries.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { ActionsMenu, MenuItem, MenuLine } from '../../ui/menu.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'
import type { PeopleDialog } from './people-dialogs.tsx'

/** Loaded when the first one is opened, then kept for their animation. */
const Dialogs = lazy(async () => ({ default: (await import('./people-dialogs.tsx')).PeopleDialogs }))

export function PeopleView() {
  const [open, setOpen] = useState<PeopleDialog | null>()
  const query = useQuery(peopleQuery)
  return (
    <>
      <Loaded query={query} rows={6}>
        {({ users, workspaces }) => (
          <>
            <Heading title="Workspaces">
              <Button onClick={() => setOpen({ what: 'new_workspace' })}>
                <Plus aria-hidden className="size-4" />
                Create workspace
              </Button>
            </Heading>
            <Workspaces workspaces={workspaces} users={users} onOpen={setOpen} />
            <div className="h-6" />
            <Heading title="Users">
              {workspaces.length > 0 && (
                <Button onClick={() => setOpen({ what: 'new_user' })}>
                  <UserPlus aria-hidden className="size-4" />
                  Create user
                </Button>
              )}
            </Heading>
            <UserList users={users} workspaces={workspaces} onOpen={setOpen} />
          </>
        )}
      </Loaded>
      {open !== undefined && (
        <Suspense>
          <Dialogs
            open={open ?? undefined}
            onClose={() => setOpen(null)}
            workspaces={query.data?.workspaces ?? []}
          />
        </Suspense>
      )}
    </>
  )
}

function Heading({ title, children }: { title: string; children: ReactNode }) {
  return (
    <div className="mb-2 flex min-h-9 flex-wrap items-center justify-between gap-2">
      <h2 className="text-base font-semibold">{title}</h2>
      {children}
    </div>
  )
}

function Failed({ error }: { error: unknown }) {
  return (
    error !== undefined && (
      <div className="mb-4">
        <Failure error={error} />
      </div>
    )
  )
}

interface Given {
  users: readonly User[]
  workspaces: readonly ListedWorkspace[]
  onOpen: (open: PeopleDialog) => void
}

function Workspaces({ workspaces, users, onOpen }: Given) {
  const [failed, setFailed] = useState<unknown>()
  const membersOf = (id: string) =>
    users.filter(({ memberships }) => memberships.some(({ workspace_id }) => workspace_id === id)).length
  return (
    <>
      <Failed error={failed} />
      <Table
        label="Workspaces"
        rows={workspaces}
        rowKey={({ id }) => id}
        faded={({ disabled_at }) => disabled_at !== null}
        empty={{
          icon: Building2,
          title: 'No workspace yet',
          children: 'A workspace has its own accounts, chats, members and keys.',
        }}
        columns={[
          {
            heading: 'Workspace',
            lead: true,
            cell: ({ id, name }) => (
              <span title={id} className="block max-w-72 truncate font-medium">
                <ExactLine text={name} empty={id} cut />
              </span>
            ),
          },
          { heading: 'Members', cell: ({ id }) => membersOf(id) },
          { heading: 'Time zone', cell: ({ timezone }) => timezone },
          {
            heading: 'Sending window',
            cell: ({ sending_window }) => sending_window ?? <span className="text-muted">Always</span>,
          },
          {
            heading: 'Status',
            cell: ({ disabled_at }) =>
              disabled_at === null ? 'Active' : <Badge tone="danger">Disabled</Badge>,
          },
          { heading: 'Created', cell: ({ created_at }) => <Time at={String(created_at)} /> },
          {
            heading: 'Actions',
            actions: true,
            cell: (workspace) => <WorkspaceMenu workspace={workspace} onOpen={onOpen} onFailed={setFailed} />,
          },
        ]}
      />
    </>
  )
}

interface WorkspaceMenuProps {
  workspace: ListedWorkspace
  onOpen: (open: PeopleDialog) => void
  onFailed: (error: unknown) => void
}

/** Disabling is confirmed by typing: what expires meanwhile does not come back. */
function WorkspaceMenu({ workspace, onOpen, onFailed }: WorkspaceMenuProps) {
  const enable = useChange('POST /workspaces/{workspace_id}/enable', ['instance', 'session', 'workspace'])
  return (
    <ActionsMenu of={workspace.name}>
      <MenuItem onSelect={() => onOpen({ what: 'rename_workspace', workspace })}>Rename…</MenuItem>
      <MenuLine />
      {workspace.disabled_at === null ? (
        <MenuItem tone="danger" onSelect={() => onOpen({ what: 'disable_workspace', workspace })}>
          Disable…
        </MenuItem>
      ) : (
        <MenuItem
          onSelect={() =>
            enable.mutate(
              { params: { workspace_id: workspace.id } },
              { onError: onFailed, onSuccess: () => onFailed(undefined) },
            )
          }
        >
          Enable
        </MenuItem>
      )}
    </ActionsMenu>
  )
}

function UserList({ users, workspaces, onOpen }: Given) {
  const names = new Map(workspaces.map(({ id, name }) => [id, name]))
  const [failed, setFailed] = useState<unknown>()
  return (
    <>
      <Failed error={failed} />
      <Table
        label="Users"
        rows={users}
        rowKey={({ id }) => id}
        faded={({ disabled_at }) => disabled_at !== null}
        empty={{ icon: Users, title: 'No users yet', children: 'Create the first user.' }}
        columns={[
          {
            heading: 'User',
            lead: true,
            cell: ({ id, email, name }) => (
              <span title={id} className="block max-w-72">
                <span className="block truncate font-medium">
                  <ExactLine text={name} empty={email} cut />
                </span>
                {name !== '' && <span className="block truncate text-xs text-muted">{email}</span>}
              </span>
            ),
          },
          {
            heading: 'Workspaces',
            cell: ({ memberships }) =>
              memberships.length === 0 ? (
                <span className="text-muted">None</span>
              ) : (
                <span className="block max-w-72 [overflow-wrap:anywhere]">
                  <ExactLine
                    text={memberships
                      .map(({ workspace_id, role }) => `${names.get(workspace_id) ?? workspace_id} (${role})`)
                      .join(', ')}
                  />
                </span>
              ),
          },
          {
            heading: 'Status',
            cell: ({ operator, disabled_at }) => (
              <span className="flex flex-wrap gap-1">
                {operator && <Badge tone="good">Operator</Badge>}
                {disabled_at === null ? !operator && 'Active' : <Badge tone="danger">Disabled</Badge>}
              </span>
            ),
          },
          { heading: 'Created', cell: ({ created_at }) => <Time at={String(created_at)} /> },
          {
            heading: 'Actions',
            actions: true,
            cell: (user) => <UserMenu user={user} onOpen={onOpen} onFailed={setFailed} />,
          },
        ]}
      />
    </>
  )
}

interface UserMenuProps {
  user: User
  onOpen: (open: PeopleDialog) => void
  onFailed: (error: unknown) => void
}

function UserMenu({ user, onOpen, onFailed }: UserMenuProps) {
  const own = useSession().user.id === user.id
  const touched = ['instance', 'session', 'members'] as const
  const enable = useChange('POST /users/{user_id}/enable', touched)
  const disable = useChange('POST /users/{user_id}/disable', touched)
  const update = useChange('PATCH /users/{user_id}', touched)
  const params = { user_id: user.id }
  const told = { onError: onFailed, onSuccess: () => onFailed(undefined) }
  const setOperator = (operator: boolean) => update.mutate({ params, body: { operator } }, told)
  return (
    <ActionsMenu of={user.email}>
      <MenuItem onSelect={() => onOpen({ what: 'edit_user', user })}>Change name or address…</MenuItem>
      <MenuItem onSelect={() => onOpen({ what: 'link', user })}>New set-up link…</MenuItem>
      {!own && (
        <>
          <MenuItem onSelect={() => setOperator(!user.operator)}>
            {user.operator ? 'No longer an operator' : 'Make an operator'}
          </MenuItem>
          <MenuLine />
          {user.disabled_at === null ? (
            <MenuItem tone="danger" onSelect={() => disable.mutate({ params }, told)}>
              Disable
            </MenuItem>
          ) : (
            <MenuItem onSelect={() => enable.mutate({ params }, told)}>Enable</MenuItem>
          )}
        </>
      )}
    </ActionsMenu>
  )
}
