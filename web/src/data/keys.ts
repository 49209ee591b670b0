/**
 * The keys of all queries, by what they read. A key of a workspace names it second, and what is about a chat its account and
 * chat after it: so the mark of a change finds what it makes stale by the beginning (`live/stale.ts`). No other file writes a
 * key, which `test/architecture.test.ts` checks.
 */
const ofUser =
  <N extends string>(name: N) =>
  (...parts: readonly unknown[]) =>
    [name, ...parts] as const

const ofWorkspace =
  <N extends string>(name: N) =>
  (workspace_id: string, ...parts: readonly unknown[]) =>
    [name, workspace_id, ...parts] as const

export const keys = {
  // The user and the instance.
  session: ofUser('session'),
  sessions: ofUser('sessions'),
  approvals: ofUser('approvals'),
  sending: ofUser('sending'),
  gates: ofUser('gates'),
  allowlists: ofUser('allowlists'),
  instance: ofUser('instance'),
  setup: ofUser('setup'),
  ways: ofUser('ways'),
  // The workspace.
  workspace: ofWorkspace('workspace'),
  keys: ofWorkspace('keys'),
  members: ofWorkspace('members'),
  webhooks: ofWorkspace('webhooks'),
  suppressions: ofWorkspace('suppressions'),
  analytics: ofWorkspace('analytics'),
  found: ofWorkspace('found'),
  retention: ofWorkspace('retention'),
  // Accounts and people.
  accounts: ofWorkspace('accounts'),
  contacts: ofWorkspace('contacts'),
  people: ofWorkspace('people'),
  person: ofWorkspace('person'),
  // Chats. Every list of chats, and the audience of a campaign, begins with `inbox`.
  inbox: ofWorkspace('inbox'),
  counts: ofWorkspace('counts'),
  chat: ofWorkspace('chat'),
  timeline: ofWorkspace('timeline'),
  assignee: ofWorkspace('assignee'),
  saved_replies: ofWorkspace('saved_replies'),
  board: ofWorkspace('board'),
  stages: ofWorkspace('stages'),
  columns: ofWorkspace('columns'),
  // Campaigns.
  campaigns: ofWorkspace('campaigns'),
  verification: ofWorkspace('verification'),
  forecast: ofWorkspace('forecast'),
}

export type KeyName = keyof typeof keys

/** Finds every key of the name, whatever its workspace. */
export const allOf = (name: KeyName) => [name] as const
