/** The job that erases a person: one small transaction after the other, each of which says how far the job has come. */
import type { App } from '../../app.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { eraseEvents, eraseOutbox } from '../../events/erase.ts'
import { eraseAmbiguous, eraseOperations, isInFlight, releaseQueued } from '../../ledger/erasing.ts'
import { waitForStoring } from '../../ledger/leases.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { eraseApprovals } from '../approvals/approvals.ts'
import { record } from '../audit/audit.ts'
import { eraseRecipients } from '../campaigns/campaigns.ts'
import { eraseMember } from '../chats/chats.ts'
import { clearMessages, type MessageKey } from '../messages/messages.ts'
import {
  addTombstones,
  forgetNames,
  listGone,
  listNames,
  namesOf,
  noteLast,
  tombstoneOf,
} from '../people/people.ts'
import { areWordsForgotten } from '../search/search.ts'
import { eraseEntries } from '../suppressions/suppressions.ts'
import { eraseResponses } from '../webhooks/webhooks.ts'
import { eraseShown } from './shown.ts'

/** Rows read in one transaction, so that none holds its locks for long. */
const readAtOnce = 1_000
/** Messages cleared in one: each is a row of the hot table, and of the search. */
const clearedAtOnce = 200

interface Job {
  readonly id: string
  readonly workspace_id: string
  readonly person_id: string
  readonly platform: string
  readonly number: ChatNumber
  readonly contact_allowed: boolean
  readonly tombstones: readonly Buffer[]
  readonly at: Date
  readonly step: string
  readonly after: string | null
  /** The accounts on the person's platform. */
  readonly account_ids: readonly string[]
}

/** What a batch has done: how many rows it cleared, where the step goes on, or null where the step is done. */
interface Progress {
  readonly cleared: number
  readonly after: string | null
  /** Nothing can be done before something else has happened. */
  readonly waits?: true
}

const done: Progress = { cleared: 0, after: null }

/** In this order. Messages arrive no more after `begin`, and names go last: they find what is to be erased. */
const steps: readonly (readonly [name: string, run: (app: App, tx: Tx, job: Job) => Promise<Progress>])[] = [
  ['begin', begin],
  ['messages', clearChats],
  ['groups', clearGroups],
  ['operations', clearLedger],
  ['settling', settling],
  ['recipients', clearRecipients],
  ['events', clearEvents],
  ['words', waitForWords],
  // A campaign that was being created while the erasure began may have committed after it was read.
  ['late', clearRecipients], // guard: recipients that came late are erased
  ['names', finish],
]

/** Whose erasures went on last: then it is the turn of the next workspace. */
export interface Turn {
  workspace_id: string | null
}

/**
 * The next batch of an erasure among `ids` that can go on: those first that have not begun, and then of each workspace in turn the oldest.
 * Returns whether there may be more to do at once. The row is locked: of several workers one takes it, and where that one is killed nothing
 * of the batch has happened.
 */
export async function eraseNext(
  app: App,
  ids: ReadonlySet<string>,
  turn: Turn = { workspace_id: null },
): Promise<boolean> {
  if (!(await hasOpen(app.db))) return false
  const passed: string[] = []
  let failure: { readonly error: unknown } | undefined
  for (;;) {
    const before = passed.length
    const found = await app.db
      .transaction(async (tx) => {
        const job = await takeJob(tx, { ids: [...ids], passed, ...turn })
        if (!job) return undefined
        // If it fails, it does not hold up the others.
        passed.push(job.id)
        turn.workspace_id = job.workspace_id
        tx.afterCommit(() => app.wake.mark({ workspace_id: job.workspace_id, kind: 'people' }))
        return runStep(app, tx, job)
      })
      .catch((error) => {
        if (passed.length === before) throw error
        failure ??= { error }
        return { waits: true } as const
      })
    if (found?.waits) continue
    if (failure) throw failure.error
    return found !== undefined
  }
}

