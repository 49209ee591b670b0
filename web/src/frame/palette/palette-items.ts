/** What the palette finds: pages, actions and chats in memory immediately, and what the service finds after a moment. */

import { queryOptions } from '@tanstack/react-query'
import { nameMax } from '../../../../src/rules/limits.ts'
import { type Answer, ask, Refused } from '../../data/api.ts'
import type { InboxList } from '../../data/inbox-list.ts'
import { keys } from '../../data/keys.ts'
import { type FoundPerson, writtenName } from '../../data/people.ts'
import { queryClient, type Session, type Workspace } from '../../data/queries.ts'
import { setTheme } from '../../ui/theme.ts'

export interface Item {
  readonly id: string
  readonly group: 'Chats' | 'Contacts' | 'People' | 'Messages' | 'Pages' | 'Actions'
  readonly label: string
  /** A second, muted line or word. */
  readonly about?: string
  readonly keys?: string
  /** A path below `/dashboard`, or what it does. */
  readonly to?: string
  readonly act?: () => void
}

/** Every word of the question, in any order. */
function fits(label: string, question: string): boolean {
  const text = label.toLowerCase()
  return question
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word))
}

export function placesAndActions({ user, workspaces }: Session, workspace: Workspace | undefined): Item[] {
  const page = (label: string, to: string, keys?: string): Item => ({
    id: `page ${to}`,
    group: 'Pages',
    label,
    to,
    ...(keys !== undefined && { keys }),
  })
  const here = `/w/${workspace?.id}`
  const admin = workspace !== undefined && workspace.role !== 'member'
  const inWorkspace = workspace
    ? [
        page('Inbox', `${here}/inbox`, 'G I'),
        page('Pipeline', `${here}/pipeline`, 'G P'),
        page('Pipeline as a table', `${here}/pipeline?view=table`),
        page('Contacts', `${here}/contacts`, 'G C'),
        page('People', `${here}/people`),
        ...(admin ? [page('Campaigns', `${here}/campaigns`, 'G S')] : []),
        ...(admin ? [page('Broadcast', `${here}/broadcast`)] : []),
        page('Analytics', `${here}/analytics`),
        page('Accounts', `${here}/accounts`, 'G A'),
        page('Suppression', `${here}/suppressions`),
        ...(admin ? [page('Webhooks', `${here}/webhooks`)] : []),
        page('API keys', `${here}/keys`),
        page('Members', `${here}/members`),
        page('Connect an agent', `${here}/connect`),
        page('Settings', `${here}/settings`),
      ]
    : []
  const others = workspaces
    .filter(({ id }) => id !== workspace?.id)
    .map(({ id, name }) => page(`Workspace ${name}`, `/w/${id}/inbox`))
  const action = (label: string, rest: Pick<Item, 'to' | 'act'>): Item => ({
    id: `action ${label}`,
    group: 'Actions',
    label,
    ...rest,
  })
  return [
    ...inWorkspace,
    page('Approvals', '/mcp-approvals'),
    ...(user.operator
      ? [
          page('Operator: gates', '/operator'),
          page('Operator: sending', '/operator?view=sending'),
          page('Operator: workspaces and users', '/operator?view=people'),
          page('Operator: what needs attention', '/operator?view=attention'),
          page('Operator: audit log', '/operator?view=audit'),
          page('Operator: system', '/operator?view=system'),
        ]
      : []),
    page('Profile', '/profile'),
    ...others,
    ...(admin
      ? [
          action('Write a new campaign', { to: `${here}/campaigns/new` }),
          action('Edit the stages of the pipeline', { to: `${here}/pipeline?edit=stages` }),
          action('Add a webhook', { to: `${here}/webhooks?open=add` }),
          action('Import a suppression list', { to: `${here}/suppressions?open=import` }),
          action('Edit the columns of chats', { to: `${here}/pipeline?edit=columns` }),
        ]
      : []),
    ...(workspace ? [action('Start a chat with someone new', { to: `${here}/contacts?start=new` })] : []),
    action('Show unread chats', { to: `${here}/inbox?view=unread` }),
    action('Show chats that wait for an answer', { to: `${here}/inbox?view=unanswered` }),
    action('Use the light theme', { act: () => setTheme('light') }),
    action('Use the dark theme', { act: () => setTheme('dark') }),
    action('Use the theme of this device', { act: () => setTheme('system') }),
  ]
}

interface FoundChat {
  readonly account_id: string
  readonly id: string
  readonly name: string
}

const chatPath = (workspace_id: string, { account_id, id }: Omit<FoundChat, 'name'>, message?: string) =>
  `/w/${workspace_id}/inbox?${new URLSearchParams({ chat: id, of: account_id, ...(message !== undefined && { message }) })}`

const chatItem = (workspace_id: string, chat: FoundChat): Item => ({
  id: `chat ${chat.account_id} ${chat.id}`,
  group: 'Chats',
  label: chat.name,
  to: chatPath(workspace_id, chat),
})

