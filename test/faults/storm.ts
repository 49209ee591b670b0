/**
 * The ledger in a storm: real processes are killed, paused and restarted under load while PostgreSQL crashes, freezes, accepts
 * no connections and ends them, commits are lost, the platform misbehaves at every third call, callers hang up or use several API
 * keys, and operators switch accounts and sending off and on. Other callers run campaigns meanwhile. At the end every operation
 * must have ended, every recipient be final or held, and the oracles must find nothing.
 *
 *   npm run test:storm -- --kills 200 --seed 7 --serves 2 --works 2 [--accounts 60] [--clients 60] [--campaigners 3]
 *     [--platform telegram] [--dedupe off] [--proxies 6] [--downloads 6] [--keep] [--patch JSON]
 *
 * With Telegram, `--proxies` puts that many proxies between workers and the data centre, `--downloads` adds that many callers
 * who download files, and unless `--dedupe` is off the data centre makes clients send some messages again.
 *
 * The seed decides who is hit and how; when depends on the machine. Exit 1: a promise was broken, or the run missed a state that
 * it must reach (only from 80 kills on). `--keep`, and any violation, keeps the data directories and the evidence. `--patch`
 * gives every process a deliberate bug (`patch.ts`): then the storm is expected to fail.
 */
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseArgs } from 'node:util'
import { endProcesses } from '../harness/process.ts'
import { type CampaignRare, countCampaignRare, judgeAllCampaigns } from './campaign-verdict.ts'
import { type Campaigners, shortenWaits, startCampaigners } from './campaigners.ts'
import { type Clients, startClients } from './clients.ts'
import { disturbances } from './disturbances.ts'
import { type Downloaders, startDownloaders } from './downloaders.ts'
import type { Fate } from './lossy.ts'
import { judge } from './oracle.ts'
import { openPlant, type Plant } from './plant.ts'
import { drawFault } from './platform-faults.ts'
import { makeRandom, type Random } from './random.ts'
import { countRare, listMissing, type Rare } from './rare.ts'
import { printOutcomes, printTable, say } from './report.ts'
import { StormProxies } from './storm-proxies.ts'
import { briefAnswer, Strikes } from './strikes.ts'

const faultShare = 0.3
const hangUpShare = 0.05
/** Below this many kills a rare state may be missed by chance. */
const enoughKills = 80

const mustReach: readonly (keyof Rare)[] = [
  'ambiguous_by_timeout',
  'ambiguous_by_answer',
  'ambiguous_by_lease',
  'late_upgrade',
  'proven_by_platform',
  'never_written',
  'flood_release',
  'refused',
  'run_again',
  'journal_replay',
  'commit_lost_undone',
  'commit_lost_done',
]

/** About campaign messages and their recipients only. */
const campaignsMustReach: readonly (keyof CampaignRare)[] = [
  'ambiguous_by_timeout',
  'ambiguous_by_answer',
  'ambiguous_by_lease',
  'late_upgrade',
  'flood_release',
  'refused',
  'run_again',
  'completed',
  'replied',
  'failed',
  'ambiguous',
  'cancelled',
  'suppressed',
  'followed_up',
]

/** Otherwise an account of a killed worker is away for longer than the storm lasts. */
const briefTakeover = { marker: 'limit: takeover', replace: 'takeoverSeconds: 2,' }

const { values } = parseArgs({
  options: {
    kills: { type: 'string', default: '200' },
    seed: { type: 'string', default: String(Date.now() % 1_000_000) },
    serves: { type: 'string', default: '2' },
    works: { type: 'string', default: '2' },
    accounts: { type: 'string', default: '60' },
    clients: { type: 'string', default: '60' },
    campaigners: { type: 'string', default: '3' },
    keep: { type: 'boolean', default: false },
    patch: { type: 'string', default: '[]' },
    platform: { type: 'string', default: 'sandbox' },
    dedupe: { type: 'string', default: 'on' },
    proxies: { type: 'string', default: '0' },
    downloads: { type: 'string', default: '0' },
  },
})
const kills = Number(values.kills)
const seed = Number(values.seed)
const isTelegram = values.platform === 'telegram'
const resends = isTelegram && values.dedupe !== 'off'

/** A connection breaks at one boundary in fifteen, and at one other COMMIT in two thousand. */
function loseCommits(random: Random, raging: () => boolean): (commit: { boundary: boolean }) => Fate {
  return ({ boundary }) => {
    if (!raging() || !random.chance(boundary ? 1 / 15 : 1 / 2000)) return 'pass'
    return random.pick(['before', 'after'])
  }
}

