/** Who has a chat open or is typing in it: in memory only, for 30 s. Marks carry it to other processes. */
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { sql } from '../../db/sql.ts'
import type { ChatId } from '../../lib/shapes.ts'
import type { Mark, PresenceState } from '../../mark.ts'
import { memberName } from '../chats/chats.ts'

/** A page that stays open repeats its request before that. */
const keptMs = 30_000

interface Place {
  readonly workspace_id: string
  readonly account_id: string
  readonly chat_id: ChatId
}

interface Visit {
  readonly state: 'open' | 'typing'
  /** On the monotonic clock. */
  readonly until: number
}

interface PresentUser {
  readonly user_id: string
  readonly name: string
  readonly state: 'open' | 'typing'
}

export class Presence {
  readonly #app: App
  /** By chat, then by user. */
  readonly #chats = new Map<string, Map<string, Visit>>()

  constructor(app: App) {
    this.#app = app
    const off = app.wake.onMarks((marks) => {
      for (const mark of marks) if (mark.kind === 'presence') this.#note(mark)
    })
    const forget = setInterval(() => this.#forget(), keptMs).unref()
    app.stopping.addEventListener('abort', () => {
      off()
      clearInterval(forget)
    })
  }

  /** Stores where the user is, and returns who else is there. */
  async visit({ user_id }: Caller, place: Place, state: PresenceState): Promise<PresentUser[]> {
    const mark: Mark = { ...place, kind: 'presence', user_id, state }
    this.#note(mark)
    this.#app.wake.mark(mark)
    return this.#listOthers(user_id, place)
  }

  #note({ workspace_id, account_id, chat_id, user_id, state }: Mark): void {
    if (user_id === undefined || state === undefined) return
    const key = keyOf({ workspace_id, account_id, chat_id })
    const visits = this.#chats.get(key) ?? new Map<string, Visit>()
    if (state === 'gone') visits.delete(user_id)
    else visits.set(user_id, { state, until: this.#app.sources.now() + keptMs })
    if (visits.size > 0) this.#chats.set(key, visits)
    else this.#chats.delete(key)
  }

  async #listOthers(user_id: string, place: Place): Promise<PresentUser[]> {
    const now = this.#app.sources.now()
    const visits = [...(this.#chats.get(keyOf(place)) ?? [])].filter(
      ([id, { until }]) => id !== user_id && until > now, // guard: presence ends
    )
    if (visits.length === 0) return []
    const names = await this.#app.db.rows<{ user_id: string; name: string }>(sql`
      select u.id as user_id, ${memberName} as name from users u
      join memberships m on m.user_id = u.id and m.workspace_id = ${place.workspace_id} and m.ended_at is null
      where u.id = any(${visits.map(([id]) => id)}::uuid[]) order by name, u.id`)
    const states = new Map(visits)
    return names.flatMap((each) => {
      const state = states.get(each.user_id)?.state
      return state ? [{ ...each, state }] : []
    })
  }

  #forget(): void {
    const now = this.#app.sources.now()
    for (const [key, visits] of this.#chats) {
      for (const [user_id, { until }] of visits) if (until <= now) visits.delete(user_id)
      if (visits.size === 0) this.#chats.delete(key)
    }
  }
}

function keyOf({ workspace_id, account_id, chat_id }: Pick<Mark, 'workspace_id' | 'account_id' | 'chat_id'>) {
  return `${workspace_id} ${account_id} ${chat_id}`
}
