/** Compares the problems of this moment with what was posted, and queues the posts that are missing. */
import type { App, Topic } from '../../app.ts'
import { given } from '../../db/given.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { newId } from '../../lib/ids.ts'
import { fleetingKinds, instanceKinds, listProblems, type Problem, patientKinds } from './problems.ts'

/** New posts may be due. */
export const alertsQueued: Topic = { topic: 'alerts' }

/** Any number that no other advisory lock of ours has. */
const alertLock = 7_346_010
const patienceSeconds = 300
const settleSeconds = 60
const silenceSeconds = 3_600
/** A test by an operator must not mute the real failure a minute later; a switch that flaps must not fill a chat. */
const instanceBeginsMax = 3

/** Every process looks; one at a time writes, and the others skip their turn. Returns how many posts it queued. */
export async function noteProblems({ db, wake }: Pick<App, 'db' | 'wake'>): Promise<number> {
  const queued = await db.transaction(async (tx) => {
    const { mine } = await tx.one<{ mine: boolean }>(
      sql`select pg_try_advisory_xact_lock(${alertLock}) as mine`,
    )
    if (!mine) return 0
    const problems = await listProblems(tx)
    await storeProblems(tx, problems)
    return (await queueEnds(tx)) + (await queueBeginnings(tx, problems))
  })
  if (queued > 0) wake.signal(alertsQueued)
  return queued
}

async function storeProblems(tx: Tx, problems: readonly Problem[]): Promise<void> {
  const columns = { kind: 'text', subject: 'text', over_text: 'text' } as const
  await tx.run(sql`
    insert into alerts as a (kind, subject, over_text, wrong_since)
    select kind, subject, over_text, real_now() from ${given(problems, columns)} as g
    on conflict (kind, subject) do update set right_since = null, over_text = excluded.over_text,
      wrong_since = coalesce(a.wrong_since, excluded.wrong_since)`)
  // One that no post has begun starts again from the beginning.
  await tx.run(sql`
    update alerts a set right_since = coalesce(a.right_since, real_now()),
      wrong_since = case when a.open then a.wrong_since end
    where not exists (select from ${given(problems, columns)} as g where g.kind = a.kind and g.subject = a.subject)`)
  await tx.run(sql`
    delete from alerts where right_since is not null and not open
      and coalesce(begun_at < real_now() - make_interval(secs => ${silenceSeconds}), true)`)
}

const recentBegins = sql`array(
  select at from unnest(begins) as at where at > real_now() - make_interval(secs => ${silenceSeconds}))`

async function queueBeginnings(tx: Tx, problems: readonly Problem[]): Promise<number> {
  const begun = await tx.rows<Pick<Problem, 'kind' | 'subject'>>(sql`
    update alerts set open = true, begun_at = real_now(), begins = ${recentBegins} || real_now()
    where not open and right_since is null
      and (begun_at is null or begun_at < real_now() - make_interval(secs => ${silenceSeconds}) -- guard: alerts once an hour
        or kind = any(${instanceKinds}) -- guard: an instance is heard at each begin
          and cardinality(${recentBegins}) < ${instanceBeginsMax} -- guard: three begins an hour
      )
      and (kind <> all(${patientKinds}) or wrong_since <= real_now() - make_interval(secs => ${patienceSeconds})) -- guard: a loop fails for a while
    returning kind, subject`)
  const isBegun = ({ kind, subject }: Problem) =>
    begun.some((each) => each.kind === kind && each.subject === subject)
  return queuePosts(tx, problems.filter(isBegun))
}

/** Only what was said to begin is said to be over. */
async function queueEnds(tx: Tx): Promise<number> {
  const ended = await tx.rows<{ kind: string; subject: string; text: string }>(sql`
    update alerts set open = false, wrong_since = null
    where open and right_since is not null
      and (kind <> all(${fleetingKinds}) or right_since <= real_now() - make_interval(secs => ${settleSeconds})) -- guard: a restart ends no alert
    returning kind, subject, over_text as text`)
  return queuePosts(tx, ended)
}

async function queuePosts(
  tx: Tx,
  posts: readonly { readonly kind: string; readonly subject: string; readonly text: string }[],
): Promise<number> {
  if (posts.length === 0) return 0
  return tx.run(sql`
    insert into alert_posts (id, kind, subject, text)
    select id, kind, subject, text
    from ${given(posts, { id: ['uuid', () => newId()], kind: 'text', subject: 'text', text: 'text' })} as g`)
}
