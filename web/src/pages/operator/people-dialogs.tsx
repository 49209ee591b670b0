/** Creates and renames workspaces and users, and makes set-up links. */
import { useState } from 'react'
import { nameMax } from '../../../../src/rules/limits.ts'
import type { ListedWorkspace, User } from '../../data/operator.ts'
import { useChange } from '../../data/queries.ts'
import { SetupLink, setupLinkWords } from '../../ui/copy.tsx'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { Choice, Choices, Form, SelectField, TextField, ZoneField } from '../../ui/form.tsx'
import { Notice } from '../../ui/notice.tsx'
import type { Option } from '../../ui/select.tsx'

export type PeopleDialog =
  | { what: 'new_workspace' | 'new_user' }
  | { what: 'rename_workspace' | 'disable_workspace'; workspace: ListedWorkspace }
  | { what: 'edit_user' | 'link'; user: User }

interface DialogsProps {
  open: PeopleDialog | undefined
  onClose: () => void
  workspaces: readonly ListedWorkspace[]
}

export function PeopleDialogs({ open, onClose, workspaces }: DialogsProps) {
  const [link, setLink] = useState<string>()
  const close = () => {
    setLink(undefined)
    onClose()
  }
  if (open?.what === 'disable_workspace')
    return <DisableWorkspace workspace={open.workspace} onClose={close} />
  return (
    <Dialog
      open={open !== undefined}
      onClose={close}
      sealed={link !== undefined}
      title={link === undefined ? titleOf(open) : 'Send them this link'}
      description={link !== undefined && setupLinkWords}
    >
      {link === undefined ? (
        <Content open={open} onClose={close} onLink={setLink} workspaces={workspaces} />
      ) : (
        <SetupLink link={link} onClose={close} />
      )}
    </Dialog>
  )
}

function titleOf(open: PeopleDialog | undefined): string {
  switch (open?.what) {
    case 'new_workspace':
      return 'Create a workspace'
    case 'rename_workspace':
      return `Rename ${open.workspace.name}`
    case 'new_user':
      return 'Create a user'
    case 'edit_user':
      return `Change ${open.user.email}`
    case 'link':
      return `New set-up link for ${open.user.email}`
    default:
      return ''
  }
}

interface ContentProps extends DialogsProps {
  onLink: (link: string) => void
}

function Content({ open, onClose, onLink, workspaces }: ContentProps) {
  switch (open?.what) {
    case 'new_workspace':
      return <WorkspaceForm onClose={onClose} />
    case 'rename_workspace':
      return <WorkspaceForm workspace={open.workspace} onClose={onClose} />
    case 'new_user':
      return <UserForm workspaces={workspaces} onClose={onClose} onLink={onLink} />
    case 'edit_user':
      return <EditUser user={open.user} onClose={onClose} />
    case 'link':
      return <LinkForm user={open.user} onLink={onLink} />
    default:
      return null
  }
}

function WorkspaceForm({ workspace, onClose }: { workspace?: ListedWorkspace; onClose: () => void }) {
  const create = useChange('POST /workspaces', ['instance', 'allowlists'])
  const rename = useChange('PATCH /workspaces/{workspace_id}', [
    'instance',
    'allowlists',
    'session',
    'workspace',
  ])
  const [name, setName] = useState(workspace?.name ?? '')
  const [timezone, setZone] = useState(workspace?.timezone ?? 'UTC')
  const done = { onSuccess: onClose }
  const submit = () =>
    workspace
      ? rename.mutate(
          {
            params: { workspace_id: workspace.id },
            body: { name: name.trim(), ...(timezone !== workspace.timezone && { timezone }) },
          },
          done,
        )
      : create.mutate({ body: { name: name.trim(), timezone } }, done)
  return (
    <Form
      onSubmit={submit}
      change={workspace ? rename : create}
      action={workspace ? 'Save' : 'Create workspace'}
    >
      <TextField label="Name" required maxLength={nameMax} value={name} onChange={setName} />
      <ZoneField
        help="Its day, and its daily limits, end at midnight there."
        value={timezone}
        onChange={setZone}
      />
    </Form>
  )
}