const contactItem = (workspace_id: string, contact: Found['contacts'][number]): Item => ({
  id: `contact ${contact.account_id} ${contact.provider_id}`,
  group: 'Contacts',
  label: contact.name,
  ...(contact.username !== null && { about: `@${contact.username}` }),
  to: `/w/${workspace_id}/contacts?${new URLSearchParams({ contact: contact.provider_id, of: contact.account_id })}`,
})

const personItem = (workspace_id: string, { id, name, names, platform_id }: FoundPerson): Item => ({
  id: `person ${id}`,
  group: 'People',
  label: name ?? names.map(writtenName)[0] ?? platform_id,
  about: names.map(writtenName).join(', ') || platform_id,
  to: `/w/${workspace_id}/people/${id}`,
})

const chatsMax = 8
const contactsMax = 8
const peopleMax = 4

/** Of every list that was read on these pages. */
function chatsInMemory(workspace_id: string): FoundChat[] {
  const lists = queryClient.getQueriesData<InboxList>({ queryKey: keys.inbox(workspace_id, 'list') })
  const boards = queryClient.getQueriesData<Answer<'GET /w/{workspace_id}/board'>>({
    queryKey: keys.board(workspace_id),
  })
  return [
    ...lists.flatMap(([, list]) => list?.chats ?? []),
    ...boards.flatMap(([, board]) => board?.stages.flatMap(({ chats }) => chats) ?? []),
  ]
}

/** Contacts whose names have words that begin like those of the question. None while their gate is closed. */
async function findContacts(workspace_id: string, q: string, signal: AbortSignal) {
  const query = { q, limit: contactsMax }
  const asked = ask('GET /w/{workspace_id}/contacts', { params: { workspace_id }, query }, { signal })
  const { contacts } = await asked.catch((error: unknown) => {
    if (error instanceof Refused && error.code === 'feature_disabled') return { contacts: [] }
    throw error
  })
  return contacts
}

/** People by any of their names. Without them the rest is shown: the service may be busy with others. */
async function findPeople(workspace_id: string, q: string, signal: AbortSignal): Promise<FoundPerson[]> {
  const query = { q, limit: peopleMax }
  const asked = ask('GET /w/{workspace_id}/people', { params: { workspace_id }, query }, { signal })
  const { people } = await asked.catch((error: unknown) => {
    if (error instanceof Refused && error.status !== 401) return { people: [] }
    throw error
  })
  return people
}

/** Chats by the name of a person, contacts and people by their names, and messages by their words. */
export const foundQuery = (workspace_id: string, question: string) =>
  queryOptions({
    queryKey: keys.found(workspace_id, question),
    queryFn: async ({ signal }) => {
      const search = (body: { people: string[] } | { query: string }) =>
        ask(
          'POST /w/{workspace_id}/search',
          { params: { workspace_id }, body: { ...body, limit: chatsMax } },
          { signal },
        )
      const text = question.slice(0, nameMax).toWellFormed()
      const [people, words, contacts, persons] = await Promise.all([
        search({ people: [text] }),
        search({ query: text }),
        findContacts(workspace_id, text, signal),
        findPeople(workspace_id, text, signal),
      ])
      return { people, words, contacts, persons }
    },
    staleTime: 30_000,
    retry: false,
  })

type Found = Awaited<ReturnType<NonNullable<ReturnType<typeof foundQuery>['queryFn']>>>

/** In the order in which they are shown, each once. */
export function itemsFor(
  question: string,
  {
    workspace_id,
    fixed,
    found,
  }: { workspace_id: string | undefined; fixed: readonly Item[]; found: Found | undefined },
): Item[] {
  const known = fixed.filter(({ label }) => fits(label, question))
  if (question === '' || workspace_id === undefined) return known
  const named = (found?.people.chats ?? []).map(({ account_id, chat_id, chat_name }) => ({
    account_id,
    id: chat_id,
    name: chat_name,
  }))
  const chats = [...chatsInMemory(workspace_id), ...named].filter(({ name }) => fits(name, question))
  const names = new Map(
    found?.words.chats.map((chat) => [`${chat.account_id} ${chat.chat_id}`, chat.chat_name]),
  )
  const messages = (found?.words.matches ?? []).map(
    ({ account_id, chat_id, message_id, excerpt }): Item => ({
      id: `message ${account_id} ${chat_id} ${message_id}`,
      group: 'Messages',
      label: excerpt,
      about: names.get(`${account_id} ${chat_id}`) ?? '',
      to: chatPath(workspace_id, { account_id, id: chat_id }, message_id),
    }),
  )
  const each = new Map(chats.map((chat) => [`${chat.account_id} ${chat.id}`, chatItem(workspace_id, chat)]))
  // Whose chat is in the list already is not there again as a contact.
  const people = (found?.contacts ?? [])
    .filter(({ account_id, provider_id }) => !each.has(`${account_id} platform:chat:${provider_id}`))
    .map((contact) => contactItem(workspace_id, contact))
  const persons = (found?.persons ?? []).map((person) => personItem(workspace_id, person))
  return [...[...each.values()].slice(0, chatsMax), ...people, ...known, ...persons, ...messages]
}
