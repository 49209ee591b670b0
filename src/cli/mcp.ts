/** `parley mcp`: the tools for an agent that starts its own MCP servers and talks to them over standard input and output. */
import type { Command } from 'commander'
import { readConnection } from './api-client.ts'
import { commandOf } from './verbs.ts'

export function addMcpVerb(program: Command): void {
  commandOf(program, 'mcp').action(async () => {
    // Reads no other variable, so a wrong value elsewhere cannot stop it.
    const { PARLEY_API_KEY, PARLEY_BASE_URL } = process.env
    const connection = readConnection({ PARLEY_API_KEY, PARLEY_BASE_URL })
    const { serveOnStdio } = await import('../mcp/stdio.ts')
    await serveOnStdio(connection)
  })
}
