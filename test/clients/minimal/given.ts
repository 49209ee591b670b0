/** What the minimal bodies name, and one call for each operation that takes a JSON body. Each generator has its own set of calls. */
export interface Given {
  readonly base_url: string
  readonly key: string
  readonly account_id: string
  readonly chat_id: string
  /** Another chat, whose person has not asked to get no more messages. */
  readonly recipient: string
  readonly username: string
  readonly stage_key: string
  readonly column_id: string
  readonly column_value: string
  readonly webhook_id: string
  /** Somebody to erase, as a preview has just shown them. */
  readonly findErasable: () => Promise<{ readonly person_id: string; readonly preview: string }>
  /** A new key for each change. */
  readonly newKey: () => string
}

/** Returns the status of the answer. */
export type Call = (given: Given) => Promise<number>
export type Calls = Readonly<Record<string, Call>>
