/** What a start says to the person in front of it. */
import type { Demo } from './demo.ts'
import type { Begun } from './service.ts'

/** A key is told even if the start was told to stop: it is stored as a hash only, and nobody could ever learn it. */
export function welcome(
  { address, admin_address, demo }: Begun,
  { stopping }: { stopping: boolean },
): string {
  const running = ['', `  Parley is running at ${address}`, `  API reference        ${address}/docs`]
  if (admin_address) running.push(`  Admin port           ${admin_address}, for this machine only`)
  const lines = stopping ? [] : running
  if (demo) lines.push(...aboutDemo(address, demo))
  return lines.concat('').join('\n')
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
