/**
 * What is typed and not stored yet, written at once when the page is being left (localStorage): Chromium drops a transaction
 * that has not begun, and one that another tab holds open may last. Texts only. Of journal and store the newer one counts.
 */
import { idOf, type Kept, type Underway } from './records.ts'

const prefixes = { kept: 'parley.kept ', underway: 'parley.underway ' } as const
type Kind = keyof typeof prefixes

interface Entry {
  readonly user_id: string
  readonly count: number
}

/** Files do not fit: they stay where the store has them. */
const noFiles = (name: string, value: unknown) => (name === 'files' ? undefined : value)

/** Whether it is written: a full browser writes nothing, and what the store has stays as it is. */
export function writeJournal(kind: Kind, key: string, record: Kept | Underway): boolean {
  const name = prefixes[kind] + key
  const before = parse(get(name))
  if (before && before.count > record.count) return true
  try {
    localStorage.setItem(name, JSON.stringify(record, noFiles))
    return true
  } catch {
    return false // guard: a full journal says so
  }
}

/** The clock of the counts may be set back; one that is days ahead was not counted here. */
const aheadMsMax = 86_400_000 * 7

function parse(text: string | null): (Entry & Record<string, unknown>) | undefined {
  try {
    const entry = JSON.parse(text ?? '') as Record<string, unknown>
    const { user_id, workspace_id, kind, of, key, draft, count } = entry
    const named = [user_id, workspace_id, kind, of, key, draft].every((each) => typeof each === 'string')
    // guard: a broken journal is ignored
    if (!named || !Number.isSafeInteger(count) || Number(count) > Date.now() + aheadMsMax) return undefined
    return entry as unknown as Entry & Record<string, unknown>
  } catch {
    return undefined
  }
}

function get(key: string): string | null {
  try {
    return localStorage.getItem(key)
  } catch {
    return null
  }
}

/** What was typed at this place, without its files. */
export function readJournal(id: string): Omit<Kept, 'files'> | undefined {
  const entry = parse(get(prefixes.kept + id))
  if (!entry || !('value' in entry)) return undefined
  const isHere = idOf(entry as unknown as Kept) === id
  return isHere && typeof entry.begun_at === 'string' ? (entry as unknown as Kept) : undefined
}

/** The messages whose sending the page was left before the store had them. */
export function readSent(user_id: string): Underway[] {
  return names(prefixes.underway).flatMap((name) => {
    const entry = parse(get(name))
    const isMessage = entry?.kind === 'chat' && typeof entry.body === 'string' && typeof entry.at === 'string'
    return isMessage && entry.user_id === user_id
      ? [{ ...entry, files: [], part: 0 } as unknown as Underway]
      : []
  })
}

/** The store has it, or something newer. */
export function removeJournal(kind: Kind, key: string, until = Number.POSITIVE_INFINITY): void {
  const name = prefixes[kind] + key
  const text = get(name)
  if (text === null) return
  const entry = parse(text)
  if (!entry || entry.count <= until) localStorage.removeItem(name)
}

/** At sign-out, and when another user signs in. */
export function emptyJournal(isTheirs: (user_id: string) => boolean): void {
  for (const name of Object.values(prefixes).flatMap(names)) {
    const entry = parse(get(name))
    if (!entry || isTheirs(entry.user_id)) localStorage.removeItem(name) // guard: sign out empties the journal
  }
}

function names(prefix: string): string[] {
  try {
    return Array.from({ length: localStorage.length }, (_, at) => localStorage.key(at) ?? '').filter((name) =>
      name.startsWith(prefix),
    )
  } catch {
    return []
  }
}
