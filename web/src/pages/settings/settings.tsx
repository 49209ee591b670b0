/** The settings of a workspace. Admins and owners change them, members read them. */

import { useQuery } from '@tanstack/react-query'
import { Link, type LinkProps } from '@tanstack/react-router'
import { ChevronRight } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { nameMax } from '../../../../src/rules/limits.ts'
import { workspaceQuery } from '../../data/chats.ts'
import { useHere, useSession } from '../../data/place.ts'
import { useChange } from '../../data/queries.ts'
import { shown, useKept } from '../../data/use-kept.ts'
import { Button } from '../../ui/button.tsx'
import { ExactText } from '../../ui/exact-text.tsx'
import { DiscardChanges, Form, TextField, ZoneField } from '../../ui/form.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { SavedRepliesSection } from './saved-replies-section.tsx'
import { type SettingsGiven, WindowSection } from './window-section.tsx'

const RetentionSection = lazy(async () => ({
  default: (await import('./retention-section.tsx')).RetentionSection,
}))

export function SettingsPage() {
  const workspace_id = useHere().id
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
            {admin && (
              <Suspense>
                <RetentionSection workspace_id={workspace_id} />
              </Suspense>
            )}
            <Elsewhere workspace_id={workspace_id} admin={admin} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function About({ workspace, admin }: SettingsGiven) {
  const save = useChange('PATCH /w/{workspace_id}/workspace', ['workspace', 'session'])
  const { user } = useSession()
  const place = { user_id: user.id, workspace_id: workspace.id, kind: 'settings', of: 'workspace' } as const
  const { kept, change, discard } = useKept<{ name?: string; timezone?: string }>(place, {})
  const { name = workspace.name, timezone = workspace.timezone } = kept.value
  const changes = {
    ...(name.trim() !== workspace.name && { name: name.trim() }),
    ...(timezone !== workspace.timezone && { timezone }),
  }
  return (
    <Section title="Workspace">
      <Form
        onSubmit={() =>
          void save
            .mutateAsync({ params: { workspace_id: workspace.id }, body: changes })
            .then(() => discard(kept), shown)
        }
        change={save}
        action={save.error ? 'Try again' : 'Save'}
        aside={<DiscardChanges of={changes} onDiscard={discard} />}
        disabled={!admin || Object.keys(changes).length === 0}
        saved={save.isSuccess && Object.keys(changes).length === 0}
      >
        <TextField
          label="Name"
          value={name}
          required
          maxLength={nameMax}
          disabled={!admin}
          onChange={(typed) => change((each) => ({ ...each, name: typed }))}
        />
        <ZoneField
          help={zoneHelp(workspace, timezone)}
          value={timezone}
          disabled={!admin}
          onChange={(chosen) => change((each) => ({ ...each, timezone: chosen }))}
        />
      </Form>
    </Section>
  )
}

/** A new zone holds from the end of the day that has begun, so that a change opens no second day. */
function zoneHelp(workspace: SettingsGiven['workspace'], chosen: string): string {
  const { timezone, timezone_before, timezone_from } = workspace
  const holds = 'Its day, and its daily limits, end at midnight there.'
  if (chosen !== timezone) return `${holds} A new zone holds once the day that has begun is over.`
  if (timezone_before === null || timezone_from === null) return holds
  const at = new Date(timezone_from)
  const when = at.toLocaleString('en', { timeZone: timezone_before, ...shortDate })
  return `Holds from ${when} in ${timezone_before}, when the day that has begun there is over. Until then the day is that of ${timezone_before}.`
}

const shortDate = {
  day: 'numeric',
  month: 'short',
  hour: '2-digit',
  minute: '2-digit',
  hourCycle: 'h23',
} as const

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
