/** The sandbox as a platform of the service: its variables, and how it is opened. */
import { z } from 'zod'
import { address } from '../../lib/variables.ts'
import type { PlatformModule } from '../module.ts'

const variables = { PARLEY_SANDBOX_URL: address('http:') }

export const sandboxModule: PlatformModule = {
  name: 'sandbox',
  variables,
  // Imported on demand: every verb reads the list of platforms, and few open one.
  async open(options) {
    const { openSandbox } = await import('./open.ts')
    return openSandbox(options, z.object(variables).parse(options.env).PARLEY_SANDBOX_URL)
  },
  /** Without an address it runs inside `parley start`. */
  async reach({ env }) {
    const url = z.object(variables).parse(env).PARLEY_SANDBOX_URL
    if (url === undefined) return undefined
    const answer = await fetch(`${url}/healthz`, { signal: AbortSignal.timeout(5_000) }).catch(
      () => undefined,
    )
    return answer?.ok ? [] : [{ problem: `The sandbox of PARLEY_SANDBOX_URL does not answer at ${url}.` }]
  },
}
