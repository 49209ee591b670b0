/** What `--help` adds to the descriptions of the verbs: what each argument is, and which options are required. */
import type { Command, HelpConfiguration, Option } from 'commander'
import { gates } from '../contract.ts'

const listed = (what: string, verb: string) => `${what}, as \`parley ${verb}\` lists it`

export const workspaceHelp = listed('id of the workspace (a UUID)', 'workspace list')

export const platformHelp =
  "ask the accounts' sessions what the platform has; an account that cannot be asked is named"

/** Keyed by noun and argument, or by the argument alone. */
const argumentHelp: Readonly<Record<string, string>> = {
  'workspace id': workspaceHelp,
  'workspace name': 'what people call it, such as "Acme"',
  'user id': listed('id of the user (a UUID)', 'user list'),
  'key id': listed('id of the key (a UUID), not the key itself', 'key list'),
  'account id': listed('id of the account (acc_…)', 'account list'),
  'campaign id': listed('id of the campaign (a UUID)', 'campaign list'),
  'operation id': listed('id of the operation (a UUID)', 'operation list'),
  'column id': listed('id of the column (a UUID)', 'column list'),
  'webhook id': listed('id of the webhook (a UUID)', 'webhook list'),
  'webhook url': 'an HTTPS address on the public internet',
  'webhook delivery': listed('id of the delivery (a UUID)', 'webhook deliveries'),
  'stage key': listed('key of the stage', 'stage list'),
  'option column': listed('id of the column (a UUID)', 'column list'),
  'option value': 'the option as people see it',
  'import file': 'a CSV file with a heading line: username, phone, platform_id',
  'export file': 'where it is written; without it, to the terminal',
  'backup file': 'a new file; one that is there is never overwritten',
  'restore file': 'what `parley backup` has written',
  email: 'the address that the user signs in with',
  names: `one or several of ${gates.join(', ')}; all`,
}

/** Gives every argument of a verb its description. */
export function describeArguments(command: Command): Command {
  const noun = command.parent?.name() ?? ''
  for (const argument of command.registeredArguments) {
    const own = argumentHelp[`${command.name()} ${argument.name()}`]
    argument.description ||=
      own ?? argumentHelp[`${noun} ${argument.name()}`] ?? argumentHelp[argument.name()] ?? ''
  }
  return command
}

/** Commander does not mark which options are required, so we do. */
export const helpStyle: HelpConfiguration = {
  showGlobalOptions: true,
  optionDescription(option: Option): string {
    const facts = [
      ...(option.mandatory ? ['required'] : []),
      ...(option.argChoices ? [`one of ${option.argChoices.join(', ')}`] : []),
      ...(isWorthTelling(option) ? [`default: ${option.defaultValue}`] : []),
    ]
    return facts.length === 0 ? option.description : `${option.description} (${facts.join('; ')})`
  },
}

function isWorthTelling({ defaultValue, negate }: Option): boolean {
  return defaultValue !== undefined && defaultValue !== false && !negate
}
