/** What a start says to the person in front of it. */
import type { Demo } from './demo.ts'
import type { Begun } from './service.ts'

/** A key is told even if the start was told to stop: it is stored as a hash only, and nobody could ever learn it. */
export function welcome(
  { address, admin_address, demo, empty }: Begun,
  { stopping }: { stopping: boolean },
): string {
  const running = ['', `  Parley is running at ${address}`, `  API reference        ${address}/docs`]
  if (admin_address) running.push(`  Admin port           ${admin_address}, for this machine only`)
  const lines = stopping ? [] : running
  if (demo) lines.push(...aboutDemo(address, demo))
  else if (empty && !stopping) lines.push(...aboutEmpty)
  return lines.concat('').join('\n')
}

const aboutEmpty = [
  '',
  '  This instance is empty, and every gate is closed. Each line prints the id that the next ones need:',
  '',
  '    npx parley workspace create "Acme"',
  '    npx parley user create you@acme.example --workspace WORKSPACE_ID',
  '    npx parley key create --workspace WORKSPACE_ID --user USER_ID --name "my app" --scopes read,write,send',
  '    npx parley account create --workspace WORKSPACE_ID --name "Sales"',
  '    npx parley gate enable all',
  '',
  '  `npx parley demo` fills it with made-up people instead. `npx parley --help` names every verb.',
]

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
