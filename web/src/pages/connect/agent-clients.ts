/** How to configure each MCP client for this instance, with the exact text. */

/** The placeholder for a key. */
export const keyPlace = 'svc_live_…'

interface Client {
  readonly name: string
  readonly about: string
  /** The file that the text goes into, or a note that it is a command. */
  readonly place: string
  configure(url: string, key: string): string
}

const json = (value: object) => JSON.stringify(value, null, 2)
const bearer = (key: string) => ({ Authorization: `Bearer ${key}` })

/** The notation for a variable in clients' files. */
const variable = (name: string) => `$\{${name}}`

/** Uses a bridge on the same machine, for clients that start a process instead of opening an address. */
const bridge = (url: string, key: string) => ({
  command: 'npx',
  // No space in the argument, because some clients on Windows cut it there: the header's value is a variable.
  args: ['-y', 'mcp-remote', url, '--header', `Authorization:${variable('PARLEY_AUTHORIZATION')}`],
  env: { PARLEY_AUTHORIZATION: `Bearer ${key}` },
})

export const clients: readonly Client[] = [
  {
    name: 'Claude Code',
    about: 'Run this once in a terminal.',
    place: 'Terminal',
    configure: (url, key) =>
      `claude mcp add --transport http parley ${url} \\\n  --header "Authorization: Bearer ${key}"`,
  },
  {
    name: 'Claude Desktop',
    about: 'Settings, Developer, Edit Config; then start it again. It needs Node on this machine.',
    place: 'claude_desktop_config.json',
    configure: (url, key) => json({ mcpServers: { parley: bridge(url, key) } }),
  },
  {
    name: 'Cursor',
    about: 'For one project, or in your home directory for all of them.',
    place: '.cursor/mcp.json',
    configure: (url, key) => json({ mcpServers: { parley: { url, headers: bearer(key) } } }),
  },
  {
    name: 'VS Code',
    about: 'It asks for the key once and keeps it, so the file can be shared.',
    place: '.vscode/mcp.json',
    configure: (url) =>
      json({
        inputs: [{ type: 'promptString', id: 'parley-key', description: 'Parley API key', password: true }],
        servers: {
          parley: { type: 'http', url, headers: { Authorization: `Bearer ${variable('input:parley-key')}` } },
        },
      }),
  },
  {
    name: 'Inspector',
    about: 'Lists the tools, to see that the key and the address work.',
    place: 'Terminal',
    configure: (url, key) =>
      `npx @modelcontextprotocol/inspector --cli ${url} --transport http \\\n  --header "Authorization: Bearer ${key}" --method tools/list`,
  },
  {
    name: 'mcp-remote',
    about: 'For any client that can only start a process.',
    place: 'The client’s configuration',
    configure: (url, key) => json({ mcpServers: { parley: bridge(url, key) } }),
  },
]
