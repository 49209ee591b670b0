/** `parley mcp`: the tools for an agent that starts its servers itself and talks to them over standard input and output. */
import type { Command } from 'commander'
import { readConnection } from './api-client.ts'

export function addMcpVerb(program: Command): void {
  program
    .command('mcp')
    .description('serve the tools of /api/mcp over standard input and output; needs PARLEY_API_KEY')
    .action(async () => {
      // Nothing else of the environment matters here, so nothing else of it can be wrong.
      const { PARLEY_API_KEY, PARLEY_BASE_URL } = process.env
      const connection = readConnection({ PARLEY_API_KEY, PARLEY_BASE_URL })
      // Loaded here, because every other verb would wait for it, too.
      const { serveOnStdio } = await import('../mcp/stdio.ts')
      await serveOnStdio(connection)
    })
}
