/**
 * Asks the platform itself what it has of a chat, from another process than the one that drives the account: the question is
 * a row, the account's session answers it, and nothing stored is used as an answer.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App, Topic } from '../../app.ts'
import { given } from '../../db/given.ts'
import { type Db, sql } from '../../db/sql.ts'
import { findFloodWait } from '../../ledger/floods.ts'
import { listLiveness } from '../../ledger/liveness.ts'
import { newId } from '../../lib/ids.ts'
import type { ChatNumber } from '../../lib/shapes.ts'

/** A caller waits for what the platform has of a chat. */
export const historyWanted: Topic = { topic: 'history' }

/** A call may take 20 s, and a question may take several: a session without an answer for this long counts as silent. */
const answerMsMax = 60_000
const pollMs = 100
/** Questions older than this were left by a killed process. */
const forgottenHours = 24
/** How many questions one round answers; the rest wait for the next. */
const questionsMax = 500

export interface AskedChat {
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly since: Date
}

/** A message that the account sent. `random_id` is null if the platform does not show it. */
export interface ShownMessage {
  readonly id: string
  readonly random_id: string | null
}

export interface AnsweredChat extends AskedChat {
  /** What the platform has, or why it could not be asked. */
  readonly answer: readonly ShownMessage[] | string
}

interface OpenQuestion extends AskedChat {
  readonly id: string
}

/** Every chat with its answer, or the reason where the account cannot be asked or stops answering. */
export async function askHistory(
  app: App,
  chats: readonly AskedChat[],
  silentMsMax = answerMsMax,
): Promise<AnsweredChat[]> {
  const asking = chats.map((chat) => ({ ...chat, id: newId() }))
  const groups = [...Map.groupBy(asking, ({ account_id }) => account_id)]
  const answered = groups.map(async ([account_id, own]) => {
    const reason = await findObstacle(app.db, account_id)
    if (reason !== undefined) return own.map((chat) => ({ ...chat, answer: reason }))
    return askAccount(app, own, silentMsMax)
  })
  return (await Promise.all(answered)).flat()
}

async function findObstacle(db: Db, account_id: string): Promise<string | undefined> {
  const live = await listLiveness(db, [account_id])
  if (!live.get(account_id)) return 'its session is not live'
  const seconds = await findFloodWait(db, account_id, 'reading')
  return seconds === undefined ? undefined : `the platform asks it to wait ${seconds} s`
}

async function askAccount(
  app: App,
  chats: readonly OpenQuestion[],
  silentMsMax: number,
): Promise<AnsweredChat[]> {
  const ids = chats.map(({ id }) => id)
  await insertQuestions(app.db, chats)
  app.wake.signal(historyWanted)
  try {
    let count = 0
    for (let heardAt = performance.now(); performance.now() - heardAt < silentMsMax; ) {
      await sleep(pollMs)
      const { answered } = await app.db.one<{ answered: number }>(sql`
        select count(*)::int as answered from history_questions
        where id = any(${ids}::uuid[]) and answered_at is not null`)
      if (answered > count) heardAt = performance.now()
      count = answered
      if (count === ids.length) break
    }
    return await readAnswers(app.db, chats)
  } finally {
    await app.db.run(sql`delete from history_questions where id = any(${ids}::uuid[])`)
  }
}

async function insertQuestions(db: Db, chats: readonly OpenQuestion[]): Promise<void> {
  await db.run(sql`
    delete from history_questions where asked_at < clock_timestamp() - make_interval(hours => ${forgottenHours})`)
  await db.run(sql`
    insert into history_questions (id, account_id, chat_id, workspace_id, since)
    select g.id, g.account_id, g.chat_id, a.workspace_id, g.since
    from ${given(chats, { id: 'uuid', account_id: 'text', chat_id: 'bigint', since: ['timestamptz', ({ since }) => since.toISOString()] })} as g
    join accounts a on a.id = g.account_id`)
}

async function readAnswers(db: Db, chats: readonly OpenQuestion[]): Promise<AnsweredChat[]> {
  const rows = await db.rows<{ id: string; shown: ShownMessage[] | null }>(sql`
    select id, shown from history_questions
    where id = any(${chats.map(({ id }) => id)}::uuid[]) and answered_at is not null`)
  const answers = new Map(rows.map(({ id, shown }) => [id, shown ?? 'the platform did not tell']))
  return chats.map((chat) => ({ ...chat, answer: answers.get(chat.id) ?? 'its worker did not answer' }))
}

export interface HistoryQuestion {
  readonly id: string
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly since: Date
}

/** The open questions of these accounts. */
export function listQuestions(db: Db, account_ids: readonly string[]): Promise<HistoryQuestion[]> {
  return db.rows<HistoryQuestion>(sql`
    select id, account_id, chat_id::text, since from history_questions
    where account_id = any(${account_ids}) and answered_at is null order by id limit ${questionsMax}`)
}

/** Whether a caller still waits for it. */
export async function isAsked(db: Db, id: string): Promise<boolean> {
  const row = await db.maybe(sql`select from history_questions where id = ${id} and answered_at is null`)
  return row !== undefined
}

/** Null: the platform did not answer. */
export async function noteAnswer(db: Db, id: string, shown: readonly ShownMessage[] | null): Promise<void> {
  await db.run(sql`
    update history_questions set answered_at = clock_timestamp(),
      shown = ${shown === null ? null : JSON.stringify(shown)}::jsonb
    where id = ${id} and answered_at is null`)
}
