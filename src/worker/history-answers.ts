/** Answers questions about what the platform itself has of a chat. It only reads, and stores nothing but the answer. */

import type { App } from '../app.ts'
import {
  type HistoryQuestion,
  isAsked,
  listQuestions,
  noteAnswer,
  type ShownMessage,
} from '../capabilities/history/history.ts'
import type { DrivenAccount } from '../ledger/attempt.ts'
import { findFloodWait, noteFlood } from '../ledger/floods.ts'
import { within } from '../ledger/within.ts'
import { toWellFormed } from '../lib/text.ts'

const pageMessages = 100
/** Per chat: 10,000 messages. A chat with more gets no answer, rather than half of one. */
const pagesMax = 100
const callMsMax = 20_000

/** Starts on the accounts that are not answering yet. Each answers one chat after the other, at the platform's pace. */
export async function answerQuestions(
  app: App,
  driven: ReadonlyMap<string, DrivenAccount>,
  answering: Set<string>,
): Promise<void> {
  const free = [...driven.keys()].filter((account_id) => !answering.has(account_id))
  const questions = free.length > 0 ? await listQuestions(app.db, free) : []
  for (const [account_id, own] of Map.groupBy(questions, (one) => one.account_id)) {
    const account = driven.get(account_id)
    if (!account) continue
    answering.add(account_id)
    void answerAll(app, account, own)
      .catch((err) =>
        app.log.warn({ err, account_id }, 'the platform could not be asked for the messages of a chat'),
      )
      .finally(() => answering.delete(account_id))
  }
}

/** Does not call the platform if the caller that asked has given up meanwhile, nor in a flood wait. */
async function answerAll(
  app: App,
  account: DrivenAccount,
  questions: readonly HistoryQuestion[],
): Promise<void> {
  for (const question of questions) {
    if (!(await isAsked(app.db, question.id))) continue
    const flooded = (await findFloodWait(app.db, question.account_id, 'reading')) !== undefined
    await noteAnswer(app.db, question.id, flooded ? null : await readShown(app, account, question))
  }
}

/** The account's own messages in the chat since then; null if the platform did not return all of them. */
async function readShown(
  app: App,
  { session, held, paceMs }: DrivenAccount,
  { chat_id, since }: HistoryQuestion,
): Promise<ShownMessage[] | null> {
  const shown: ShownMessage[] = []
  let before: { readonly message_id: string } | null = null
  for (let pages = 0; pages < pagesMax; pages++) {
    const page = session.history({ chat_id, before, limit: pageMessages })
    const outcome = await within(app.sources, callMsMax, page)
    if (outcome?.kind === 'flood_wait') await noteFlood(app.db, held.account_id, outcome)
    if (outcome?.kind !== 'accepted') return null
    // After the last page, too: the next chat follows immediately.
    if (paceMs > 0) await within(app.sources, paceMs, new Promise<void>(() => {}))
    const messages = toWellFormed(outcome.value)
    const recent = messages.filter(({ timestamp }) => Date.parse(timestamp) >= since.getTime())
    shown.push(...recent.filter(({ is_sender }) => is_sender).map(({ id, random_id }) => ({ id, random_id })))
    const oldest = messages.at(-1)
    if (!oldest || messages.length < pageMessages || recent.length < messages.length) return shown
    before = { message_id: oldest.id }
  }
  return null
}
