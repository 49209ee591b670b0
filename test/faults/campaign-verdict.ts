/**
 * Checks all campaigns after a storm: with the oracle, with `verify`, against the answers that callers got, and against the
 * platform's journal regardless of the ledger. Also counts which states of campaigns the storm reached.
 */
import { verifyCampaign } from '../../src/capabilities/campaigns/verify.ts'
import { sql } from '../../src/db/sql.ts'
import type { JournalEntry } from '../../src/platform/sandbox/entries.ts'
import { readCampaignEvidence } from '../harness/campaign-evidence.ts'
import { type CampaignEvidence, judgeCampaigns } from './campaign-oracle.ts'
import type { CampaignRecords } from './campaigners.ts'
import type { Evidence } from './oracle.ts'
import type { Plant } from './plant.ts'
import { countRare, type Rare } from './rare.ts'

interface CampaignFinding {
  readonly promise: string
  readonly what: string
  readonly id?: string
}

interface CampaignVerdict {
  readonly findings: readonly CampaignFinding[]
  readonly evidence: CampaignEvidence
}

export async function judgeAllCampaigns(
  plant: Plant,
  journal: readonly JournalEntry[],
  records: CampaignRecords,
): Promise<CampaignVerdict> {
  const evidence = await readCampaignEvidence(plant.db, { journal, stops: records.stops })
  const findings = [
    ...judgeCampaigns(evidence),
    ...(await checkBooks(plant, evidence)),
    ...checkTexts(journal),
    ...(await checkCreated(plant, records)),
    ...(await checkSuppressed(plant, records)),
  ]
  return { findings, evidence }
}

/** The findings of `verify campaign` for each. */
async function checkBooks({ db }: Plant, { campaigns }: CampaignEvidence): Promise<CampaignFinding[]> {
  const findings: CampaignFinding[] = []
  for (const { id } of campaigns) {
    const { checks } = await verifyCampaign(db, id)
    const wrong = checks.filter(({ ok }) => !ok)
    findings.push(...wrong.map(({ name, detail }) => ({ promise: 'verify', what: `${name}: ${detail}`, id })))
  }
  return findings
}

/** P1 without trusting random ids or accounts: every text of a campaign is unique, and no person gets one twice. */
function* checkTexts(journal: readonly JournalEntry[]): Generator<CampaignFinding> {
  const sends = journal.filter(({ kind, text }) => kind === 'send' && text?.startsWith('campaign '))
  for (const [place, entries] of Map.groupBy(sends, ({ chat_id, text }) => `${chat_id} ${text}`)) {
    if (entries.length > 1) yield { promise: 'P1', what: `accepted ${entries.length} times: ${place}` }
  }
}

/** Each key made one campaign, the one in its caller's answer. */
async function checkCreated({ db }: Plant, { created }: CampaignRecords): Promise<CampaignFinding[]> {
  const rows = await db.rows<{ id: string; name: string }>(sql`select id, name from campaigns`)
  const byName = Map.groupBy(rows, ({ name }) => name)
  const twice = [...byName].filter(([, own]) => own.length > 1)
  const lost = [...created].filter(([key, id]) => !byName.get(key)?.some((row) => row.id === id))
  return [
    ...twice.map(([key]) => ({ promise: 'P1', what: `two campaigns of one key: ${key}` })),
    ...lost.map(([key, id]) => ({ promise: 'P3', what: `created, and it is not there: ${key}`, id })),
  ]
}

/** P5: no message to a person who was on the list before. */
async function checkSuppressed({ db }: Plant, { suppressed }: CampaignRecords): Promise<CampaignFinding[]> {
  const rows = await db.rows<{ id: string }>(sql`
    select o.id from unnest(${suppressed.map(({ person_id }) => person_id)}::bigint[],
      ${suppressed.map(({ at }) => at.toISOString())}::timestamptz[]) as s (chat_id, at)
    join operations o on o.chat_id = s.chat_id and o.campaign_id is not null and o.crossed_at > s.at`)
  return rows.map(({ id }) => ({ promise: 'P5', what: 'crossed to a person on the list', id }))
}

const statuses = ['completed', 'replied', 'failed', 'ambiguous', 'cancelled', 'suppressed'] as const

export interface CampaignRare
  extends Omit<Rare, 'commit_lost_undone' | 'commit_lost_done' | 'withdrawn'>,
    Record<(typeof statuses)[number], number> {
  campaigns: number
  /** Messages after the first. */
  followed_up: number
  /** Messages that crossed before a cancel and ended after it. */
  cancelled_in_flight: number
}

export function countCampaignRare(
  { operations, transitions = [], ...ledger }: Evidence,
  { campaigns, recipients, messages }: CampaignEvidence,
): CampaignRare {
  const cancelledAt = new Map(campaigns.map(({ id, cancelled_at }) => [id, cancelled_at?.getTime()]))
  const own = new Map(messages.map(({ id, campaign_id }) => [id, cancelledAt.get(campaign_id)]))
  const settledLate = transitions.filter(
    ({ operation_id, from, at }) =>
      from === 'submitting' && at > (own.get(operation_id) ?? Number.POSITIVE_INFINITY),
  )
  const { commit_lost_done, commit_lost_undone, withdrawn, ...rare } = countRare({
    ...ledger,
    operations,
    transitions: transitions.filter(({ operation_id }) => own.has(operation_id)),
  })
  const count = (status: string) => recipients.filter((one) => one.status === status).length
  return {
    ...rare,
    completed: count('completed'),
    replied: count('replied'),
    failed: count('failed'),
    ambiguous: count('ambiguous'),
    cancelled: count('cancelled'),
    suppressed: count('suppressed'),
    campaigns: campaigns.length,
    followed_up: messages.filter(({ step_no, state }) => step_no > 0 && state === 'completed').length,
    cancelled_in_flight: settledLate.length,
  }
}
