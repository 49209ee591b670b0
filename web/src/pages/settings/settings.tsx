/** The settings of a workspace. Admins and owners change them, members read them. */
import { useQuery } from '@tanstack/react-query'
import { Link, type LinkProps } from '@tanstack/react-router'
import { ChevronRight } from 'lucide-react'
import { useState } from 'react'
import { ExactText } from '../../exact-text.tsx'
import { useWorkspace } from '../../place.ts'
import { useChange } from '../../queries.ts'
import { Page, Section } from '../../shell.tsx'
import { Button } from '../../ui/button.tsx'
import { Field, Form, Select, TextInput } from '../../ui/form.tsx'
import { Loaded } from '../../ui/states.tsx'
import { type WorkspaceState, workspaceQuery } from '../inbox/inbox-queries.ts'
import { Missing } from '../stopped.tsx'
import { SavedRepliesSection } from './saved-replies-section.tsx'
import { Saved, WindowSection } from './window-section.tsx'

export interface SettingsGiven {
  workspace: WorkspaceState['workspace']
  /** Whether the user may change them. */
  admin: boolean
}

export function SettingsPage() {
  const workspace = useWorkspace()
  if (!workspace) return <Missing />
  // The key: another workspace begins with its own values.
  return <Settings key={workspace.id} workspace_id={workspace.id} />
}

function Settings({ workspace_id }: { workspace_id: string }) {
  const query = useQuery(workspaceQuery(workspace_id))
  const admin = query.data !== undefined && query.data.workspace.role !== 'member'
  return (
    <Page
      title="Settings"
      narrow
      about={query.data && !admin && 'Only admins and owners of this workspace change them.'}
    >
      <Loaded query={query} rows={6}>
        {({ workspace, opt_out_words }) => (
          <>
            <About workspace={workspace} admin={admin} />
            <WindowSection workspace={workspace} admin={admin} />
            <OptOutWords words={opt_out_words} />
            <SavedRepliesSection workspace_id={workspace_id} />
            <Elsewhere workspace_id={workspace_id} admin={admin} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

const zones = Intl.supportedValuesOf('timeZone')

function About({ workspace, admin }: SettingsGiven) {
  const save = useChange('PATCH /w/{workspace_id}/workspace', ['workspace', 'session'])
  const [name, setName] = useState(workspace.name)
  const [timezone, setZone] = useState(workspace.timezone)
  const changes = {
    ...(name.trim() !== workspace.name && { name: name.trim() }),
    ...(timezone !== workspace.timezone && { timezone }),
  }
  return (
    <Section title="Workspace">
      <Form
        onSubmit={() => save.mutate({ params: { workspace_id: workspace.id }, body: changes })}
        busy={save.isPending}
        error={save.error}
        action="Save"
        disabled={!admin || Object.keys(changes).length === 0}
        aside={save.isSuccess && Object.keys(changes).length === 0 && <Saved />}
      >
        <Field label="Name">
          <TextInput
            value={name}
            required
            maxLength={200}
            disabled={!admin}
            autoComplete="off"
            onChange={(event) => setName(event.target.value)}
          />
        </Field>
        <Field label="Time zone" help="Its day, and its daily limits, end at midnight there.">
          <Select value={timezone} disabled={!admin} onChange={(event) => setZone(event.target.value)}>
            {zones.includes(timezone) || <option>{timezone}</option>}
            {zones.map((zone) => (
              <option key={zone}>{zone}</option>
            ))}
          </Select>
        </Field>
      </Form>
    </Section>
  )
}

const wordsShown = 12

function OptOutWords({ words }: { words: readonly string[] }) {
  const [all, setAll] = useState(false)
  const about =
    words.length === 0
      ? 'The operator has switched opt-outs off: no message adds its sender to the suppression list.'
      : 'A person whose whole message is one of these gets no first message any more. The operator of this instance sets them.'
  return (
    <Section title="Opt-out words" about={about}>
      {words.length > 0 && (
        <ul className="flex flex-wrap gap-1.5">
          {words.slice(0, all ? undefined : wordsShown).map((word) => (
            <li key={word} className="rounded-md bg-sunken px-2 py-0.5 ring-1 ring-inset ring-line">
              <ExactText text={word} />
            </li>
          ))}
        </ul>
      )}
      {!all && words.length > wordsShown && (
        <div>
          <Button size="small" onClick={() => setAll(true)}>
            Show all {words.length}
          </Button>
        </div>
      )}
    </Section>
  )
}

interface Place {
  readonly label: string
  readonly about: string
  readonly to: LinkProps['to']
  readonly search?: Readonly<Record<string, string>>
}

const places = (admin: boolean): readonly Place[] => [
  { label: 'Members', about: 'Who belongs here, and their roles', to: '/w/$workspace_id/members' },
  { label: 'API keys', about: 'What programs and agents may do', to: '/w/$workspace_id/keys' },
  { label: 'Accounts', about: 'Logins, limits and proxies', to: '/w/$workspace_id/accounts' },
  ...(admin
    ? [
        {
          label: 'Stages',
          about: 'The columns of the pipeline',
          to: '/w/$workspace_id/pipeline',
          search: { edit: 'stages' },
        } as const,
        {
          label: 'Columns',
          about: 'What the team keeps about chats',
          to: '/w/$workspace_id/pipeline',
          search: { view: 'table', edit: 'columns' },
        } as const,
      ]
    : []),
]

function Elsewhere({ workspace_id, admin }: { workspace_id: string; admin: boolean }) {
  return (
    <Section title="On other pages">
      <ul className="divide-y divide-line overflow-hidden rounded-lg ring-1 ring-line">
        {places(admin).map(({ label, about, to, search }) => (
          <li key={label}>
            <Link
              {...({ to, params: { workspace_id }, search: search ?? {} } as LinkProps)}
              className="flex min-h-11 items-center gap-3 px-3 hover:bg-hover"
            >
              <span className="min-w-0 flex-1">
                <span className="font-medium">{label}</span>{' '}
                <span className="text-muted max-sm:block">{about}</span>
              </span>
              <ChevronRight aria-hidden className="size-4 shrink-0 text-muted" />
            </Link>
          </li>
        ))}
      </ul>
    </Section>
  )
}
