import { renderToStaticMarkup } from 'react-dom/server'
import { expect, test } from 'vitest'

/** As a reader has it, without the elements. */
async function reasonOf(today: object): Promise<string> {
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './start-limits.tsx'
  const { whyNotStart } = await import(path)
  const state = {
    capabilities: { start_chat: { open: true, closed_by: null } },
    dispatch: { on: true, reason: null },
    workspace: { id: 'w', timezone: 'Europe/Berlin' },
  }
  const account = {
    ...{ name: 'Sales', status: 'READY', live: true, lookups_wait_until: null, sends_wait_until: null },
    today,
  }
  return renderToStaticMarkup(whyNotStart(state, account) ?? '').replaceAll(/<[^>]*>/g, '')
}

test('what continues after midnight says in whose zone', async () => {
  expect(await reasonOf({ lookups: { used: 30, limit: 30 } })).toBe(
    'Sales has used its 30 lookups for today. It continues after midnight, Berlin time.',
  )
  expect(await reasonOf({ lookups: { used: 29, limit: 30 } })).toBe('')
})
