/**
 * Notifications of the browser, made only by the tab that reads the stream, so that each comes once. A mark says that
 * something changed; what is new is found by comparing with what this tab read before. Without names and texts unless
 * the user has switched them on.
 */

import { ask } from '../api.ts'
import { goTo } from '../place.ts'
import { queryClient, sessionQuery } from '../queries.ts'
import { type NotificationSettings, readNotificationSettings } from './notification-settings.ts'
import { type NewsWords, wordsOf } from './notification-words.ts'
import type { Mark } from './stale.ts'

interface News extends NewsWords {
  /** Another notification with the same one replaces it. */
  readonly tag: string
  /** A path below `/dashboard`. */
  readonly to: string
}

/** What is there now, by id; `at` differs when it has changed. */
type Found = ReadonlyMap<string, { readonly at: string; readonly news: News }>
type Read = (settings: NotificationSettings, workspace_id: string) => Promise<Found>

const newestMax = 20

const readMessages: Read = async ({ messages }, workspace_id) => {
  if (messages === 'none') return new Map()
  const query = { view: messages === 'mine' ? ('mine' as const) : ('unread' as const), limit: newestMax }
  const { chats } = await ask('GET /w/{workspace_id}/inbox', { params: { workspace_id }, query })
  const theirs = chats.filter(
    ({ last_is_sender, unread_count }) => last_is_sender === false && unread_count > 0,
  )
  return new Map(
    theirs.map((chat) => {
      const to = `/w/${workspace_id}/inbox?${new URLSearchParams({ chat: chat.id, of: chat.account_id })}`
      const words = { plain: 'A new message', title: chat.name, body: chat.last_message_text ?? '' }
      const id = `${chat.account_id} ${chat.id}`
      return [id, { at: chat.last_message_at ?? '', news: { tag: `message ${id}`, to, ...words } }]
    }),
  )
}

const readApprovals: Read = async ({ approvals }) => {
  if (!approvals) return new Map()
  const { approvals: waiting } = await ask('GET /approvals', { query: { state: 'waiting' } })
  return new Map(
    waiting.map(({ id, key }) => {
      const words = { plain: 'An agent waits for your approval', title: 'An agent waits for your approval' }
      const to = `/mcp-approvals?request=${id}`
      return [id, { at: '', news: { tag: `approval ${id}`, to, body: key.name, ...words } }]
    }),
  )
}

const needs: Readonly<Record<string, string>> = { NEEDS_LOGIN: 'needs a login', RESTRICTED: 'is restricted' }

const readAccounts: Read = async ({ accounts }, workspace_id) => {
  if (!accounts) return new Map()
  const all = await ask('GET /w/{workspace_id}/accounts', { params: { workspace_id } })
  return new Map(
    all.accounts.flatMap(({ id, name, status }) => {
      const need = needs[status]
      if (need === undefined) return []
      const words = { plain: 'An account needs attention', title: `${name} ${need}`, body: '' }
      return [
        [id, { at: status, news: { tag: `account ${id}`, to: `/w/${workspace_id}/accounts`, ...words } }],
      ]
    }),
  )
}

const reads = { messages: readMessages, approvals: readApprovals, accounts: readAccounts } as const
type Kind = keyof typeof reads

interface Known {
  /** Until the first look everything was there before. */
  readonly since: string
  readonly seen: ReadonlyMap<string, string>
}

/** By kind, workspace and setting. The first look is only to compare with. */
const known = new Map<string, Known>()
const due = new Set<string>()
const pauseMs = 1_000

function settingsNow(): NotificationSettings | null {
  const user_id = queryClient.getQueryData(sessionQuery.queryKey)?.user.id
  if (user_id === undefined || Notification.permission !== 'granted') return null
  return readNotificationSettings(user_id)
}

/** As this tab begins to lead, or the user has changed the settings. */
export async function startNotifying(): Promise<void> {
  const workspaces = queryClient.getQueryData(sessionQuery.queryKey)?.workspaces ?? []
  await look('approvals', '', true)
  for (const { id } of workspaces) {
    await look('messages', id, true)
    await look('accounts', id, true)
  }
}

export function notifyBy(marks: readonly Mark[]): void {
  for (const { kind, workspace_id } of marks) {
    if (kind === 'approvals') lookSoon('approvals', '')
    if (workspace_id === null) continue
    if (kind === 'messages' || kind === 'everything') lookSoon('messages', workspace_id)
    if (kind === 'accounts' || kind === 'everything') lookSoon('accounts', workspace_id)
  }
}

/** At most once a second each, however many marks arrive. */
function lookSoon(kind: Kind, workspace_id: string): void {
  const place = `${kind} ${workspace_id}`
  if (due.has(place)) return
  due.add(place)
  setTimeout(() => {
    due.delete(place)
    void look(kind, workspace_id)
  }, pauseMs)
}

/** `first`: only what was never looked at. */
async function look(kind: Kind, workspace_id: string, first = false): Promise<void> {
  const settings = settingsNow()
  if (!settings) return
  const place = `${kind} ${workspace_id} ${settings[kind]}`
  if (first && known.has(place)) return
  // The next mark looks again, and so does the user.
  const found = await reads[kind](settings, workspace_id).catch(() => undefined)
  if (!found) return
  const before = known.get(place)
  const now = [...found].map(([id, { at }]) => [id, at] as const)
  // A chat leaves the list when it is read, and older ones take its place: what was seen once is not new again.
  const seen = new Map([...(kind === 'messages' ? (before?.seen ?? []) : []), ...now])
  known.set(place, { since: before?.since ?? now.map(([, at]) => at).reduce(later, ''), seen })
  if (!before) return
  for (const [id, { at, news }] of found) {
    const last = before.seen.get(id)
    if (kind === 'messages' ? (last ?? before.since) < at : last !== at) show(news, settings)
  }
}

const later = (one: string, other: string) => (one > other ? one : other)

function show({ tag, to, ...words }: News, settings: NotificationSettings): void {
  // The user looks at it already.
  if (document.hasFocus() && `${location.pathname}${location.search}` === `/dashboard${to}`) return
  const { title, body } = wordsOf(words, settings)
  try {
    const shown = new Notification(title, { body, tag, icon: '/dashboard/mark.svg' })
    shown.onclick = () => {
      window.focus()
      shown.close()
      goTo(to)
    }
  } catch {
    // Some phones show none for a page.
  }
}
