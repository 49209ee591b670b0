/** What follows from the draft and from what the service knows: the request, its faults, and its preview. */

import { useQuery } from '@tanstack/react-query'
import { useDeferredValue, useMemo } from 'react'
import { readContactList } from '../../../../src/rules/contact-table.ts'
import { accountsQuery } from '../../data/accounts.ts'
import { personKey, useAudience } from '../../data/audience.ts'
import { workspaceQuery } from '../../data/chats.ts'
import {
  bodyOf,
  type CampaignDraft,
  type Circumstances,
  faultsOf,
  missingOf,
  recipientsOf,
} from './campaign-draft.ts'
import type { Names } from './previews.ts'
import { usePreview } from './use-preview.ts'

export function useView(workspace_id: string, typed: CampaignDraft) {
  // With thousands of contacts this takes a while: the letter that was typed is on the screen first.
  const draft = useDeferredValue(typed)
  const { data: state } = useQuery(workspaceQuery(workspace_id))
  const { data: accounts } = useQuery(accountsQuery(workspace_id))
  const audience = useAudience(workspace_id, draft.filter, draft.who === 'chats')
  const list = useMemo(() => readContactList(draft.list), [draft.list])
  const timezone = state?.workspace.timezone ?? 'UTC'
  const people = audience.data?.people
  const about = useMemo<Circumstances>(
    () => ({
      people,
      chats: audience.data?.chats ?? 0,
      contacts: list.contacts,
      bad_lines: list.skipped.length,
      timezone,
      now: new Date(),
    }),
    [people, audience.data?.chats, list, timezone],
  )
  const faults = useMemo(() => faultsOf(draft, about), [draft, about])
  const missing = missingOf(draft, about)
  const isReady = faults.size === 0 && missing === undefined && draft === typed
  const body = useMemo(() => (isReady ? bodyOf(draft, about) : undefined), [isReady, draft, about])
  const preview = usePreview(workspace_id, body)
  const names = useMemo<Names>(() => {
    const known = new Map((people ?? []).map((person) => [personKey(person), person.name]))
    const listed = new Map(list.contacts.map(({ identifier, name }) => [identifier, name ?? identifier]))
    return {
      timezone,
      account: (id) => accounts?.accounts.find((each) => each.id === id)?.name ?? id,
      recipient: ({ account_id, chat_id, identifier }) =>
        identifier === null
          ? (known.get(personKey({ account_id: account_id ?? '', chat_id: chat_id ?? '' })) ?? chat_id ?? '')
          : (listed.get(identifier) ?? identifier),
    }
  }, [people, list, accounts, timezone])
  const those = recipientsOf(draft, about)
  const count = those.people.length + those.contacts.length + those.groups.length
  const because =
    missing ??
    (faults.size > 0
      ? 'A field is marked in red.'
      : those.groups.length > 0
        ? 'Remove the people who can’t be messaged.'
        : undefined)
  return {
    ...{ state, about, list, faults, missing, because, body, preview, names, count },
    groups: those.groups,
    audienceError: audience.error,
  }
}
