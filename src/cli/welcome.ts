/** What a start says to the person in front of it. */
import type { Demo } from './demo.ts'
import type { Begun } from './service.ts'

/**
 * A key is told even if the start was told to stop: it is stored as a hash only, and nobody could ever learn it. `data_dir` is
 * what verbs have to be told to act on the same database, where they do not by themselves.
 */
export function welcome(
  { address, admin_address, demo, empty }: Begun,
  { stopping, data_dir }: { stopping: boolean; data_dir: string | undefined },
): string {
  const running = ['', `  Parley is running at ${address}`, `  API reference        ${address}/docs`]
  if (admin_address) running.push(`  Admin port           ${admin_address}, for this machine only`)
  const lines = stopping ? [] : running
  if (demo) lines.push(...aboutDemo(address, demo))
  else if (empty && !stopping) lines.push(...aboutEmpty(data_dir))
  return lines.concat('').join('\n')
}

function aboutEmpty(data_dir: string | undefined): string[] {
  const here = data_dir === undefined ? '' : ` --data-dir ${quoted(data_dir)}`
  const verbs = [
    'workspace create "Acme"',
    'user create you@acme.example --workspace WORKSPACE_ID',
    'key create --workspace WORKSPACE_ID --user USER_ID --name "my app" --scopes read,write,send',
    'account create --workspace WORKSPACE_ID --name "Sales"',
    'gate enable all',
  ]
  return [
    '',
    '  This instance is empty, and every gate is closed. Each line prints the id that the next ones need:',
    '',
    ...verbs.map((verb) => `    npx parley ${verb}${here}`),
    '',
    '  The account is one of the sandbox. Started with PARLEY_SANDBOX_CONTROL=on, the admin port lets you make people there;',
    `  or stop the service and say \`npx parley demo${here}\`, which fills it with made-up people.`,
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

/** For a shell. */
function quoted(path: string): string {
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}
