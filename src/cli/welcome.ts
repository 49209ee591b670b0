/** What a start prints for the person at the terminal. */

import { dataDirOption } from './data-dir.ts'
import type { Demo } from './demo.ts'
import type { Role, StartedService } from './service.ts'

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
    `  A lost key is replaced by \`npx parley key create\`, a lost password by \`npx parley user link\`${where};`,
    '  docs/quickstart.md, "A lost key", has the lines.',
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
  const instead = `  Or instead of these lines: stop it and say \`npx parley demo${here}\`, for made-up people to try everything with.`
  return [
    '',
    '  This instance is empty, and every gate is closed. Each line takes the ids that those above it have printed:',
    '',
    ...verbs.map((verb) => `    npx parley ${verb}${here}`),
    `    curl ${address}/api/v1/me -H "Authorization: Bearer API_KEY"`,
    '',
    ...(data_dir === undefined ? [] : [instead]),
    '  The account is one of the sandbox: PARLEY_SANDBOX_CONTROL=on lets you make people there (docs/operating.md).',
    '  `npx parley --help` names every verb.',
  ]
}

function aboutDemo(address: string, { key, setup_link }: Demo): string[] {
  return [
    '',
    '  This is a demo workspace: two sandbox accounts and forty people who exist nowhere else.',
    '  Every gate was opened for it. Start with --no-demo for an empty instance with every gate closed.',
    '',
    '  Its API key has all scopes. It is shown this once:',
    '',
    `    ${key}`,
    '',
    '  Sign in to the dashboard: behind this link you choose a password. It works once, within 7 days:',
    '',
    `    ${setup_link}`,
    '',
    '  Try it:',
    '',
    `    curl ${address}/api/v1/me -H "Authorization: Bearer ${key}"`,
  ]
}
