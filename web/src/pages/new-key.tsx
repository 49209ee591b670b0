/** Creates a key in a dialog that shows its secret once. A click outside does not close it. */
import { useState } from 'react'
import type { Answer } from '../api.ts'
import { useChange, type Workspace } from '../queries.ts'
import { Button } from '../ui/button.tsx'
import { Secret } from '../ui/copy.tsx'
import { Dialog } from '../ui/dialog.tsx'
import { Choice, Choices, Field, Form, Select, TextInput } from '../ui/form.tsx'
import { Notice } from '../ui/notice.tsx'

type CreatedKey = Answer<'POST /w/{workspace_id}/keys'>
type Scope = CreatedKey['key']['scopes'][number]

/** What a scope lets a key do, in words for people. */
const scopeWords: Readonly<Record<Scope, readonly [label: string, help: string]>> = {
  read: ['Read', 'Read chats, messages, contacts and analytics of all accounts.'],
  write: ['Organise', 'Move chats between stages, fill in columns, mark as read or unread.'],
  send: ['Send', 'Write messages to people and begin chats, from the accounts here.'],
  campaigns: ['Run campaigns', 'Start campaigns that write to many people over days. Give it to few.'],
}

const lifetimes: readonly (readonly [days: string, label: string])[] = [
  ['', 'Never'],
  ['7', 'After 7 days'],
  ['30', 'After 30 days'],
  ['90', 'After 90 days'],
  ['365', 'After a year'],
]

interface NewKeyProps {
  open: boolean
  onClose: () => void
  workspace: Workspace
}

export function NewKey({ open, onClose, workspace }: NewKeyProps) {
  const [made, setMade] = useState<CreatedKey>()
  const close = () => {
    setMade(undefined)
    onClose()
  }
  return (
    <Dialog
      open={open}
      onClose={close}
      sealed={made !== undefined}
      title={made ? 'Your new key' : 'Create an API key'}
      description={
        made
          ? 'Copy it now. You will not see it again. We keep only a hash.'
          : 'It acts as you, in this workspace.'
      }
    >
      {made ? <Shown made={made} onClose={close} /> : <KeyForm workspace={workspace} onMade={setMade} />}
    </Dialog>
  )
}

function Shown({ made, onClose }: { made: CreatedKey; onClose: () => void }) {
  return (
    <div className="grid gap-5">
      <Secret value={made.secret} label={`The key ${made.key.name}`} />
      <Notice tone="warn">Anyone with this key can use it. Keep it like a password.</Notice>
      <div className="flex justify-end">
        <Button kind="primary" onClick={onClose}>
          I saved it
        </Button>
      </div>
    </div>
  )
}

interface KeyFormProps {
  workspace: Workspace
  onMade: (made: CreatedKey) => void
  /** For an agent: only over MCP, where a person approves each write. */
  agent?: boolean
  align?: 'start' | 'end'
}

export function KeyForm({ workspace, onMade, agent = false, align = 'end' }: KeyFormProps) {
  const create = useChange('POST /w/{workspace_id}/keys', ['keys'])
  const [name, setName] = useState(agent ? 'My agent' : '')
  const [scopes, setScopes] = useState<readonly Scope[]>(agent ? ['read', 'write', 'send'] : ['read'])
  const [days, setDays] = useState(agent ? '90' : '')
  const [mcp_only, setMcpOnly] = useState(agent)
  // A key may do no more than its creator. Agents have no tool for campaigns.
  const offered = workspace.scopes.filter((scope) => !agent || scope !== 'campaigns')
  const submit = () => {
    const expires_at = days && new Date(Date.now() + Number(days) * 86_400_000).toISOString()
    const body = { name: name.trim(), scopes: [...scopes], mcp_only, ...(expires_at && { expires_at }) }
    create.mutate({ params: { workspace_id: workspace.id }, body }, { onSuccess: onMade })
  }
  return (
    <Form
      onSubmit={submit}
      busy={create.isPending}
      error={create.error}
      action="Create key"
      align={align}
      disabled={scopes.length === 0}
    >
      <Field label="Name" help="For example: CRM sync">
        <TextInput
          required
          maxLength={100}
          value={name}
          onChange={(event) => setName(event.target.value)}
          autoComplete="off"
        />
      </Field>
      <Choices legend="What may it do?">
        {offered.map((scope) => (
          <Choice
            key={scope}
            label={scopeWords[scope][0]}
            help={scopeWords[scope][1]}
            tone={scope === 'campaigns' ? 'warn' : 'plain'}
            checked={scopes.includes(scope)}
            onChange={(event) =>
              setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((each) => each !== scope))
            }
          />
        ))}
      </Choices>
      <Field label="Expires">
        <Select value={days} onChange={(event) => setDays(event.target.value)}>
          {lifetimes.map(([value, label]) => (
            <option key={value} value={value}>
              {label}
            </option>
          ))}
        </Select>
      </Field>
      {!agent && (
        <Choices legend="Where?">
          <Choice
            label="For agents only"
            help="MCP only. You approve every message and change."
            checked={mcp_only}
            onChange={(event) => setMcpOnly(event.target.checked)}
          />
        </Choices>
      )}
    </Form>
  )
}
