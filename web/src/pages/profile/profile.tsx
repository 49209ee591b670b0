/** The user's own settings: name, time zone, theme, password, and active sessions. */
import { useQuery } from '@tanstack/react-query'
import { MonitorSmartphone } from 'lucide-react'
import { useState } from 'react'
import { nameMax, passwordMax, passwordMin } from '../../../../src/rules/limits.ts'
import { useSession } from '../../data/place.ts'
import { answeringMarksRead, setAnsweringMarksRead } from '../../data/preferences.ts'
import { sessionsQuery, useChange } from '../../data/queries.ts'
import { shown, useKept } from '../../data/use-kept.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Choice, Choices, DiscardChanges, Form, TextField, ZoneField } from '../../ui/form.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { setTheme, type Theme, themes, useTheme } from '../../ui/theme.ts'
import { Time } from '../../ui/time.tsx'
import { browserWords } from './browser-words.ts'
import { Notifications } from './notifications.tsx'

export function ProfilePage() {
  const { user } = useSession()
  return (
    <Page title="Profile" about={`Signed in as ${user.email}.`} narrow>
      <About />
      <Look />
      <InboxHabits />
      <Notifications />
      <Password />
      <Sessions />
    </Page>
  )
}

function About() {
  const { user } = useSession()
  const save = useChange('PATCH /profile', ['session', 'members'])
  const place = { user_id: user.id, workspace_id: '', kind: 'settings', of: 'profile' } as const
  const { kept, change, discard } = useKept<{ name?: string; time_zone?: string }>(place, {})
  const own = Intl.DateTimeFormat().resolvedOptions().timeZone
  const { name = user.name ?? '', time_zone = user.time_zone ?? own } = kept.value
  return (
    <Section title="About you">
      <Form
        onSubmit={() =>
          void save.mutateAsync({ body: { name: name.trim(), time_zone } }).then(() => discard(kept), shown)
        }
        change={save}
        action={save.error ? 'Try again' : 'Save'}
        aside={<DiscardChanges of={kept.value} onDiscard={discard} />}
        saved={save.isSuccess}
      >
        <TextField
          label="Name"
          help="How others see you in the list of members."
          value={name}
          maxLength={nameMax}
          autoComplete="name"
          onChange={(typed) => change((each) => ({ ...each, name: typed }))}
        />
        <ZoneField
          help="Used for all times you see."
          value={time_zone}
          onChange={(chosen) => change((each) => ({ ...each, time_zone: chosen }))}
        />
      </Form>
    </Section>
  )
}

const themeWords: Readonly<Record<Theme, readonly [label: string, help: string]>> = {
  system: ['System', 'Follows this device.'],
  light: ['Light', 'Always light, in this browser.'],
  dark: ['Dark', 'Always dark, in this browser.'],
}

function Look() {
  const theme = useTheme()
  return (
    <section className="mb-10">
      <Choices legend="Theme">
        {themes.map((each) => (
          <Choice
            key={each}
            type="radio"
            name="theme"
            label={themeWords[each][0]}
            help={themeWords[each][1]}
            checked={theme === each}
            onChange={() => setTheme(each)}
          />
        ))}
      </Choices>
    </section>
  )
}

function InboxHabits() {
  const [marks, setMarks] = useState(answeringMarksRead)
  return (
    <section className="mb-10">
      <Choices legend="Inbox">
        <Choice
          label="Mark a chat as read when I answer"
          help="In this browser. Opening a chat never does."
          checked={marks}
          onChange={(event) => {
            setMarks(event.target.checked)
            setAnsweringMarksRead(event.target.checked)
          }}
        />
      </Choices>
    </section>
  )
}

function Password() {
  const { user } = useSession()
  const change = useChange('POST /password', ['session', 'sessions'])
  const [current_password, setCurrent] = useState('')
  const [password, setPassword] = useState('')
  const submit = () =>
    change.mutate(
      { body: { password, ...(user.has_password && { current_password }) } },
      {
        onSuccess: () => {
          setCurrent('')
          setPassword('')
        },
      },
    )
  return (
    <Section
      title={user.has_password ? 'Change password' : 'Set a password'}
      about="A new password signs you out everywhere else."
    >
      {change.isSuccess && <Notice tone="good">{change.data.message}</Notice>}
      <Form onSubmit={submit} change={change} action="Save password">
        <input type="email" autoComplete="username" value={user.email} readOnly hidden />
        {user.has_password && (
          <TextField
            label="Current password"
            type="password"
            required
            autoComplete="current-password"
            value={current_password}
            onChange={setCurrent}
          />
        )}
        <TextField
          label="New password"
          help={`At least ${passwordMin} characters.`}
          type="password"
          required
          minLength={passwordMin}
          maxLength={passwordMax}
          autoComplete="new-password"
          value={password}
          onChange={setPassword}
        />
      </Form>
    </Section>
  )
}

function Sessions() {
  const query = useQuery(sessionsQuery)
  const revoke = useChange('POST /sessions/{session_id}/revoke', ['sessions'])
  const others = useChange('POST /sessions/revoke-others', ['sessions'])
  return (
    <Section title="Where you are signed in" about="Sessions end after 12 hours, or 2 hours without use.">
      <Failure error={revoke.error ?? others.error} />
      <Loaded query={query} rows={2}>
        {({ sessions }) => (
          <>
            <Table
              label="Sessions"
              rows={sessions}
              rowKey={({ id }) => id}
              empty={{
                icon: MonitorSmartphone,
                title: 'No sessions',
                children: 'You are signed in nowhere.',
              }}
              columns={[
                {
                  heading: 'Browser',
                  lead: true,
                  cell: ({ user_agent, current }) => (
                    <span
                      className="inline-flex flex-wrap items-center gap-2 font-medium"
                      title={user_agent ?? ''}
                    >
                      {browserWords(user_agent)}
                      {current && <Badge tone="good">this one</Badge>}
                    </span>
                  ),
                },
                { heading: 'Last seen', cell: ({ last_seen_at }) => <Time at={last_seen_at} /> },
                {
                  heading: 'Actions',
                  actions: true,
                  cell: ({ id, current, user_agent }) =>
                    !current && (
                      <Button
                        kind="quiet"
                        size="small"
                        aria-label={`Sign out ${browserWords(user_agent)}`}
                        onClick={() => revoke.mutate({ params: { session_id: id } })}
                      >
                        Sign out
                      </Button>
                    ),
                },
              ]}
            />
            {sessions.length > 1 && (
              <div>
                <Button busy={others.isPending} onClick={() => others.mutate(undefined)}>
                  Sign out everywhere else
                </Button>
              </div>
            )}
          </>
        )}
      </Loaded>
    </Section>
  )
}