async function hasOpen(db: Db): Promise<boolean> {
  return (await db.maybe(sql`select 1 from erasures where done_at is null limit 1`)) !== undefined
}

function takeJob(
  tx: Tx,
  {
    ids,
    passed,
    workspace_id,
  }: { readonly ids: readonly string[]; readonly passed: readonly string[] } & Turn,
): Promise<Job | undefined> {
  return tx.maybe<Job>(sql`
    select e.id, e.workspace_id, e.person_id, e.platform, e.number::text, e.contact_allowed, e.tombstones, e.at, e.step, e.after,
      array(select a.id from accounts a where a.workspace_id = e.workspace_id and a.platform = e.platform order by 1) as account_ids
    from erasures e
    where e.done_at is null
      and e.id = any(${ids}::uuid[]) -- guard: an erasure is on the disk before it begins
      and e.id <> all(${passed}::uuid[])
    order by
      e.step <> 'begin', -- guard: every erasure begins before another goes on
      coalesce(e.workspace_id <= ${workspace_id}::uuid, false), e.workspace_id, -- guard: workspaces take turns in erasing
      e.at, e.id
    limit 1 for update of e skip locked`)
}

async function runStep(app: App, tx: Tx, job: Job): Promise<Progress> {
  const at = steps.findIndex(([name]) => name === job.step)
  const step = steps[at]
  if (!step) throw new Error(`An erasure has no step ${job.step}.`)
  const progress = await step[1](app, tx, job)
  if (progress.waits) return progress
  const next = progress.after === null ? (steps[at + 1]?.[0] ?? 'done') : job.step
  await tx.run(sql`
    update erasures set step = ${next}, after = ${progress.after}, cleared = cleared + ${progress.cleared},
      done_at = case when ${next} = 'done' then domain_now() end
    where id = ${job.id}`)
  return progress
}

/** From here on nothing of the person is shown. What is left to clear is content that nothing reaches. */
async function begin(app: App, tx: Tx, job: Job): Promise<Progress> {
  const { person_id, workspace_id, platform, number, account_ids } = job
  await waitForStoring(tx, account_ids) // guard: an erasure waits for what is being stored
  // The database of a backup may know other names than those of the day.
  const names = (await listNames(tx, person_id)).map((name) => tombstoneOf(app, workspace_id, name))
  await addTombstones(tx, { workspace_id, platform, number, tombstones: names })
  await noteLast(tx, account_ids, number)
  await releaseQueued(app, tx, job)
  await eraseEntries(tx, { id: person_id, workspace_id, number })
  // What was being stored while the request committed. Where they have written again since, it stays.
  const gone = await listGone(tx, account_ids, number)
  await eraseShown(tx, gone, number) // guard: what they write again before the job begins stays
  await eraseApprovals(tx, job)
  tx.afterCommit(() => app.wake.mark({ workspace_id, kind: 'everything' }))
  return done
}

const soon = { words_within_seconds: 0 }

/** Messages of the private chats, one account after the other. What the person has written since stays. */
async function clearChats(_: App, tx: Tx, { number, account_ids }: Job): Promise<Progress> {
  for (const account_id of account_ids) {
    const keys = await tx.rows<MessageKey>(sql`
      select m.account_id, m.chat_id::text, m.id::text from erased_chats e
      join messages m on m.account_id = e.account_id and m.chat_id = e.chat_id and m.deleted_at is null
        and (e.from_id is null or m.id < e.from_id) -- guard: all from before they wrote again is cleared
      where e.account_id = ${account_id} and e.chat_id = ${number} order by m.id limit ${clearedAtOnce}`)
    const cleared = await clearMessages(tx, keys, soon)
    if (cleared > 0) return { cleared, after: account_id }
  }
  return done
}

