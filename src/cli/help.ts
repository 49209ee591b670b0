/** What `--help` adds to the descriptions of the verbs: what each argument is, and which options are required. */
import type { Command, HelpConfiguration, Option } from 'commander'
import { gates } from '../contract.ts'

const listed = (what: string, verb: string) => `${what}, as \`parley ${verb}\` lists it`

export const workspaceHelp = listed('id of the workspace (a UUID)', 'workspace list')

export const platformHelp =
  "also compare with the platform through the accounts' sessions; names accounts that could not be read"

/** Keyed by noun and argument, or by the argument alone. */
const argumentHelp: Readonly<Record<string, string>> = {
  'workspace id': workspaceHelp,
  'workspace name': 'name of the workspace, such as "Acme"',
  'user id': listed('id of the user (a UUID)', 'user list'),
  'key id': listed('id of the key (a UUID), not the key itself', 'key list'),
  'account id': listed('id of the account (acc_…)', 'account list'),
  'campaign id': listed('id of the campaign (a UUID)', 'campaign list'),
  'operation id': listed('id of the operation (a UUID)', 'operation list'),
  'column id': listed('id of the column (a UUID)', 'column list'),
  'webhook id': listed('id of the webhook (a UUID)', 'webhook list'),
  'webhook url': 'an HTTPS address on the public internet',
  'webhook delivery': listed('id of the delivery (a UUID)', 'webhook deliveries'),
  'find name': 'a name, @username, phone number with the country code, link or id',
  'person id': listed('id of the person (a UUID)', 'person find'),
  'stage key': listed('key of the stage', 'stage list'),
  'option column': listed('id of the column (a UUID)', 'column list'),
  'option value': 'the option as people see it',
  'import file': 'a CSV file with a heading line: username, phone, platform_id',
  'export file': 'the file to write; `suppress export` prints to the terminal by default',
  'backup file': 'a new file; an existing file is never overwritten',
  'restore file': 'a file written by `parley backup`',
  email: 'the address that the user signs in with',
  names: `one or more of ${gates.join(', ')}; or all`,
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
