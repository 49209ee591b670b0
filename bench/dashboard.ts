/**
 * What the dashboard's pages cost as their tables grow, in CPU of Node and PostgreSQL together: medians of alternating rounds, a
 * large one over a small one of the same shape, or a late page over the first. Then the pages in Chromium, if there is one.
 */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fillDashboard, recipients, type Stage, type Team } from './dashboard-stage.ts'
import { number, quantile, row, verdict, withInstance } from './harness.ts'
import { cpuOf, load, type Running, start, stop } from './load.ts'

const rounds = 30
const requests = 20
const warmup = 400
const lastPage = 1_000
const sessions = 200

const data_dir = await mkdtemp(join(tmpdir(), 'parley-bench-'))
try {
  const stage = await fill()
  const service = await start('service', { BENCH_DIR: data_dir })
  try {
    await comparePages(service, stage)
    await openPages(service, stage)
  } finally {
    await stop(service)
  }
} finally {
  await rm(data_dir, { recursive: true, force: true })
}

async function fill(): Promise<Stage> {
  const startedAt = performance.now()
  const { promise, resolve } = Promise.withResolvers<Stage>()
  await withInstance(async (app) => resolve(await fillDashboard(app, sessions)), { kept: data_dir })
  row('tables filled', `${number((performance.now() - startedAt) / 1_000)} s`)
  return promise
}

interface Comparison {
  readonly label: string
  readonly large: string
  readonly small: string
  readonly most: number
}

async function comparePages(service: Running, { many, few, cookies }: Stage): Promise<void> {
  const api = `${service.address}/dashboard/api`
  let session = 0
  /** A session of its own for each call, because of its limit of 600 requests a minute. */
  const headers = () => ({ cookie: cookies[session++ % cookies.length] ?? '' })
  const of = (label: string, most: number, path: (team: Team) => string): Comparison => {
    const urlOf = (team: Team) => `${api}/w/${team.workspace_id}${path(team)}`
    return { label, most, large: urlOf(many), small: urlOf(few) }
  }
  const late = async (label: string, url: string): Promise<Comparison> => {
    return {
      label: `${label}, page ${number(lastPage)} over page 1`,
      most: 1.1,
      large: await walk(url),
      small: url,
    }
  }
  const views = ['all', 'unread', 'unanswered', 'mine']
  const ofCampaign = `of ${number(recipients.many)} recipients over ${recipients.few}`
  const comparisons = [
    ...views.map((view) =>
      of(`inbox, ${view}, of 100,000 chats over 100`, 1.3, () => `/inbox?view=${view}&limit=50`),
    ),
    of('board, of 10,000 placed chats over 80', 1.5, () => '/board'),
    of(`campaign ${ofCampaign}`, 1.3, ({ campaign_id }) => `/campaigns/${campaign_id}?limit=1`),
    of(`its page ${ofCampaign}`, 1.3, ({ campaign_id }) => `/campaigns/${campaign_id}/recipients?limit=50`),
    await late('audit', `${api}/audit?limit=50`),
    await late("a workspace's audit", `${api}/audit?limit=50&workspace_id=${many.workspace_id}`),
    await late('suppressions', `${api}/w/${many.workspace_id}/suppressions?limit=50`),
  ]
  for (const comparison of comparisons) await compare(comparison)

  async function compare({ label, large, small, most }: Comparison): Promise<void> {
    const ask = (url: string, count: number) => load(url, '', count, { headers: headers() })
    for (const url of [large, small]) await ask(url, warmup)
    const ms = { large: [] as number[], small: [] as number[] }
    const cpu = { large: [] as number[], small: [] as number[] }
    for (let round = 0; round < rounds; round++) {
      for (const [size, url] of [['large', large] as const, ['small', small] as const]) {
        const spent = await cpuOf({ processes: [service], data_dir }, async () =>
          ms[size].push(...(await ask(url, requests))),
        )
        cpu[size].push((spent / requests) * 1_000)
      }
    }
    const [ofLarge, ofSmall] = [quantile(cpu.large, 0.5), quantile(cpu.small, 0.5)]
    row(`${label}: CPU`, `${number(ofLarge)}, ${number(ofSmall)} µs`)
    row(`${label}: p50`, `${number(quantile(ms.large, 0.5), 1)}, ${number(quantile(ms.small, 0.5), 1)} ms`)
    verdict(label, ofLarge / ofSmall, { most })
  }

  /** The address of a late page, reached as a browser does. */
  async function walk(url: string): Promise<string> {
    let cursor = ''
    for (let page = 1; page < lastPage; page++) {
      const answer = await fetch(`${url}${cursor}`, { headers: headers() })
      const { next_cursor } = (await answer.json()) as { next_cursor: string }
      cursor = `&cursor=${next_cursor}`
    }
    return `${url}${cursor}`
  }
}

/** The browser is installed by `npm run test:browser`, which has its own packages. */
async function openPages({ address }: Running, { many, cookies }: Stage): Promise<void> {
  const folder = join(import.meta.dirname, '..', 'test', 'browser')
  if (!existsSync(join(folder, 'node_modules'))) return row('Chromium', 'not installed')
  const given = ['--url', address, '--workspace', many.workspace_id, '--cookies', cookies.slice(-3).join(' ')]
  const child = spawn(process.execPath, [join(folder, 'dashboard-bench.ts'), ...given], { stdio: 'inherit' })
  const [code] = await once(child, 'exit')
  if (code !== 0) process.exitCode = 1
}
