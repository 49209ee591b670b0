/** What the command line adds to a capability's error: the verb or the options that help. */
import { ApiError } from '../lib/errors.ts'

/** Keyed by the kind of thing that was not found. */
const hints: Readonly<Record<string, string>> = {
  workspace: '`parley workspace list` lists the workspaces.',
  user: '`parley user list` lists the users.',
  member: '`parley user list` lists the users and their workspaces.',
  key: '`parley key list --workspace ID` lists the keys.',
  account: '`parley account list --workspace ID` lists the accounts.',
  campaign: '`parley campaign list` lists the campaigns.',
  operation: '`parley operation list` lists the operations.',
  person: '`parley person find NAME --workspace ID` finds people.',
  stage: '`parley stage list --workspace ID` lists the stages.',
  column: '`parley column list --workspace ID` lists the columns and options.',
  option: '`parley column list --workspace ID` lists the columns and options.',
  identity: 'The options are --platform-id, --username and --phone.',
}

/** The sentence of a refusal as the terminal shows it. */
export function sentenceOf(error: Error): string {
  const hint = error instanceof ApiError && error.missing !== undefined ? hints[error.missing] : undefined
  return hint === undefined ? error.message : `${error.message} ${hint}`
}
