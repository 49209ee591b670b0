/** One message of a campaign, from the due recipient to the recorded outcome. */

import type { App } from '../../../app.ts'
import { countLookup } from '../../../ledger/account-usage.ts'
import {
  concludeProven,
  type DrivenAccount,
  submitCrossed,
  takeBack,
  type Ways,
} from '../../../ledger/attempt.ts'
import { releaseNeverSent } from '../../../ledger/crossing.ts'
import { findAttempt } from '../../../ledger/direct-crossing.ts'
import { isTrouble, noteFloodWait } from '../../../ledger/recording.ts'
import { within } from '../../../ledger/within.ts'
import type { Identifier, Person } from '../../../platform/port.ts'
import type { FactsRow } from '../planning/recipient-facts.ts'
import type { MessageBoundary } from './crossing.ts'
import { endRecipient, waitForRecipient } from './locked-recipients.ts'
import type { Due } from './pick.ts'

export interface MessageWays extends Ways {
  readonly messages: MessageBoundary
}

const lookUpMsMax = 15_000
/** How long to wait after a message did not cross: without a wait, it would be picked again and again. */
const uncrossedMs = 50

/** `avoid`: it failed for an internal reason, and would fail again if picked immediately. */
export async function attemptMessage(
  app: App,
  ways: MessageWays,
  { row, plan }: Due,
  account: DrivenAccount,
): Promise<'done' | 'avoid'> {
  const { held } = account
  const found = plan.do === 'look_up' ? await lookUp(app, ways, row, account) : null
  if (found === 'done' || found === 'avoid') return found
  // Taken before the boundary, so that a pause anywhere after it counts.
  const startedAt = app.sources.now() // guard: clock starts before the boundary of a message
  const wanted = { row, found, gapMs: gapMsOf(app, account) }
  const answer = await ways.messages.cross({ id: app.sources.newId(), held, wanted })
  const { token, status } = answer
  if (status === 'lost') {
    await takeBack(app, ways, answer, () => releaseIfCrossed(app, row, token))
    return 'done'
  }
  if (status === 'failed') return 'avoid'
  if (status !== 'crossed') {
    if (status !== 'ended') await app.sources.sleep(uncrossedMs)
    return 'done'
  }
  const { operation, proof } = answer
  // guard: a proven message makes no call
  if (proof) await concludeProven(app, ways, operation, { token, proof })
  else {
    const prepared = await app.operations
      .get(operation.kind)
      ?.prepare({ db: app.db, account: held, session: account.session }, operation)
    const submit =
      prepared?.kind === 'accepted'
        ? prepared.value
        : async () => ({ kind: 'not_written', reason: 'preparation failed' }) as const
    await submitCrossed(app, ways, operation, { token, startedAt, held, submit })
  }
  return 'done'
}

/** The minimum time until the account's next message. */
export function gapMsOf(
  { config, sources }: Pick<App, 'config' | 'sources'>,
  { gapJitter }: Pick<DrivenAccount, 'gapJitter'>,
): number {
  return Math.round(config.pacing_seconds * 1_000 * (1 + gapJitter * sources.random()))
}

/** Looks a contact up within the account's limits. A failure here costs a look-up and nothing else. */
async function lookUp(
  app: App,
  { recorder }: MessageWays,
  row: FactsRow,
  { held, session }: DrivenAccount,
): Promise<Person | 'done' | 'avoid'> {
  const { allowed } = await app.limits.take(`lookup:${held.account_id}`, {
    limit: app.config.start_chat_minute,
    seconds: 60,
  })
  if (!allowed) return 'avoid'
  await countLookup(app.db, held)
  const found = await within(app.sources, lookUpMsMax, session.resolve(identifierOf(row)))
  // crash point 3d: the platform was asked who a contact is, nothing is written
  if (found?.kind === 'accepted') return checkFound(app, row, found.value)
  if (found?.kind === 'refused') {
    const { reason } = found
    if (isTrouble(reason)) await recorder.noteTrouble(held, reason)
    else await endRecipient(app, row, { status: 'failed', reason })
    return 'done'
  }
  if (found?.kind === 'flood_wait') {
    const about = { ...held, id: null }
    // guard: a flood wait of a look up is noted
    await app.db.transaction((tx) => noteFloodWait(tx, about, found))
    return 'done'
  }
  return 'avoid'
}

async function checkFound(app: App, row: FactsRow, person: Person): Promise<Person | 'done'> {
  if (person.kind !== 'person') {
    await endRecipient(app, row, { status: 'failed', reason: 'identity_ineligible' })
    return 'done'
  }
  // The name now belongs to another person. Of the person we meant, only the chat is known.
  // guard: a name that is another person
  if (row.chat_id !== null && row.chat_id !== person.id) {
    await endRecipient(app, row, { status: 'failed', reason: 'username_not_found' })
    return 'done'
  }
  return person
}

/** Parses `contact`, which is in normal form. */
function identifierOf({ contact }: FactsRow): Identifier {
  const at = contact.indexOf(':')
  const [kind, value] = [contact.slice(0, at), contact.slice(at + 1)]
  if (kind === 'username') return { kind, value }
  if (kind === 'phone') return { kind, value: `+${value}` }
  return { kind: 'id', value }
}

/** Once no transaction holds the recipient, the ledger shows whether the message crossed. */
async function releaseIfCrossed(app: App, { recipient_id, step }: FactsRow, token: string): Promise<void> {
  await waitForRecipient(app, recipient_id)
  const row = await app.db.transaction((tx) => findAttempt(tx, { recipient_id, step_no: step }))
  if (row?.attempt_token === token) await releaseNeverSent(app, { id: row.id, token })
}
