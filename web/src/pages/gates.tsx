/** For operators: what is switched on for the whole instance, and who may run campaigns. */
import { useQuery } from '@tanstack/react-query'
import { Building2, UserRound } from 'lucide-react'
import { useState } from 'react'
import { useSession } from '../place.ts'
import { allowlistsQuery, type Gate, gatesQuery, useChange } from '../queries.ts'
import { Page, Section } from '../shell.tsx'
import { Button } from '../ui/button.tsx'
import { Field, Form, Select, Switch } from '../ui/form.tsx'
import { Failure } from '../ui/notice.tsx'
import { Loaded } from '../ui/states.tsx'
import { Table } from '../ui/table.tsx'
import { Time } from '../ui/time.tsx'
import { Missing } from './stopped.tsx'

export function GatesPage() {
  const { user } = useSession()
  const gates = useQuery({ ...gatesQuery, enabled: user.operator })
  const lists = useQuery({ ...allowlistsQuery, enabled: user.operator })
  if (!user.operator) return <Missing />
  return (
    <Page
      title="Gates"
      about="Everything is off until you turn it on. Changes take effect within a second and are in the audit log."
    >
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
    </Page>
  )
}

function GateList({ gates }: { gates: readonly Gate[] }) {
  const change = useChange('POST /gates/{name}', ['gates'])
  return (
    <div className="grid gap-3">
      <Failure error={change.error} />
      <ul className="rounded-xl bg-surface shadow-card ring-1 ring-line">
        {gates.map((gate) => (
          <li key={gate.name} className="flex items-center gap-4 border-line px-5 py-3 not-first:border-t">
            <div className="min-w-0 flex-1">
              <p className="font-mono text-sm font-medium">{gate.name}</p>
              <p className="text-muted">{gate.description}</p>
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
    </div>
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
          { heading: 'Name', lead: true, cell: ({ label }) => <bdi className="font-medium">{label}</bdi> },
          {
            heading: 'Id',
            cell: ({ id }) => (
              <span className="font-mono text-xs text-muted [overflow-wrap:anywhere]">{id}</span>
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
            busy={change.isPending}
            error={change.error}
            action="Add to the list"
            disabled={chosen === ''}
          >
            <Field label="Add">
              <Select value={chosen} onChange={(event) => setChosen(event.target.value)}>
                <option value="">Choose…</option>
                {offered.map(({ id, label }) => (
                  <option key={id} value={id}>
                    {label}
                  </option>
                ))}
              </Select>
            </Field>
          </Form>
        </div>
      ) : (
        <Failure error={change.error} />
      )}
    </Section>
  )
}
