/**
 * Plays the longest possible campaign: 5,000 contacts with six messages each. First the CPU that a play costs, by quota and
 * number of accounts. Then how much longer another tenant waits while twelve callers of one workspace request previews of it
 * without a pause: the p99 of GET /me meanwhile, over the p99 without, in alternating rounds, and the longest answer of
 * /healthz.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { type PlayHead, type PlayRow, Plays } from '../src/capabilities/campaigns/play.ts'
import { setAllowed, setGates } from '../src/capabilities/gates/gates.ts'
import { createKey } from '../src/capabilities/keys/keys.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import { scopes } from '../src/contract.ts'
import { sql } from '../src/db/sql.ts'
import { buildServer } from '../src/http/server.ts'
import { routes } from '../src/lists/routes.ts'
import { makeAccounts, number, quantile, row, verdict, withInstance } from './harness.ts'

const contacts = 5_000
const callers = 12
const rounds = 3
const roundMs = 8_000
const now = Date.parse('2026-06-05T10:00:00Z')
const callersFile = join(import.meta.dirname, 'processes', 'previewers.ts')

for (const [accounts, goal] of [
  [1, 0.5],
  [100, 1],
] as const) {
  for (const quota of [1, 30, 200]) {
    const seconds = Array.from({ length: 3 }, () => measurePlay(accounts, quota))
    verdict(`s of CPU, ${accounts} accounts, quota ${quota}`, quantile(seconds, 0.5), { most: goal })
  }
}

/** The seconds of this thread. */
function measurePlay(accounts: number, daily_quota_per_account: number): number {
  const ids = Array.from({ length: accounts }, (_, at) => `account ${at}`)
  const step = { branch: 'no_reply', wait_hours: 24, variants: ['Again, {{name|you}}'] } as const
  const unused = {
    ready: true,
    flood_until: null,
    lookup_flood_until: null,
    cold_stopped: false,
    cold_ramp_from: null,
    next_campaign_at: null,
    cold_per_day: null,
    lookups_per_day: 200,
  }
  const head: PlayHead = {
    campaign: {
      ...{ id: 'preview', kind: 'contacts', status: 'queued', scheduled_at: null, allowed: true, pool: ids },
      ...{
        message_text: 'Hello {{name|you}}',
        branching_enabled: false,
        max_followups: 5,
        daily_quota_per_account,
      },
      steps: Array.from({ length: 5 }, () => step),
    },
    others: [],
    accounts: ids.map((id) => [id, { ...unused, used: 0, used_cold: 0, lookups: 0 }]),
    hours: { timezone: 'Europe/Berlin', window: { days: [1, 2, 3, 4, 5], from: 540, to: 1_080 } },
    pacing_ms: 15_000,
  }
  const rows = Array.from({ length: contacts }, (_, at): PlayRow => {
    const who = [`username:person_${at}`, 'preview', at, null, null, `@person_${at}`, null, null] as const
    return [...who, ...(['queued', 0, null, 'now', null, false, true] as const)]
  })
  const stop = new Int32Array(new SharedArrayBuffer(4))
  const job = { now, stop, cpu_ms: 60_000, after: -1, limit: 1_000 }
  const texts = { head: JSON.stringify(head), rows: [JSON.stringify(rows)] }
  const before = process.threadCpuUsage()
  const answer = new Plays().answer({ ...job, ...texts })
  const { user, system } = process.threadCpuUsage(before)
  if (JSON.parse(answer?.text ?? '{}').end === null) throw new Error('The play has no end.')
  return (user + system) / 1_000_000
}

await withInstance(
  async (app) => {
    const { workspace_id, user_id, ids } = await makeAccounts(app, 1)
    const { key } = await createKey(app, 'system', { workspace_id, user_id, name: 'bench', scopes })
    const other = await createWorkspace(app, 'system', { name: 'Other' })
    const user = await createUser(app, 'system', { email: 'other@example.org', workspace_id: other.id })
    const own = { workspace_id: other.id, user_id: user.id, name: 'bench', scopes }
    const { key: otherKey } = await createKey(app, 'system', own)
    await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
    await setAllowed(app, 'system', { list: 'campaign_user', id: user_id, allowed: true })
    await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed: true })
    await app.db.run(sql`update accounts set status = 'READY'`)
    await app.settings.refresh()
    const server = await buildServer(app, routes, {
      readiness: { worker: () => 'ok', journal: () => 'ok', stopping: () => false },
    })
    const url = await server.listen({ host: '127.0.0.1', port: 0 })

    async function read(path: string): Promise<number> {
      const askedAt = performance.now()
      const answer = await fetch(`${url}${path}`, { headers: { authorization: `Bearer ${otherKey}` } })
      await answer.arrayBuffer()
      if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}.`)
      return performance.now() - askedAt
    }

    const previewing = spawn(
      process.execPath,
      [callersFile, '--url', url, '--key', key, '--account', ids[0] ?? ''],
      { stdio: ['pipe', 'pipe', 'inherit'] },
    )
    const answers = createInterface({ input: previewing.stdout })[Symbol.asyncIterator]()

    async function preview(ms: number): Promise<number[]> {
      previewing.stdin.write(`${callers} ${ms}\n`)
      return JSON.parse((await answers.next()).value ?? '[]')
    }

    for (let warm = 0; warm < 500; warm++) await read('/api/v1/me')
    await preview(1)
    const times = { idle: [] as number[], meanwhile: [] as number[] }
    const health: number[] = []
    const statuses = new Map<number, number>()
    for (let round = 0; round < rounds; round++) {
      const idleUntil = performance.now() + roundMs
      while (performance.now() < idleUntil) times.idle.push(await read('/api/v1/me'))
      let asked = true
      const all = preview(roundMs).then((given) => {
        for (const status of given) statuses.set(status, (statuses.get(status) ?? 0) + 1)
        asked = false
      })
      while (asked) {
        for (let reads = 0; reads < 20; reads++) times.meanwhile.push(await read('/api/v1/me'))
        health.push(await read('/healthz'))
      }
      await all
    }
    for (const [status, count] of statuses) row(`previews answered ${status}`, number(count))
    const [idle, meanwhile] = [quantile(times.idle, 0.99), quantile(times.meanwhile, 0.99)]
    row(`GET /me p99, idle (${number(times.idle.length)} reads)`, `${number(idle, 2)} ms`)
    row(`GET /me p99, meanwhile (${number(times.meanwhile.length)} reads)`, `${number(meanwhile, 2)} ms`)
    row('GET /me longest, meanwhile', `${number(Math.max(...times.meanwhile), 2)} ms`)
    verdict('p99 meanwhile over idle', meanwhile / idle, { most: 3 })
    verdict('s of the longest /healthz', Math.max(...health) / 1_000, { most: 1 })
    previewing.stdin.end()
    await server.close()
  },
  { env: { PARLEY_RATE_LIMIT: '1000000' } },
)
