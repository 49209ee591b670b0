/** Delivers queued posts as webhooks are delivered: checked addresses, the same time limit, the same retries. */
import type { App } from '../../app.ts'
import { type Db, sql } from '../../db/sql.ts'
import { type CallOutcome, HttpCaller, isSuccess, nextDelay } from '../webhooks/webhooks.ts'

/** Longer than one call may take. After it another process sends the post of one that died. */
const leaseSeconds = 60
const claimMax = 8

interface Post {
  readonly id: string
  readonly kind: string
  readonly text: string
  readonly at: Date
  readonly attempts: number
}

/** Posts what is due. True: there may be more. */
export async function deliverPosts(app: App, url: string, stopping?: AbortSignal): Promise<boolean> {
  const posts = await claimPosts(app.db)
  for (const post of posts) {
    const outcome = await sendAlert(app, url, post, stopping)
    await record(app, post, outcome)
  }
  return posts.length > 0 && !stopping?.aborted
}

/** A post of a subject waits for the one before it: what is over must not arrive before what began. */
function claimPosts(db: Db): Promise<Post[]> {
  return db.rows<Post>(sql`
    with due as (
      select p.id from alert_posts p
      where p.due_at <= real_now()
        and not exists (select from alert_posts b where b.kind = p.kind and b.subject = p.subject and b.id < p.id) -- guard: alerts in order
      order by p.id limit ${claimMax} for update skip locked)
    update alert_posts p set due_at = real_now() + make_interval(secs => ${leaseSeconds}) from due
    where p.id = due.id returning p.id, p.kind, p.text, p.at, p.attempts`)
}

/** One call, with what chat tools show as it is. Undefined: a stop cut it off. */
export async function sendAlert(
  { config }: Pick<App, 'config'>,
  url: string,
  { text, kind, at }: { readonly text: string; readonly kind: string; readonly at: Date },
  stopping?: AbortSignal,
): Promise<CallOutcome | undefined> {
  const caller = new HttpCaller({ allow: config.webhook_allow })
  const body = JSON.stringify({ text: withLink(text, config.base_url), kind, at: at.toISOString() })
  try {
    return await caller.post({ url, headers: {}, body }, stopping)
  } finally {
    await caller.close()
  }
}

function withLink(text: string, base_url: string | undefined): string {
  return base_url === undefined ? text : `${text} ${base_url}/dashboard/operator`
}

/** Null: it was accepted. */
export function problemOf({ error, status }: CallOutcome): string | null {
  return error ?? (isSuccess(status) ? null : `status ${status}`)
}

async function record({ db, log }: App, post: Post, outcome: CallOutcome | undefined): Promise<void> {
  const { id, kind } = post
  if (!outcome) {
    await db.run(sql`update alert_posts set due_at = real_now() where id = ${id}`)
    return
  }
  const problem = problemOf(outcome)
  const attempt = post.attempts + 1
  const { retry_after } = outcome
  const delay = problem && nextDelay({ delivery_id: id, attempt, series_attempt: attempt, retry_after })
  if (delay) {
    log.warn({ kind, problem, attempt }, 'an alert was not accepted')
    await db.run(sql`
      update alert_posts set attempts = ${attempt}, last_error = ${problem},
        due_at = real_now() + make_interval(secs => ${delay}::float8) where id = ${id}`)
    return
  }
  if (problem) log.error({ kind, problem, attempt }, 'an alert was given up')
  await db.run(sql`delete from alert_posts where id = ${id}`)
}

export interface WaitingPosts {
  readonly posts: number
  readonly last_error: string | null
}

/** Posts whose last attempt failed. */
export function readFailedPosts(db: Db): Promise<WaitingPosts> {
  return db.one<WaitingPosts>(sql`
    select count(*)::int as posts, max(last_error) as last_error from alert_posts where last_error is not null`)
}
