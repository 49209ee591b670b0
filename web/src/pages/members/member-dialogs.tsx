/** Adds a member, changes a role, and makes a new link for a member who has lost theirs. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { type Member, useChange, type Workspace } from '../../data/queries.ts'
import { SetupLink, setupLinkWords } from '../../ui/copy.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Choice, Choices, Form, TextField } from '../../ui/form.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { type MemberRef, madeQuery } from './made.ts'

type Role = Workspace['role']

const roleWords: Readonly<Record<Role, readonly [label: string, help: string]>> = {
  member: [
    'Member',
    'Reads, organises and sends; makes keys that may do the same; approves what their own agents ask for.',
  ],
  admin: ['Admin', 'Also runs campaigns and webhooks, sees and revokes all keys, adds and removes members.'],
  owner: ['Owner', 'Also sets roles. There is always at least one owner.'],
}

interface Given {
  workspace: Workspace
  onClose: () => void
}

export function Invite({ open, workspace, onClose }: Given & { open: boolean }) {
  const [link, setLink] = useState<string>()
  const close = () => {
    setLink(undefined)
    onClose()
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      sealed={link !== undefined}
      title={link ? 'Send them this link' : 'Add a member'}
      description={link ? setupLinkWords : `They join ${workspace.name}.`}
    >
      {link ? (
        <SetupLink link={link} onClose={close} />
      ) : (
        <InviteForm {...{ workspace, onLink: setLink, onClose: close }} />
      )}
    </Dialog>
  )
}

function InviteForm({ workspace, onLink, onClose }: Given & { onLink: (link: string) => void }) {
  const add = useChange('POST /w/{workspace_id}/members', ['members'])
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<Role>('member')
  const submit = () =>
    add.mutate(
      { params: { workspace_id: workspace.id }, body: { email: email.trim(), role } },
      { onSuccess: ({ setup_link }) => (setup_link ? onLink(setup_link) : onClose()) },
    )
  return (
    <Form onSubmit={submit} change={add} action="Add member">
      <TextField label="E-mail" type="email" required value={email} onChange={setEmail} />
      <Roles role={role} onChange={setRole} offered={workspace.role === 'owner' ? everyRole : ['member']} />
    </Form>
  )
}

const everyRole: readonly Role[] = ['member', 'admin', 'owner']

function Roles({
  role,
  onChange,
  offered,
}: {
  role: Role
  onChange: (role: Role) => void
  offered: readonly Role[]
}) {
  return (
    <Choices legend="Role">
      {offered.map((each) => (
        <Choice
          key={each}
          type="radio"
          name="role"
          label={roleWords[each][0]}
          help={roleWords[each][1]}
          checked={role === each}
          onChange={() => onChange(each)}
        />
      ))}
    </Choices>
  )
}

export function ChangeRole({ member, workspace, onClose }: Given & { member: Member | undefined }) {
  return (
    <Dialog
      open={member !== undefined}
      onClose={onClose}
      title="Change role"
      description={member ? `${member.email} in ${workspace.name}` : ''}
    >
      {member && <RoleForm {...{ member, workspace, onClose }} />}
    </Dialog>
  )
}

function RoleForm({ member, workspace, onClose }: Given & { member: Member }) {
  const change = useChange('PATCH /w/{workspace_id}/members/{user_id}', ['members', 'session'])
  const [role, setRole] = useState<Role>(member.role)
  const params = { workspace_id: workspace.id, user_id: member.user_id }
  return (
    <Form
      onSubmit={() => change.mutate({ params, body: { role } }, { onSuccess: onClose })}
      change={change}
      action="Save role"
    >
      <Roles role={role} onChange={setRole} offered={everyRole} />
      {role === 'member' && member.role !== 'member' && <StoppingWebhooks of={params} />}
    </Form>
  )
}

/** Before a member loses the role that webhooks need. */
function StoppingWebhooks({ of }: { of: MemberRef }) {
  const made = useQuery(madeQuery(of))
  const active = made.data?.webhooks.filter((webhook) => webhook.active) ?? []
  if (made.error) return <Failure error={made.error} />
  if (active.length === 0) return null
  return (
    <Notice tone="warn">
      <p>
        {active.length === 1 ? 'A webhook of theirs stops:' : `${active.length} webhooks of theirs stop:`}
      </p>
      <ul className="list-disc pl-5">
        {active.map(({ id, url }) => (
          <li key={id}>
            <ExactLine text={url} />
          </li>
        ))}
      </ul>
      <p>An admin who activates one takes it over.</p>
    </Notice>
  )
}

export function NewLink({ member, workspace, onClose }: Given & { member: Member | undefined }) {
  const make = useChange('POST /w/{workspace_id}/members/{user_id}/setup-link', ['members'])
  const close = () => {
    make.reset()
    onClose()
  }
  const link = make.data?.setup_link
  return (
    <Dialog
      open={member !== undefined}
      onClose={close}
      sealed={link !== undefined}
      title={link ? 'Send them this link' : 'New set-up link'}
      description={link ? setupLinkWords : `With it ${member?.email ?? ''} chooses how to sign in.`}
    >
      {link ? (
        <SetupLink link={link} onClose={close} />
      ) : (
        <Form
          onSubmit={() =>
            member && make.mutate({ params: { workspace_id: workspace.id, user_id: member.user_id } })
          }
          change={make}
          action="Make a link"
        >
          <Notice tone="warn">The first person who opens it becomes this user.</Notice>
        </Form>
      )}
    </Dialog>
  )
}
