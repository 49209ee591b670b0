/** Shared by the parts of `dispatch.ts`: driven accounts, the people they know, and campaigns that are sent to the end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { messagesDue } from '../src/capabilities/campaigns/running/running.ts'
import { setAllowed, setGates } from '../src/capabilities/gates/gates.ts'
import type { OpenApp } from '../src/cli/open.ts'
import { sql } from '../src/db/sql.ts'
import { newId } from '../src/lib/ids.ts'
import { loops } from '../src/lists/loops.ts'
import { connectSandbox, openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { makeAccounts, withInstance } from './harness.ts'

const waitMsMax = 900_000

export interface Stage {
  readonly app: OpenApp
  readonly data_dir: string
  readonly workspace_id: string
  readonly user_id: string
  readonly accounts: readonly string[]
  readonly people: readonly number[]
  /** Sends a first message to every person from every account; returns the seconds until outcomes and echoes are stored. */
  send(kind?: 'scoped' | 'broadcast'): Promise<number>
  /** How many messages the platform has accepted. */
  accepted(): number
}

interface Platform {
  readonly platform: Awaited<ReturnType<typeof openLocalSandbox>>['platform']
  addPerson(name: string): Promise<number>
  /** How many updates the platform has for all accounts; undefined if it is another process. */
  streams(): number | undefined
  accepted(): number
  close(): Promise<unknown>
}

/** `apart`: the platform runs in its own process, whose memory is not counted. */
export async function withStage(
  { accounts, people: count, apart = false }: { accounts: number; people: number; apart?: boolean },
  work: (stage: Stage) => Promise<void>,
): Promise<void> {
  const env = { PARLEY_PACING_SECONDS: '0' }
  await withInstance(
    async (app, data_dir) => {
      const { workspace_id, user_id, ids } = await makeAccounts(app, accounts)
      await setGates(app, 'system', { names: ['all'], enabled: true })
      await setAllowed(app, 'system', { list: 'campaign_user', id: user_id, allowed: true })
      await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace_id, allowed: true })
      const sandbox = apart ? await openApart() : await openInside()
      const people: number[] = []
      for (let n = 0; n < count; n++) people.push(await sandbox.addPerson(`Ada ${n}`))
      const platforms = new Map([['sandbox' as const, sandbox.platform]])
      const worker = runWorker(app, await assembleWorker(app, { platforms, directory: data_dir, loops }))
      await until(async () => {
        const { ready } = await app.db.one<{ ready: number }>(
          sql`select count(*)::int as ready from accounts where status = 'READY'`,
        )
        return ready === accounts
      })
      await app.db.run(sql`
        insert into chats (account_id, chat_id, workspace_id, kind, name)
        select a.id, p.id, a.workspace_id, 'private', 'Ada' from accounts a, unnest(${people}::bigint[]) as p (id)`)
      const place = { app, data_dir, workspace_id, user_id, accounts: ids, people }
      const { accepted } = sandbox
      await work({ ...place, accepted, send: (kind) => send(place, sandbox, kind) })
      await worker.stop()
      await sandbox.close()
    },
    { env },
  )
}

async function openInside(): Promise<Platform> {
  const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
  const { state } = sandbox.world
  return {
    platform: sandbox.platform,
    addPerson: async (name) => sandbox.world.addPerson({ name }).person_id,
    streams: () => [...state.accounts.values()].reduce((sum, { stream }) => sum + stream.length, 0),
    accepted: () => state.journal.length,
    close: () => sandbox.close(),
  }
}

async function openApart(): Promise<Platform> {
  const file = join(import.meta.dirname, '..', 'test', 'platform', 'sandbox-process.ts')
  const child: ChildProcess = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] })
  if (!child.stdout) throw new Error('The sandbox has no output.')
  const [line] = (await once(child.stdout, 'data')) as [Buffer]
  const url = String(line).trim()
  const { platform } = connectSandbox(url)
  return {
    platform,
    async addPerson(name) {
      const init = { method: 'POST', headers: { 'content-type': 'application/json' } }
      const response = await fetch(`${url}/sandbox/v1/people`, { ...init, body: JSON.stringify({ name }) })
      return ((await response.json()) as { person_id: number }).person_id
    },
    streams: () => undefined,
    accepted: () => 0,
    async close() {
      const ended = once(child, 'exit')
      child.kill()
      await ended
    },
  }
}

type StageParts = Omit<Stage, 'send' | 'accepted'>

/** Creates the campaign paused, so that only the sending is measured. */
async function send(
  place: StageParts,
  sandbox: Platform,
  kind: 'scoped' | 'broadcast' = 'scoped',
): Promise<number> {
  const { app, workspace_id, user_id, accounts, people } = place
  const id = newId()
  const quota = kind === 'scoped' ? 200 : null
  await app.db.transaction(async (tx) => {
    await tx.run(sql`
      insert into campaigns (id, workspace_id, user_id, kind, status, pause_reason, message_text,
        daily_quota_per_account, sequence, audience_total)
      values (${id}, ${workspace_id}, ${user_id}, ${kind}, 'paused', 'requested', 'A message.', ${quota}, true,
        ${kind === 'broadcast' ? accounts.length * people.length : null})`)
    await tx.run(sql`
      insert into campaign_recipients (id, campaign_id, workspace_id, account_id, chat_id, contact, position,
        next_action_at)
      select gen_random_uuid(), ${id}, ${workspace_id}, a.id, p.id, a.id || ':' || p.id, row_number() over (), domain_now()
      from unnest(${accounts}::text[]) as a (id), unnest(${people}::bigint[]) as p (id)`)
  })
  const startedAt = performance.now()
  await app.db.run(sql`update campaigns set status = 'queued', pause_reason = null where id = ${id}`)
  app.wake.signal(messagesDue)
  await until(async () => {
    const { done, stored } = await app.db.one<{ done: number; stored: number }>(sql`
      select (select sum(completed)::int from campaign_accounts where campaign_id = ${id}) as done,
        (select sum(position::bigint)::int from account_hosts) as stored`)
    return done === accounts.length * people.length && stored === (sandbox.streams() ?? stored)
  })
  return (performance.now() - startedAt) / 1000
}

export async function until(is: () => Promise<boolean>): Promise<void> {
  const startedAt = performance.now()
  while (!(await is())) {
    if (performance.now() - startedAt > waitMsMax) throw new Error('It did not get done.')
    await new Promise((done) => setTimeout(done, 20))
  }
}
