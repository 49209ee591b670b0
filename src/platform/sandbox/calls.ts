/** The calls of a session to the sandbox, whichever link carries them. */
import { z } from 'zod'
import type { ChatNumber } from '../../lib/shapes.ts'
import type {
  AskedPerson,
  Chat,
  ChatPage,
  FileInfo,
  Message,
  Outcome,
  Person,
  Sent,
  UpdateBatch,
} from '../port.ts'

const number64 = z.string().regex(/^-?\d{1,19}$/)
const chat_id = number64.transform((digits) => digits as ChatNumber)
const name = z.string().max(1000)

const attachment = z.strictObject({
  file_name: name,
  media_type: name,
  size: z.int().nonnegative(),
})

/** Bytes of one chunk of an upload. A socket carries them as text, and V8 frees long strings late. */
export const chunkBytesMax = 48 * 1024

/** Bytes of one part of a download: a whole number of them is a chunk of the port. */
export const partBytes = 64 * 1024

export const callParams = {
  ping: z.strictObject({}),
  resolve: z.strictObject({ kind: z.enum(['username', 'phone', 'id']), value: name }),
  ask_person: z.strictObject({
    person_id: number64,
    identifier: z.strictObject({ kind: z.enum(['username', 'phone', 'id']), value: name }),
  }),
  open_chat: z.strictObject({ person_id: number64 }),
  upload_begin: attachment,
  upload_chunk: z.strictObject({
    handle: name,
    data: z
      .base64()
      .max(chunkBytesMax * 2)
      .transform(decode),
  }),
  upload_end: z.strictObject({ handle: name }),
  send: z.strictObject({
    chat_id,
    text: z.string(),
    handle: name.nullable(),
    random_id: z.string().max(40),
  }),
  history: z.strictObject({
    chat_id,
    before: z.strictObject({ message_id: number64 }).nullable(),
    limit: z.int().min(1).max(1000),
  }),
  chats: z.strictObject({ after: z.string().max(100).nullable(), limit: z.int().min(1).max(1000) }),
  contacts: z.strictObject({}),
  read_state: z.strictObject({ chat_id, unread: z.boolean(), up_to_message_id: number64.optional() }),
  file_part: z.strictObject({
    chat_id,
    message_id: number64,
    index: z.int().nonnegative(),
    offset: z.int().nonnegative(),
  }),
} as const

function decode(text: string): Uint8Array {
  return Buffer.from(text, 'base64')
}

export type Method = keyof typeof callParams
export type Params<M extends Method> = z.infer<(typeof callParams)[M]>

export function parseParams<M extends Method>(method: M, given: unknown): Params<M> | undefined {
  const { data } = callParams[method].safeParse(given)
  return data as Params<M> | undefined
}

interface Results {
  readonly ping: null
  readonly resolve: Person
  readonly ask_person: AskedPerson | null
  readonly open_chat: Chat
  readonly upload_begin: { readonly handle: string }
  readonly upload_chunk: null
  readonly upload_end: FileInfo
  readonly send: Sent
  readonly history: readonly Message[]
  readonly chats: ChatPage
  readonly contacts: readonly Person[]
  readonly read_state: { readonly unread_count: number }
  /** The size of the whole file, and up to `partBytes` of it in base64. */
  readonly file_part: { readonly size: number; readonly data: string }
}
export type Result<M extends Method> = Results[M]

export const hello = z.strictObject({
  account_id: z.string().min(1).max(200),
  name,
  position: z.string().max(40).nullable(),
})
export type Hello = z.infer<typeof hello>

/** What the platform sends without a request. */
export interface LinkEvents {
  /** Resolves when the client has taken the batch; the next one waits for it. */
  updates(batch: UpdateBatch): Promise<void>
  lost(reason: string): void
}

/** One open connection of one account. */
export interface Wire {
  call<M extends Method>(method: M, params: Params<M>): Promise<Outcome<Result<M>>>
  close(): Promise<void>
}

export interface Opened {
  readonly wire: Wire
  readonly self: Person
}

export interface Link {
  /** Gives up, and leaves nothing open, when the signal aborts. */
  connect(greeting: Hello, events: LinkEvents, signal: AbortSignal): Promise<Outcome<Opened>>
}

/** The calls that wait for an answer. When the connection is lost, all of them end as `unknown`. */
export class PendingCalls {
  readonly #waiting = new Map<number, (outcome: Outcome<never>) => void>()
  #last = 0

  /** `start` gets the number of the call; the answer comes through `settle`. */
  add<T>(start: (id: number) => void): Promise<Outcome<T>> {
    const id = ++this.#last
    return new Promise((resolve) => {
      this.#waiting.set(id, resolve as (outcome: Outcome<never>) => void)
      start(id)
    })
  }

  /** False if no call waits for it. The only place where an answer is cast to the type of its call. */
  settle(id: number, outcome: Outcome<unknown>): boolean {
    const resolve = this.#waiting.get(id)
    this.#waiting.delete(id)
    resolve?.(outcome as Outcome<never>)
    return resolve !== undefined
  }

  lose(reason: string): void {
    const waiting = [...this.#waiting.values()]
    this.#waiting.clear()
    for (const resolve of waiting) resolve({ kind: 'unknown', reason })
  }
}
