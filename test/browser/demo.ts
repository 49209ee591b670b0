/** A separate demo to look at, and the agent that requests a write. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { openEmbedded } from '../../src/db/embedded.ts'
import { exampleAccountId, examplePerson } from '../../src/lib/examples.ts'
import { endProcesses, spawnParley, until } from '../harness/process.ts'
import { type Ask, askAddress } from '../platform/sandbox-fixture.ts'

export interface Demo {
  readonly address: string
  /** The link to choose a password with. */
  readonly setup_link: string
  /** Every text that the platform has accepted. */
  journal(): Promise<string[]>
  /** Acts on the platform: people who write, faults, what it has accepted. */
  platform: Ask
  /** Moves the clock, if it was started with `PARLEY_CLOCK=manual`. Returns the new time. */
  advance(seconds: number): Promise<Date>
  /** What only direct access to the database can do. */
  database(statements: string): Promise<void>
  /** Kills it, and starts it again at the same address. */
  restart(): Promise<void>
  close(): Promise<void>
}

export async function startDemo(env: Readonly<Record<string, string>> = {}): Promise<Demo> {
  const data_dir = await mkdtemp(join(tmpdir(), 'parley-browser-'))
  const start = (port: string) => spawnParley(['start', '--port', port, '--data-dir', data_dir], env)
  let parley = start('0')
  const close = async () => {
    parley.signal('SIGTERM')
    await parley.exit().catch(endProcesses)
    await rm(data_dir, { recursive: true, force: true })
  }
  try {
    const address = await parley.ready()
    const setup_link = await until('the set-up link is printed', 30_000, () => {
      return /http\S+\/dashboard\/setup#\S+/.exec(parley.stdout())?.[0]
    })
    const journal = async () => {
      const response = await fetch(`${await parley.admin()}/sandbox/v1/journal`)
      const { entries } = (await response.json()) as { entries: { text: string }[] }
      return entries.map(({ text }) => text)
    }
    const restart = async () => {
      parley.signal('SIGKILL')
      await parley.ended()
      parley = start(new URL(address).port)
      await parley.ready()
    }
    const platform: Ask = async (name, input) => askAddress(await parley.admin())(name, input)
    const advance = async (seconds: number) => {
      const url = `${await parley.admin()}/sandbox/v1/clock/advance`
      const headers = { 'content-type': 'application/json' }
      const answer = await fetch(url, { method: 'POST', headers, body: JSON.stringify({ seconds }) })
      if (!answer.ok) throw new Error(await answer.text())
      return new Date(((await answer.json()) as { now: string }).now)
    }
    const database = async (statements: string) => {
      const embedded = await openEmbedded({ data_dir, claim: 'command', existing: true })
      const client = new pg.Client(embedded.connection)
      await client.connect()
      await client.query(statements)
      await client.end()
      await embedded.close()
    }
    return { address, setup_link, journal, platform, advance, database, restart, close }
  } catch (error) {
    await close()
    throw error
  }
}

interface Result {
  readonly isError?: boolean
  readonly structuredContent: Readonly<Record<string, unknown>>
}

/** One call of a tool, as an agent makes it. */
export async function callTool(
  address: string,
  key: string,
  tool: { name: string; arguments: Readonly<Record<string, unknown>> },
): Promise<Result> {
  const response = await fetch(`${address}/api/mcp`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${key}`,
      'user-agent': 'claude-code/2.1',
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params: tool }),
  })
  const text = await response.text()
  const message = /^data: (.*)$/m.exec(text)?.[1] ?? text
  const { result } = JSON.parse(message) as { result?: Result }
  if (!result) throw new Error(`The tool ${tool.name} answered ${response.status}: ${text}`)
  return result
}

/** The chat of a person who accepts every message. The newest chat may be with one who blocks, because people keep writing. */
export const exampleChat = {
  id: 'platform:chat:42',
  account_id: exampleAccountId,
  name: examplePerson.name,
} as const
