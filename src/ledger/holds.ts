/**
 * Holds an account's campaign messages when the platform keeps answering its sends with one error that the adapter does not
 * list. Each such send has an unknown outcome and is not repeated, so a campaign would use up its recipients one by one. A
 * single send stays possible: its caller sees the outcome.
 */
import { given } from '../db/given.ts'
import { sql, type Tx } from '../db/sql.ts'
import type { Outcome } from '../platform/port.ts'

/** How many sends in a row: fewer could be a fault that passes, and each costs a recipient. */
export const unlistedMax = 5 // limit: sends with one unlisted error

/** What the platform answered to a send of an account: the name of an error that is not listed, or null for any other answer. */
interface SendAnswer {
  readonly account_id: string
  readonly error: string | null
}

/** Undefined: no answer. It neither counts nor ends a row of errors. */
export function answerOf(outcome: Outcome<unknown>): string | null | undefined {
  if (outcome.kind === 'not_written') return undefined
  if (outcome.kind !== 'unknown') return null
  return outcome.error === undefined ? undefined : errorName(outcome.error)
}

const nameMax = 64

/** A platform may call an error anything, of any length. Only letters, digits and underscores are stored and shown. */
export function errorName(text: string): string {
  const name = text.slice(0, nameMax).replaceAll(/[^A-Za-z0-9_]/g, '_') // guard: characters of an error name
  return name === '' ? 'UNNAMED' : name
}

/** Locks the accounts before the operations, as every transaction does. */
export async function lockHosts(tx: Tx, account_ids: readonly string[]): Promise<void> {
  await tx.run(sql`
    select 1 from account_hosts where account_id = any(${account_ids}) order by account_id for no key update`)
}

/** The platform answered sends of these accounts, and with no unlisted error: whatever was counted before is over. */
export function endUnlisted(tx: Tx, account_ids: readonly string[]): Promise<number> {
  return tx.run(sql`
    update account_hosts h set unlisted_error = null, unlisted_sends = 0
    from (
      select account_id from account_hosts where account_id = any(${account_ids}) and unlisted_error is not null
      order by account_id for no key update) counted
    where h.account_id = counted.account_id`)
}

/** Counts answers in their order, and holds the campaign messages of an account that has too many. Needs `lockHosts`. */
export async function countUnlisted(tx: Tx, answers: readonly SendAnswer[]): Promise<void> {
  const runs = [...Map.groupBy(answers, ({ account_id }) => account_id).values()].map(runsOf)
  for (let at = 0; runs.some((own) => own.length > at); at++) {
    await countRuns(
      tx,
      runs.flatMap((own) => own.slice(at, at + 1)),
    )
  }
}

interface Run extends SendAnswer {
  readonly sends: number
}

/** Answers that follow each other and are the same. */
function runsOf(answers: readonly SendAnswer[]): Run[] {
  const runs: Run[] = []
  for (const { account_id, error } of answers) {
    const last = runs.at(-1)
    if (last && last.error === error) runs[runs.length - 1] = { ...last, sends: last.sends + 1 }
    else runs.push({ account_id, error, sends: 1 })
  }
  return runs
}

async function countRuns(tx: Tx, runs: readonly Run[]): Promise<void> {
  await tx.run(sql`
    with counted as (
      select g.account_id, g.error, case
          when g.error is null then 0
          when h.unlisted_error = g.error -- guard: one name in a row
            then h.unlisted_sends + g.sends
          else g.sends end as sends
      from ${given(runs, { account_id: 'text', error: 'text', sends: 'int' })} as g
      join account_hosts h on h.account_id = g.account_id)
    update account_hosts h set unlisted_error = c.error, unlisted_sends = c.sends,
      campaigns_held_at = case when c.sends >= ${unlistedMax} then coalesce(h.campaigns_held_at, domain_now()) else h.campaigns_held_at end,
      campaigns_held_by = case when c.sends >= ${unlistedMax} then coalesce(h.campaigns_held_by, c.error) else h.campaigns_held_by end
    from counted c where h.account_id = c.account_id`)
}

/** A person lets the campaign messages go on; it takes as many errors to hold them again. False: they did not hold. */
export async function endHold(tx: Tx, account_id: string): Promise<boolean> {
  const changed = await tx.run(sql`
    update account_hosts set campaigns_held_at = null, campaigns_held_by = null, unlisted_error = null, unlisted_sends = 0
    where account_id = ${account_id} and campaigns_held_at is not null`)
  return changed > 0
}
