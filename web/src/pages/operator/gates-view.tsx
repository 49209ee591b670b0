/** What is switched on for the whole instance, and who may run campaigns. */
import { useQuery } from '@tanstack/react-query'
import { Building2, UserRound } from 'lucide-react'
import { useState } from 'react'
import { allowlistsQuery, type Gate, gatesQuery, useChange } from '../../data/queries.ts'
import { Button } from '../../ui/button.tsx'
import { Form, SelectField, Switch } from '../../ui/form.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Section } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'

export function GatesView() {
  const gates = useQuery(gatesQuery)
  const lists = useQuery(allowlistsQuery)
  return (
    <>
      <Loaded query={gates} rows={8}>
        {(data) => <GateList gates={data.gates} />}
      </Loaded>
      <div className="h-10" />
      <Loaded query={lists}>
        {({ lists: { campaign_user, campaign_workspace }, users, workspaces }) => (
          <>
            <Allowlist
              list="campaign_user"
              title="Who may run campaigns"
              about="While the list is empty, no user may. Removing a user also stops their running campaigns until they are listed again."
              listed={campaign_user}
              all={users.map(({ id, email }) => ({ id, label: email }))}
            />
            <Allowlist
              list="campaign_workspace"
              title="Workspaces that may run campaigns"
              about="A campaign needs both: its user and its workspace must be listed."
              listed={campaign_workspace}
              all={workspaces.map(({ id, name }) => ({ id, label: name }))}
            />
          </>
        )}
      </Loaded>
    </>
  )
}

const groups = ['API', 'Inbox and CRM', 'Campaigns', 'Agents'] as const
type Group = (typeof groups)[number]

/** Every gate's group and plain name: a new gate does not compile without them. */
const gateWords: Readonly<Record<Gate['name'], readonly [Group, string]>> = {
  rest: ['API', 'REST API'],
  extended: ['API', 'Extras'],
  start_chat: ['API', 'Writing first'],
  crm: ['Inbox and CRM', 'Columns'],
  pipeline: ['Inbox and CRM', 'Stages'],
  analytics: ['Inbox and CRM', 'Analytics'],
  campaigns: ['Campaigns', 'Campaigns'],
  campaign_mutation: ['Campaigns', 'Starting and changing campaigns'],
  scoped_routing: ['Campaigns', 'An account per recipient'],
  branching: ['Campaigns', 'Branches'],
  read_receipts: ['Campaigns', 'Read receipts'],
  broadcast: ['Campaigns', 'Broadcasts'],
  mcp_send: ['Agents', 'Sending messages'],
  mcp_pipeline: ['Agents', 'Moving chats'],
  mcp_columns: ['Agents', 'Filling in columns'],
}

function GateList({ gates }: { gates: readonly Gate[] }) {
  return groups.map((group) => (
    <GateGroup key={group} title={group} gates={gates.filter(({ name }) => gateWords[name][0] === group)} />
  ))
}

function GateGroup({ title, gates }: { title: Group; gates: readonly Gate[] }) {
  const change = useChange('POST /gates/{name}', ['gates', 'instance'])
  return (
    <section>
      <h2 className="mb-1.5 font-semibold">{title}</h2>
      <Failure error={change.error} />
      <ul className="-mx-4 divide-y divide-line border-y border-line sm:-mx-5">
        {gates.map((gate) => (
          <li
            key={gate.name}
            className={`flex min-h-11 items-center gap-4 px-4 py-1.5 sm:px-5 ${gate.enabled ? '' : 'text-muted'}`}
          >
            <div className="min-w-0 flex-1">
              <p className="font-medium">
                {gateWords[gate.name][1]}{' '}
                <span className="font-mono text-xs font-normal text-muted">{gate.name}</span>
              </p>
              <p className="text-muted">{gate.description}</p>
              <p className="text-xs text-muted">Noticed by: {gate.noticed_by}</p>
            </div>
            {gate.changed_at && (
              <span className="hidden text-xs text-muted md:block">
                <Time at={gate.changed_at} />
              </span>
            )}
            <Switch
              label={gate.name}
              checked={gate.enabled}
              disabled={change.isPending}
              onChange={(enabled) => change.mutate({ params: { name: gate.name }, body: { enabled } })}
            />
          </li>
        ))}
      </ul>
    </section>
  )
}

interface Listed {
  id: string
  label: string
}

interface AllowlistProps {
  list: 'campaign_user' | 'campaign_workspace'
  title: string
  about: string
  listed: readonly Listed[]
  all: readonly Listed[]
}

function Allowlist({ list, title, about, listed, all }: AllowlistProps) {
  const change = useChange('POST /allowlists/{list}', ['allowlists'])
  const [chosen, setChosen] = useState('')
  const offered = all.filter(({ id }) => !listed.some((each) => each.id === id))
  const set = (id: string, on: boolean) =>
    change.mutate({ params: { list }, body: { id, listed: on } }, { onSuccess: () => setChosen('') })
  return (
    <Section title={title} about={about}>
      <Table
        label={title}
        rows={listed}
        rowKey={({ id }) => id}
        empty={{
          icon: list === 'campaign_user' ? UserRound : Building2,
          title: 'The list is empty',
          children: 'Parley refuses all campaigns until you add an entry.',
        }}
        columns={[
          {
            heading: 'Name',
            lead: true,
            cell: ({ id, label }) => (
              <bdi title={id} className="font-medium">
                {label}
              </bdi>
            ),
          },
          {
            heading: 'Actions',
            actions: true,
            cell: ({ id, label }) => (
              <Button kind="quiet" size="small" aria-label={`Remove ${label}`} onClick={() => set(id, false)}>
                Remove
              </Button>
            ),
          },
        ]}
      />
      {offered.length > 0 ? (
        <div className="max-w-md">
          <Form
            onSubmit={() => set(chosen, true)}
            change={change}
            action="Add to the list"
            disabled={chosen === ''}
          >
            <SelectField
              label="Add"
              value={chosen}
              options={[['', 'Choose…'], ...offered.map(({ id, label }) => [id, label] as const)]}
              onChange={setChosen}
            />
          </Form>
        </div>
      ) : (
        <Failure error={change.error} />
      )}
    </Section>
  )
}
