/**
 * What is being sent: a message, or the request of a form. Its exact request stays in this browser from before it leaves until its
 * outcome is known, so that a reload, a second tab or a lost answer repeats the same request and does nothing twice.
 */
import { notify, read, readUnderway, update } from './browser-store.ts'
import { readSent, removeJournal, writeJournal } from './journal.ts'
import { changeKept } from './kept.ts'
import { idOf, type Kept, keyOf, type Place, type Underway } from './records.ts'

/** What was sent, or an earlier state of it: not what was typed after. */
const isSent = (kept: Kept | undefined, { draft, count }: Underway) =>
  kept?.draft === draft && kept.count <= count

function requestOf({ value: _, begun_at: __, ...kept }: Kept, body: unknown): Underway {
  const files = kept.kind === 'chat' ? kept.files : []
  return { ...kept, files, body, part: 0, at: new Date().toISOString() }
}

/** Turns a draft into what is being sent, before the request. What another tab has typed since stays a draft. */
export async function beginMessage(kept: Kept<string>): Promise<Underway> {
  const sent = requestOf(kept, kept.value)
  const id = idOf(kept)
  // guard: a message sent at the end of the page
  if (sent.files.length === 0) writeJournal('underway', sent.key, sent)
  else writeJournal('kept', id, kept)
  const { stored } = await update({ kept: id, underway: sent.key }, ({ kept: before }) => ({
    kept: isSent(before, sent) ? undefined : before, // guard: what was sent never comes back
    underway: sent, // guard: key stored before the request
  }))
  if (stored) removeJournal('underway', sent.key)
  removeJournal('kept', id, kept.count)
  notify(id)
  return sent
}

/** The next message of what was sent at once; undefined after the last. */
export function nextMessage({ files, part, ...sent }: Underway): Underway | undefined {
  return files.length > 1 ? { ...sent, body: '', files: files.slice(1), part: part + 1 } : undefined
}

/** One of several messages is over. What is to be sent next, unless another tab knows more. */
export async function advanceMessage(next: Underway): Promise<Underway | undefined> {
  const { underway } = await update({ underway: next.key }, ({ underway: before }) => ({
    underway: before && before.part < next.part ? next : before, // guard: a message that is over is not sent again
  }))
  notify(idOf(next))
  return underway
}

/**
 * The outcome is known. `back`: nothing was sent, so the text returns to its place unless something newer is there; files that
 * were not sent join it.
 */
export async function endMessage(sent: Underway, back?: { readonly key: string }): Promise<void> {
  const id = idOf(sent)
  removeJournal('underway', sent.key)
  await update({ kept: id, underway: sent.key }, ({ kept: before }) => ({
    kept: before ? withFiles(before, back ? sent.files : []) : back && { ...keptOf(sent), ...back },
    underway: undefined,
  }))
  notify(id)
}

function withFiles(kept: Kept, files: readonly File[]): Kept {
  return files.length === 0 ? kept : changeKept(kept, { files: [...files, ...kept.files] }) // guard: a newer text keeps no file from coming back
}

function keptOf({ at, body, part: _, ...sent }: Underway): Kept {
  return { ...sent, value: body, begun_at: at }
}

/** What this user is sending to chats, oldest first, with what a page was left with before the store had it. */
export async function listMessages(user_id: string): Promise<Underway[]> {
  for (const sent of readSent(user_id)) {
    const { stored } = await update({ kept: idOf(sent), underway: sent.key }, ({ kept, underway }) => ({
      kept: isSent(kept, sent) ? undefined : kept,
      underway: underway ?? sent,
    }))
    if (!stored) continue
    removeJournal('underway', sent.key)
    notify(idOf(sent)) // guard: a composer lets go of what is sent
  }
  const all = await readUnderway()
  return all
    .filter((each) => each.user_id === user_id && each.kind === 'chat')
    .toSorted((a, b) => a.at.localeCompare(b.at))
}

/** Stores the request before it leaves. Of two tabs that start the same form, both send the request of the first. */
export async function beginForm(kept: Kept, body: unknown): Promise<Underway> {
  const request = requestOf(kept, body)
  const id = idOf(kept)
  const { underway = request } = await update({ kept: id, underway: id }, (before) => {
    if (before.underway) return before // guard: one request of a form at a time
    return {
      kept,
      underway: request, // guard: request of a form stored before it leaves
    }
  })
  notify(id)
  return underway
}

export async function readForm(place: Place): Promise<Underway | undefined> {
  return read('underway', idOf(place))
}

/**
 * The request is over. `back`: the user goes on writing, with a new key; with the request's own if it may have succeeded:
 * started unchanged, it is still the same request.
 */
export async function endForm(sent: Underway, back?: { readonly key: string }): Promise<void> {
  const id = idOf(sent)
  await update({ kept: id, underway: id }, ({ kept: before }) => ({
    kept: back && before ? { ...changeKept(before, {}), ...back } : undefined,
    underway: undefined,
  }))
  if (!back) removeJournal('kept', id)
  notify(id)
}

/** What the store has of this request: another tab may be further. */
export async function readAgain(sent: Underway): Promise<Underway | undefined> {
  const found = await read('underway', keyOf(sent))
  return found?.key === sent.key ? found : undefined
}

/** Whether the outcome of this request is still unknown, in any tab. */
export async function isUnderway(sent: Underway): Promise<boolean> {
  return (await readAgain(sent))?.part === sent.part
}