/** Their messages in groups: no index finds them, so all messages of groups are read, by their key. The others stay. */
async function clearGroups(_: App, tx: Tx, job: Job): Promise<Progress> {
  const [account = job.account_ids[0], chat = null, id = null] = job.after?.split('|') ?? []
  if (account === undefined) return done
  const page = await tx.rows<MessageKey & { readonly theirs: boolean }>(sql`
    select account_id, chat_id::text, id::text,
      deleted_at is null and sender_id = ${job.number}::bigint and not is_sender and sent_at <= ${job.at} as theirs
    from messages
    where account_id = ${account} and chat_id < 0
      and (${chat}::bigint is null or (chat_id, id) > (${chat}::bigint, ${id}::bigint))
    order by chat_id, id limit ${readAtOnce}`)
  const cleared = await clearMessages(
    tx,
    page.filter(({ theirs }) => theirs),
    soon,
  )
  const last = page.at(-1)
  if (last && page.length === readAtOnce) return { cleared, after: `${account}|${last.chat_id}|${last.id}` }
  await eraseMember(tx, { account_id: account, number: job.number })
  return { cleared, after: job.account_ids[job.account_ids.indexOf(account) + 1] ?? null }
}

const personOf = ({ person_id: id, workspace_id, account_ids, number, platform, at }: Job) => ({
  ...{ id, workspace_id, account_ids, number, platform, at, names: namesOf(id) },
})

async function clearLedger(_: App, tx: Tx, job: Job): Promise<Progress> {
  const { cleared, last } = await eraseOperations(tx, personOf(job), { after: job.after, limit: readAtOnce })
  if (last !== null) return { cleared, after: last }
  return { cleared: cleared + (await eraseAmbiguous(tx, personOf(job))), after: null }
}

/** One campaign after the other. */
async function clearRecipients(_: App, tx: Tx, job: Job): Promise<Progress> {
  const standIn = (job.tombstones[0] ?? Buffer.alloc(0)).toString('hex')
  const next = await eraseRecipients(tx, personOf(job), { after: job.after, standIn })
  if (next?.in_flight) return { ...done, waits: true }
  return next ? { cleared: 0, after: next.campaign_id } : done
}

/** What has crossed settles first. Then its texts go as well. */
async function settling(app: App, tx: Tx, job: Job): Promise<Progress> {
  if (await isInFlight(tx, personOf(job))) return { ...done, waits: true } // guard: what has crossed settles first
  // The step `operations` cleared what had ended by then. What has settled since ended after the erasure began.
  const from = job.after ?? `${job.at.toISOString()}|00000000-0000-0000-0000-000000000000`
  const messages = await clearChats(app, tx, job)
  if (messages.cleared > 0) return { ...messages, after: from }
  const { cleared, last } = await eraseOperations(tx, personOf(job), { after: from, limit: readAtOnce })
  if (last !== null) return { cleared, after: last }
  return { cleared: cleared + (await eraseAmbiguous(tx, personOf(job))), after: null }
}

async function clearEvents(_: App, tx: Tx, job: Job): Promise<Progress> {
  const person = personOf(job)
  if (job.after === null) await eraseOutbox(tx, person)
  const { erased, last } = await eraseEvents(tx, { ...person, after: job.after ?? '0', limit: readAtOnce })
  await eraseResponses(tx, job.workspace_id, erased)
  return { cleared: 0, after: last }
}

/** The search takes the words of cleared messages out of its lists. */
async function waitForWords(_: App, tx: Tx, { account_ids }: Job): Promise<Progress> {
  return (await areWordsForgotten(tx, account_ids)) ? done : { ...done, waits: true } // guard: an erasure waits for the search
}

async function finish(app: App, tx: Tx, job: Job): Promise<Progress> {
  const { id, workspace_id, person_id, contact_allowed } = job
  // What was being stored while the erasure began.
  await eraseShown(tx, await listGone(tx, job.account_ids, job.number), job.number)
  await eraseApprovals(tx, job)
  await forgetNames(tx, person_id, job.at)
  await record(app, tx, 'system', {
    action: 'person.erased',
    target: person_id,
    workspace_id,
    detail: { erasure: id, contact_allowed },
  })
  return done
}
