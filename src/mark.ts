/**
 * What a mark is: the news that something of a workspace has changed, for pages that show it. It says where, never what: no
 * text, no name. Pages that got none in time read again by themselves, so a lost mark only costs time.
 */

/** What changed, for both sides: `npm run generated` writes the list for the browser. */
export const markKinds = [
  'chats',
  'messages',
  'operations',
  'notes',
  'assignees',
  'pipeline',
  'columns',
  'saved_replies',
  'accounts',
  'campaigns',
  'suppressions',
  'people',
  'approvals',
  'keys',
  'members',
  'webhooks',
  'gates',
  'workspace',
  'instance',
  'sessions',
  'presence',
  'everything',
] as const
export type MarkKind = (typeof markKinds)[number]

/** What belongs to one user, and which only this user's streams carry. */
const ofOneUser: ReadonlySet<MarkKind> = new Set(['approvals', 'sessions'])

export const presenceStates = ['open', 'typing', 'gone'] as const
export type PresenceState = (typeof presenceStates)[number]

export interface Mark {
  readonly kind: MarkKind
  /** Null: the whole instance. */
  readonly workspace_id: string | null
  readonly account_id?: string | undefined
  /** As on the wire: `platform:chat:42`. */
  readonly chat_id?: string | undefined
  /** For `approvals` and `sessions`, their owner: no other user gets the mark. For `presence`, the user who is there. */
  readonly user_id?: string | undefined
  readonly state?: PresenceState | undefined
}

/** Whether only the named user may get it. */
export function isPrivate({ kind }: Pick<Mark, 'kind'>): boolean {
  return ofOneUser.has(kind)
}