async function main(): Promise<number> {
  say(`seed ${seed}: ${kills} hits on ${values.serves} serve and ${values.works} work processes`)
  const random = makeRandom(seed)
  let raging = false
  const proxies =
    isTelegram && Number(values.proxies) > 0 ? await StormProxies.open(Number(values.proxies)) : undefined
  const plant = await openPlant({
    serves: Number(values.serves),
    works: Number(values.works),
    accounts: Number(values.accounts),
    people: 3,
    env: { PARLEY_PACING_SECONDS: '1' },
    platform: isTelegram ? 'telegram' : 'sandbox',
    dedupe: values.dedupe === 'off' ? 'off' : 'on',
    patches: [briefAnswer, ...JSON.parse(values.patch)],
    workPatches: isTelegram ? [briefTakeover] : [],
    ...(proxies && { proxyOf: (n) => proxies.urlOf(n), via: (port) => proxies.via(port) }),
    lossy: loseCommits(random.fork('commits'), () => raging),
  })
  const end = () => void plant.close().finally(() => process.exit(130))
  process.once('SIGINT', end).once('SIGTERM', end)
  try {
    say('the plant is up')
    await shortenWaits(plant.db)
    const clients = startClients(plant, {
      random,
      count: Number(values.clients),
      hangUpShare,
      apiKeys: true,
      before: async ({ account_id, kind }, chance) => {
        if (raging && chance.chance(faultShare))
          await plant.fault(drawFault(chance, { account_id, kind, resends }))
      },
    })
    const campaigners = startCampaigners(plant, {
      app: await plant.openApp(),
      random,
      count: Number(values.campaigners),
      before: async (accounts, chance) => {
        for (const account_id of raging ? accounts : [])
          await plant.fault(drawFault(chance, { account_id, kind: 'send', resends }))
      },
    })
    const downloaders = startDownloaders(plant, { random, count: Number(values.downloads) })
    const strikes = new Strikes(plant, random.fork('storm'))
    // Otherwise faults would pile up on accounts that no worker drives.
    const sweeping = setInterval(() => void plant.clearFaults().catch(() => {}), 5_000)
    raging = true
    const cutting = proxies?.disturb(random.fork('proxies'), () => !raging)
    const load = { clients, campaigners, downloaders, proxies }
    await rage(strikes, load)
    raging = false
    clearInterval(sweeping)
    await plant.clearFaults()
    await Promise.all([strikes.calm(), clients.stop(), campaigners.stop(), downloaders.stop(), cutting])
    return await conclude(plant, { strikes, ...load })
  } finally {
    await plant.close(values)
    await proxies?.close()
    await endProcesses()
  }
}

interface Load {
  readonly clients: Clients
  readonly campaigners: Campaigners
  readonly downloaders: Downloaders
  readonly proxies: StormProxies | undefined
}

async function rage(strikes: Strikes, { clients, campaigners, downloaders }: Load): Promise<void> {
  const begun = performance.now()
  let reportedAt = begun
  await strikes.rage(kills, (hit) => {
    if (performance.now() - reportedAt <= 10_000 && hit < kills) return
    reportedAt = performance.now()
    const seconds = Math.round((reportedAt - begun) / 1000)
    const answers = `${clients.keys} keys, ${clients.history.length} answers, ${campaigners.created.size} campaigns`
    say(`${hit}/${kills} hits, ${seconds} s, ${answers}, ${downloaders.counts.whole} downloads`)
  })
}

async function conclude(plant: Plant, { strikes, ...load }: Load & { strikes: Strikes }): Promise<number> {
  const late = await untilOver(plant, load)
  const { downloaders, proxies } = load
  const evidence = { ...(await plant.evidence(load.clients.history)), startsUnseen: isTelegram }
  const campaigns = await judgeAllCampaigns(plant, evidence.journal, load.campaigners)
  const violations = [...judge(evidence), ...campaigns.findings]
  const rare = countRare(evidence, plant.lossy?.boundaries)
  const ofCampaigns = countCampaignRare(evidence, campaigns.evidence)
  printTable('hits', { ...strikes.hits, other_commits_lost: sum(plant.lossy?.others) })
  printTable('disturbances', strikes.disturbed)
  printTable('errors in logs', strikes.listErrors())
  printOutcomes(evidence)
  printTable('reached', { ...rare })
  printTable('reached by campaigns', { ...ofCampaigns })
  printTable('downloads', { ...downloaders.counts })
  if (proxies) printTable('proxies', { passed: proxies.passed, around: proxies.around, cuts: proxies.cuts })
  if (proxies && proxies.around > 0) late.push(`${proxies.around} connections went around the proxies`)
  const missing = [
    ...listMissing(rare, mustReach),
    ...listMissing(ofCampaigns, campaignsMustReach).map((name) => `${name} by campaigns`),
    ...listMissing(strikes.disturbed, disturbances),
  ].filter(() => kills >= enoughKills)
  for (const violation of violations.slice(0, 50)) say(`VIOLATION ${JSON.stringify(violation)}`)
  for (const line of late) say(line)
  for (const name of missing) say(`NEVER REACHED ${name}`)
  const found = [
    `${violations.length} violations`,
    `${late.length} other findings`,
    `${missing.length} states never reached`,
  ]
  say(`seed ${seed}: ${kills} hits, ${evidence.journal.length} accepted: ${found.join(', ')}`)
  values.keep ||= violations.length > 0
  if (values.keep) {
    const file = join(plant.directory, 'evidence.json')
    await writeFile(file, JSON.stringify(evidence))
    say(`kept ${file}`)
  }
  return violations.length + missing.length + late.length > 0 ? 1 : 0
}

/** Waits until everything has ended, and asks every key once more. Returns what has not ended. */
async function untilOver(plant: Plant, { clients, campaigners, downloaders }: Load): Promise<string[]> {
  const late: string[] = []
  const note = (error: Error) => void late.push(error.message)
  const finished = campaigners.finish().catch(note)
  await plant.settled().catch(note)
  await plant.untilReady().catch((error: Error) => say(error.message))
  await clients.repeat()
  await finished
  late.push(...(await downloaders.finish()))
  await plant.settled().catch(() => {})
  return late
}

function sum(cuts: { before: number; after: number } | undefined): number {
  return cuts ? cuts.before + cuts.after : 0
}

process.exitCode = await main()
process.exit()
