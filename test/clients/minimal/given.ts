/** What the minimal bodies name, and one call for each operation that takes a JSON body. Each generator has its own set of calls. */
export interface Given {
  readonly base_url: string
  readonly key: string
  readonly account_id: string
  readonly chat_id: string
  /** Another chat, whose person has not asked to get no more messages. */
  readonly recipient: string
  readonly username: string
  /** The username of somebody whom no account knows. */
  readonly stranger: string
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
/** By operation; `forms` has the operations whose body has a second minimal form. */
export type Calls = Readonly<Record<string, Call>>

/** A body with one of two properties, by its call: the operation that it is for. */
export const forms: Readonly<Record<string, string>> = {
  'create_campaign of contacts': 'create_campaign',
  'preview_campaign of contacts': 'preview_campaign',
}
