/** What a start prints for the person at the terminal. */

import { dataDirOption } from './data-dir.ts'
import type { Demo } from './demo.ts'
import type { Role, StartedService } from './service.ts'
import { typedName } from './typed-name.ts'

interface StartFacts {
  readonly role: Role
  readonly stopping: boolean
  /** Undefined if the database is the one of DATABASE_URL. */
  readonly data_dir: string | undefined
}

/** Prints the demo's key even while stopping: only its hash is stored, so no one could ever read it again. */
export function welcome({ address, admin_address, demo, empty }: StartedService, start: StartFacts): string {
  const running = ['', `  Parley is running at ${address}`]
  if (start.role !== 'work') {
    running.push(`  Dashboard            ${address}/dashboard`, `  API reference        ${address}/docs`)
  }
  if (admin_address) running.push(`  Admin port           ${admin_address}, for this machine only`)
  if (start.data_dir === undefined) running.push('  Database             the one of DATABASE_URL')
  const lines = start.stopping ? [] : running
  if (demo) lines.push(...aboutDemo(address, demo))
  else if (empty && !start.stopping) lines.push(...aboutEmpty(address, start.data_dir))
  else if (start.role === 'start' && !start.stopping) lines.push(...aboutLost(start.data_dir))
  return lines.concat('').join('\n')
}

/** Keys and passwords are stored only as hashes, so a person who has lost one makes a new one. */
function aboutLost(data_dir: string | undefined): string[] {
  const here = dataDirOption(data_dir)
  const where = here && `, each with${here}`
  return [
    '',
    `  To replace a lost key, run \`${typedName} key create\`; for a lost password, \`${typedName} user link\`${where}.`,
    '  docs/quickstart.md, "A lost key", shows the commands.',
  ]
}

/** The printed commands act on this instance, wherever it is. */
function aboutEmpty(address: string, data_dir: string | undefined): string[] {
  const here = dataDirOption(data_dir)
  // The gates first: the service takes up to a second to notice that they are open.
  const verbs = [
    'gate enable all',
    'workspace create "Acme"',
    'user create you@acme.example --operator --workspace WORKSPACE_ID',
    'key create --workspace WORKSPACE_ID --user USER_ID --name "my app" --scopes read,write,send',
    'account create --workspace WORKSPACE_ID --name "Sales"',
  ]
  const instead = `  Or stop it and run \`${typedName} demo${here}\` instead, to try everything with made-up people.`
  return [
    '',
    '  This instance is empty, and every gate is closed. Each command needs the ids that the earlier ones print:',
    '',
    ...verbs.map((verb) => `    ${typedName} ${verb}${here}`),
    `    curl ${address}/api/v1/me -H "Authorization: Bearer API_KEY"`,
    '',
    ...(data_dir === undefined ? [] : [instead]),
    '  The account is in the sandbox: with PARLEY_SANDBOX_CONTROL=on you can create people there (docs/operating.md).',
    `  \`${typedName} --help\` lists all verbs.`,
  ]
}

function aboutDemo(address: string, { key, setup_link }: Demo): string[] {
  return [
    '',
    '  This is a demo workspace: two sandbox accounts and forty people who exist nowhere else.',
    '  Every gate was opened for it. Start with --no-demo for an empty instance with every gate closed.',
    '',
    '  Its API key may read, write, send and run campaigns. It is shown only now:',
    '',
    `    ${key}`,
    '',
    '  To sign in to the dashboard, open this link and choose a password. It works once, within 7 days:',
    '',
    `    ${setup_link}`,
    '',
    '  Try it:',
    '',
    `    curl ${address}/api/v1/me -H "Authorization: Bearer ${key}"`,
  ]
}