function DisableWorkspace({ workspace, onClose }: { workspace: ListedWorkspace; onClose: () => void }) {
  const disable = useChange('POST /workspaces/{workspace_id}/disable', ['instance', 'session', 'workspace'])
  return (
    <Confirm
      open
      onClose={onClose}
      title={`Disable “${workspace.name}”?`}
      description="Members and keys lose access, accounts disconnect, and nothing is sent: campaigns, broadcasts and webhooks wait. Nothing is deleted. Messages waiting to be sent are dropped."
      phrase={workspace.name}
      action="Disable workspace"
      change={disable}
      onConfirm={() => disable.mutate({ params: { workspace_id: workspace.id } }, { onSuccess: onClose })}
    />
  )
}

type Role = User['memberships'][number]['role']

const roles: readonly Option<Role>[] = [
  ['member', 'Member: reads, organises and sends'],
  ['admin', 'Admin: also runs campaigns and manages members'],
  ['owner', 'Owner: also sets roles'],
]

function UserForm({ workspaces, onClose, onLink }: Omit<ContentProps, 'open'>) {
  const create = useChange('POST /users', ['instance', 'allowlists', 'members'])
  const [email, setEmail] = useState('')
  const [workspace_id, setWorkspace] = useState(workspaces[0]?.id ?? '')
  const [role, setRole] = useState<Role>('member')
  const [operator, setOperator] = useState(false)
  const submit = () =>
    create.mutate(
      { body: { email: email.trim(), workspace_id, role, operator } },
      { onSuccess: ({ setup_link }) => (setup_link ? onLink(setup_link) : onClose()) },
    )
  return (
    <Form onSubmit={submit} change={create} action="Create user">
      <TextField
        label="E-mail"
        help="A user who has this address already joins the workspace too."
        type="email"
        required
        value={email}
        onChange={setEmail}
      />
      <SelectField
        label="Workspace"
        value={workspace_id}
        options={workspaces.map(({ id, name }) => [id, name])}
        onChange={setWorkspace}
      />
      <SelectField label="Role" value={role} options={roles} onChange={setRole} />
      <Choices legend="This instance">
        <Choice
          label="Operator"
          help="Sees this page: gates, all workspaces and users, the audit log."
          tone="warn"
          checked={operator}
          onChange={(event) => setOperator(event.target.checked)}
        />
      </Choices>
    </Form>
  )
}

function EditUser({ user, onClose }: { user: User; onClose: () => void }) {
  const update = useChange('PATCH /users/{user_id}', ['instance', 'session', 'members', 'allowlists'])
  const [name, setName] = useState(user.name)
  const [email, setEmail] = useState(user.email)
  return (
    <Form
      onSubmit={() =>
        update.mutate(
          { params: { user_id: user.id }, body: { name: name.trim(), email: email.trim() } },
          { onSuccess: onClose },
        )
      }
      change={update}
      action="Save"
    >
      <TextField label="Name" maxLength={nameMax} value={name} onChange={setName} />
      <TextField
        label="E-mail"
        help="They sign in with it."
        type="email"
        required
        value={email}
        onChange={setEmail}
      />
    </Form>
  )
}

function LinkForm({ user, onLink }: { user: User; onLink: (link: string) => void }) {
  const make = useChange('POST /users/{user_id}/setup-link', ['instance'])
  return (
    <Form
      onSubmit={() =>
        make.mutate({ params: { user_id: user.id } }, { onSuccess: ({ setup_link }) => onLink(setup_link) })
      }
      change={make}
      action="Make a link"
    >
      <Notice tone="warn">The first person who opens it becomes this user.</Notice>
    </Form>
  )
}
