/** What a start says to the person in front of it. */

import { dataDirOption } from './data-dir.ts'
import type { Demo } from './demo.ts'
import type { Begun, Role } from './service.ts'

interface Told {
  readonly role: Role
  readonly stopping: boolean
  /** Undefined: DATABASE_URL. */
  readonly data_dir: string | undefined
}

/** A key is told even if the start was told to stop: it is stored as a hash only, and nobody could ever learn it. */
export function welcome({ address, admin_address, demo, empty }: Begun, told: Told): string {
  const running = ['', `  Parley is running at ${address}`]
  if (told.role !== 'work') {
    running.push(`  Dashboard            ${address}/dashboard`, `  API reference        ${address}/docs`)
  }
  if (admin_address) running.push(`  Admin port           ${admin_address}, for this machine only`)
  if (told.data_dir === undefined) running.push('  Database             the one of DATABASE_URL')
  const lines = told.stopping ? [] : running
  if (demo) lines.push(...aboutDemo(address, demo))
  else if (empty && !told.stopping) lines.push(...aboutEmpty(address, told.data_dir))
  else if (told.role === 'start' && !told.stopping) lines.push(...aboutLost(told.data_dir))
  return lines.concat('').join('\n')
}

/** A key and a password are stored as hashes only: whoever comes back without them makes new ones. */
function aboutLost(data_dir: string | undefined): string[] {
  const here = dataDirOption(data_dir)
  const where = here && `, each with${here}`
  return [
    '',
    `  A lost key is replaced by \`npx parley key create\`, a lost password by \`npx parley user link\`${where};`,
    '  docs/quickstart.md, "A lost key", has the lines.',
  ]
}

/** The lines act on this instance, wherever it is. */
function aboutEmpty(address: string, data_dir: string | undefined): string[] {
  const here = dataDirOption(data_dir)
  // The gates first: the service notices within a second that they are open.
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
