/** Generates docs/cli.md and docs/configuration.md from the verbs and the variables. */
import type { EventEmitter } from 'node:events'
import type { Argument, Command, Option } from 'commander'
import { helpStyle } from './help.ts'

const generatedNote = '<!-- Written by `npm run generated`. Do not edit it here. -->'

const cliIntroduction = `# The command line

${generatedNote}

Run \`bin/parley.js\` inside the repository, or \`parley\` if you have installed an archive ([scaling.md](scaling.md#files-to-start-from)).
\`bin/parley.js --help\` lists the verbs, \`--help\` after a verb explains it, and \`bin/parley.js --version\` prints the version.

- Verbs act on \`DATABASE_URL\`, or on the embedded database in \`--data-dir\`, whether the service is running or not.
- If \`--data-dir\` has no database yet, only \`start\`, \`serve\`, \`work\`, \`migrate\`, \`demo\`, \`restore\`, \`workspace create\`,
  \`gate enable\`, \`gate disable\` and \`dispatch off\` create one. Every other verb refuses.
- Verbs that return something take \`--json\` and then print exactly one JSON document.
- Exit codes: 0 done, 1 refused with a sentence, 2 wrong usage.
- \`events\`, \`webhook\` and \`mcp\` call the API as a client does. They read \`PARLEY_API_KEY\` and \`PARLEY_BASE_URL\`.

Create a second tenant, for example. Each line prints the id that the next one needs:

\`\`\`sh
bin/parley.js workspace create "Acme" --timezone Europe/Berlin
bin/parley.js user create ana@acme.example --workspace WORKSPACE_ID
bin/parley.js key create --workspace WORKSPACE_ID --user USER_ID --name "crm sync" --scopes read,write
\`\`\`
`

export function makeCliPage(program: Command): string {
  const words = program.commands.filter((command) => !isHidden(command))
  const contents = words.map((word) => `[${word.name()}](#${word.name()})`).join(' · ')
  const sections = words.map((word) => [`## ${word.name()}`, sentence(word.description()), ...verbsOf(word)])
  return `${[cliIntroduction.trimEnd(), contents, ...sections.flat()].join('\n\n')}\n`
}

/** The verbs at or below a word. A word that has verbs below it does nothing by itself. */
function verbsOf(command: Command): string[] {
  if (command.commands.length === 0) return describeVerb(command)
  return command.commands.flatMap((below) => {
    if (below.commands.length > 0) return verbsOf(below)
    return [`### ${pathOf(below)}`, sentence(below.description()), ...describeVerb(below)]
  })
}

function describeVerb(command: Command): string[] {
  const args = command.registeredArguments.map((argument) => row(usageOf(argument), argument.description))
  const options = command.options.map((option) => row(option.flags, describeOption(option)))
  const rows = [...args, ...options]
  const table = rows.length === 0 ? [] : [['| | |', '|---|---|', ...rows].join('\n')]
  return [`\`parley ${pathOf(command)} ${command.usage()}\``, ...table, ...textAfter(command)]
}

/** What `--help` adds below the options. Commander's types hide that a command is an event emitter. */
function textAfter(command: Command): string[] {
  let text = ''
  const write = (more: string) => {
    text += more
  }
  const emitter = command as Command & EventEmitter
  emitter.emit('afterHelp', { error: false, command, write })
  return text.trim() === '' ? [] : [`\`\`\`text\n${text.trim()}\n\`\`\``]
}

function describeOption(option: Option): string {
  return helpStyle.optionDescription?.(option) ?? option.description
}

function usageOf(argument: Argument): string {
  const name = `${argument.name()}${argument.variadic ? '...' : ''}`
  return argument.required ? `<${name}>` : `[${name}]`
}

function pathOf(command: Command): string {
  const above = command.parent
  return above?.parent ? `${pathOf(above)} ${command.name()}` : command.name()
}

/** Commander has no public property for it. */
function isHidden(command: Command): boolean {
  return '_hidden' in command && command._hidden === true
}

function row(name: string, text: string): string {
  return `| \`${name}\` | ${cell(text)} |`
}

function cell(text: string): string {
  return text.replaceAll('|', '\\|').replaceAll('\n', ' ')
}

function sentence(text: string): string {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}.`
}

const configurationIntroduction = `# Configuration

${generatedNote}

Configuration is the environment. Every variable has a default or may be left out, and an empty value counts as left out.
An unknown variable that starts with \`PARLEY_\`, an invalid value or a contradiction stops the start, and the message names
all faults at once.

Parley does not read a \`.env\` file by itself; Node (20.6 or newer) does when you ask it to. Stop a service that has the port,
copy [.env.example](../.env.example), fill in what you need, and start:

\`\`\`sh
cp .env.example .env
node --env-file=.env bin/parley.js start
\`\`\`

\`serve\` in place of \`start\` answers requests and leaves the accounts to a worker; on the embedded database, \`start\` does both.
[sign-in.md](sign-in.md) explains how people sign in: set-up links, roles, and an identity provider (\`PARLEY_OIDC_…\`).

| variable | default | |
|---|---|---|
`

/** Made from the texts of `.env.example`, which a test compares with the variables, and the defaults in the code. */
export function makeConfigurationPage(
  example: string,
  defaults: Readonly<Record<string, string | undefined>>,
): string {
  const rows: string[] = []
  let text: string[] = []
  let named = false
  for (const line of example.split('\n')) {
    const [, name] = /^#([A-Z_]+)=/.exec(line) ?? []
    if (name) {
      rows.push(`| \`${name}\` | ${codeOf(defaults[name])} | ${named ? 'see above' : cell(text.join(' '))} |`)
      named = true
    } else {
      // A new paragraph, or a new comment directly below the previous variables.
      if (named || line === '') text = []
      named = false
      if (line.startsWith('# ')) text.push(line.slice(2))
    }
  }
  return `${configurationIntroduction}${rows.join('\n')}\n`
}

function codeOf(value: string | undefined): string {
  return value ? `\`${value}\`` : ''
}
