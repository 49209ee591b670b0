/** What a new key may do, where, and how long. */
import { useState } from 'react'
import type { Answer } from '../data/api.ts'
import { useChange, type Workspace } from '../data/queries.ts'
import { Choice, Choices, Form, SelectField, TextField } from './form.tsx'
import type { Option } from './select.tsx'

export type CreatedKey = Answer<'POST /w/{workspace_id}/keys'>
type Scope = CreatedKey['key']['scopes'][number]

/** What a scope lets a key do, in words for people. */
const scopeWords: Readonly<Record<Scope, readonly [label: string, help: string]>> = {
  read: ['Read', 'Read chats, messages, contacts and analytics of all accounts.'],
  write: ['Organise', 'Move chats between stages, fill in columns, mark as read or unread.'],
  send: ['Send', 'Write messages to people and begin chats, from the accounts here.'],
  campaigns: [
    'Run campaigns',
    'Start campaigns that message many people over several days. Grant it sparingly.',
  ],
  people: ['Find people', 'Read what is stored about one person: names, chats, notes, campaigns.'],
  people_export: ['Export people', 'Download everything stored about one person. Grant it sparingly.'],
  people_erase: ['Erase people', 'Remove everything stored about one person, for good. Grant it sparingly.'],
}

const forAgents: readonly Scope[] = ['read', 'write', 'send']
const sparing: readonly Scope[] = ['campaigns', 'people_export', 'people_erase']

/** In days. */
const lifetimes: readonly Option<string>[] = [
  ['', 'Never'],
  ['7', 'After 7 days'],
  ['30', 'After 30 days'],
  ['90', 'After 90 days'],
  ['365', 'After a year'],
]

interface KeyFormProps {
  workspace: Workspace
  onMade: (made: CreatedKey) => void
  /** For an agent: only over MCP, where a person approves each write. */
  agent?: boolean
}

export function KeyForm({ workspace, onMade, agent = false }: KeyFormProps) {
  const create = useChange('POST /w/{workspace_id}/keys', ['keys'])
  const [name, setName] = useState(agent ? 'My agent' : '')
  const [scopes, setScopes] = useState<readonly Scope[]>(agent ? forAgents : ['read'])
  const [days, setDays] = useState(agent ? '90' : '')
  const [mcp_only, setMcpOnly] = useState(agent)
  // A key may do no more than its creator. Agents have no tool for campaigns, nor for a person's data.
  const offered = workspace.scopes.filter((scope) => !agent || forAgents.includes(scope))
  const submit = () => {
    const expires_at = days && new Date(Date.now() + Number(days) * 86_400_000).toISOString()
    const body = { name: name.trim(), scopes: [...scopes], mcp_only, ...(expires_at && { expires_at }) }
    create.mutate({ params: { workspace_id: workspace.id }, body }, { onSuccess: onMade })
  }
  return (
    <Form onSubmit={submit} change={create} action="Create key" disabled={scopes.length === 0}>
      <TextField
        label="Name"
        help="For example: CRM sync"
        required
        maxLength={100}
        value={name}
        onChange={setName}
      />
      <Choices legend="What may it do?">
        {offered.map((scope) => (
          <Choice
            key={scope}
            label={scopeWords[scope][0]}
            help={scopeWords[scope][1]}
            tone={sparing.includes(scope) ? 'warn' : 'plain'}
            checked={scopes.includes(scope)}
            onChange={(event) =>
              setScopes(event.target.checked ? [...scopes, scope] : scopes.filter((each) => each !== scope))
            }
          />
        ))}
      </Choices>
      <SelectField label="Expires" value={days} options={lifetimes} onChange={setDays} />
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
