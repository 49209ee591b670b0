/** What the command line adds to a capability's error: the verb or the options that help. */
import { ApiError } from '../lib/errors.ts'

/** Keyed by the kind of thing that was not found. */
const hints: Readonly<Record<string, string>> = {
  workspace: '`parley workspace list` names them.',
  user: '`parley user list` names them.',
  member: '`parley user list` tells who belongs where.',
  key: '`parley key list --workspace ID` names them.',
  account: '`parley account list --workspace ID` names them.',
  campaign: '`parley campaign list` names them.',
  operation: '`parley operation list` names them.',
  stage: '`parley stage list --workspace ID` names them.',
  column: '`parley column list --workspace ID` names them.',
  option: '`parley column list --workspace ID` names them.',
  identity: 'The options are --platform-id, --username and --phone.',
}

/** The sentence of a refusal as the terminal shows it. */
export function sentenceOf(error: Error): string {
  const hint = error instanceof ApiError && error.missing !== undefined ? hints[error.missing] : undefined
  return hint === undefined ? error.message : `${error.message} ${hint}`
}
