/** Marks on their way: gathered, equal ones once, and in notifications that PostgreSQL accepts. */
import type { Mark } from '../mark.ts'

/** Beyond this, reading everything again costs less than the marks. */
const workspaceMarksMax = 100
/** PostgreSQL refuses a payload of 8,000 bytes. */
const payloadBytesMax = 7_999

export class MarkBatch {
  readonly #workspaces = new Map<string | null, Map<string, Mark>>()

  add(mark: Mark): void {
    const { workspace_id, kind, account_id = '', chat_id = '', user_id = '' } = mark
    const marks = this.#workspaces.get(workspace_id) ?? new Map<string, Mark>()
    this.#workspaces.set(workspace_id, marks)
    if (marks.has(everything)) return
    // Without the state: of one user's presence the last state counts.
    marks.set(kind === 'everything' ? everything : `${kind} ${account_id} ${chat_id} ${user_id}`, mark)
    if (marks.size <= workspaceMarksMax && kind !== 'everything') return // guard: many marks become one
    marks.clear()
    marks.set(everything, { workspace_id, kind: 'everything' })
  }

  /** Returns what it holds, and forgets it. */
  take(): Mark[] {
    const marks = [...this.#workspaces.values()].flatMap((each) => [...each.values()])
    this.#workspaces.clear()
    return marks
  }
}

const everything = 'everything'

/** As many payloads as it takes, each below PostgreSQL's limit. */
export function toNotifications(origin: string, marks: readonly Mark[]): string[] {
  const frame = Buffer.byteLength(payloadOf(origin, []))
  const payloads: string[] = []
  let texts: string[] = []
  let bytes = frame
  for (const mark of marks) {
    const text = JSON.stringify(mark)
    const size = Buffer.byteLength(text) + 1
    // guard: below the limit of a notification
    if (bytes + size > payloadBytesMax && texts.length > 0) {
      payloads.push(payloadOf(origin, texts))
      texts = []
      bytes = frame
    }
    texts.push(text)
    bytes += size
  }
  return texts.length === 0 ? payloads : [...payloads, payloadOf(origin, texts)]
}

function payloadOf(origin: string, texts: readonly string[]): string {
  return `{"origin":"${origin}","marks":[${texts.join(',')}]}`
}

/** Only our own processes send on the channel, perhaps of another version. */
export function readNotification(payload: string): { origin: string; marks: readonly Mark[] } {
  try {
    return JSON.parse(payload)
  } catch {
    return { origin: '', marks: [] }
  }
}
