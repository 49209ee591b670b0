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
import type { Person, PlatformRefusal } from '../../../platform/port.ts'
import type { Identifier } from '../../../rules/identifier.ts'
import { dayEnds } from '../../../rules/zones.ts'
import { findOwner, learnAsked, learnPeople, type NameOwner } from '../../people/people.ts'
import { type FactsRow, factsOf } from '../planning/recipient-facts.ts'
import type { MessageBoundary } from './crossing.ts'
import {
  endRecipient,
  putOffUnfound,
  requireLookUp,
  tieRecipient,
  waitForRecipient,
} from './locked-recipients.ts'
import type { Due } from './pick.ts'

export interface MessageWays extends Ways {
  readonly messages: MessageBoundary
}

const lookUpMsMax = 15_000
/** How long to wait after a message did not cross: without a wait, it would be picked again and again. */
const uncrossedMs = 50

/**
 * What it comes to. `avoid`: it failed for an internal reason, and would fail again if picked immediately. `lookUpsMs`: the account has
 * had its look-ups of this minute, and may look up again after so long.
 */
type Attempted = 'done' | 'avoid' | { readonly lookUpsMs: number }

export async function attemptMessage(
  app: App,
  ways: MessageWays,
  { row: picked, plan }: Due,
  account: DrivenAccount,
): Promise<Attempted> {
  const { held } = account
  const asked = plan.do === 'look_up' ? await ask(app, ways, picked, account) : null
  if (asked === 'done' || asked === 'avoid' || (asked && 'lookUpsMs' in asked)) return asked
  const { row, found } = asked ?? { row: picked, found: null }
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

/** A contact with whom the platform has named, tied to them. */
interface FoundContact {
  readonly row: FactsRow
  readonly found: Person
}

type Asked = FoundContact | Attempted

/** Asks the platform who a contact is: about the person known first, which is no look-up. A failure here costs nothing else. */
async function ask(app: App, ways: MessageWays, row: FactsRow, account: DrivenAccount): Promise<Asked> {
  const identifier = identifierOf(row)
  const { held } = account
  const { number, known }: NameOwner =
    row.tied_to === null ? await findOwner(app.db, held, identifier) : { number: row.tied_to, known: true }
  const answer = number === null ? null : await askAbout(app, ways, { row, identifier, number }, account)
  if (answer !== null) return answer
  if (!row.needs_lookup) {
    // guard: a look up that was not planned
    await requireLookUp(app, row)
    return 'done'
  }
  return lookUp(app, ways, { row, identifier, known }, account)
}

interface AskedAbout {
  readonly row: FactsRow
  readonly identifier: Identifier
  readonly number: string
}

/** Null: the answer does not show whose name it is. */
async function askAbout(
  app: App,
  { recorder }: MessageWays,
  { row, identifier, number }: AskedAbout,
  { held, session }: DrivenAccount,
): Promise<Asked | null> {
  const asked = await within(app.sources, lookUpMsMax, session.askPerson(number, identifier))
  if (asked?.kind === 'accepted') {
    const person = await learnAsked(app.db, held, identifier, asked.value)
    if (person) return checkFound(app, row, person)
    if (identifier.kind !== 'id') return null
    return refuse(app, recorder, { row, held, reason: 'username_not_found' })
  }
  if (asked?.kind === 'refused') {
    const { reason } = asked
    return isTrouble(reason) || identifier.kind === 'id' ? refuse(app, recorder, { row, held, reason }) : null
  }
  if (asked?.kind !== 'flood_wait') return 'avoid'
  // Nobody is looked up by id: such a contact waits as look-ups do.
  const stops = identifier.kind === 'id' ? 'lookups' : asked.stops // guard: asking about a number waits as look ups do
  await app.db.transaction((tx) => noteFloodWait(tx, { ...held, id: null }, { ...asked, stops }))
  if (identifier.kind !== 'id') return null
  await requireLookUp(app, row)
  return 'done'
}

interface LookedUp {
  readonly row: FactsRow
  readonly identifier: Identifier
  /** Some person has or had the name. */
  readonly known: boolean
}

/** Looks a contact up within the account's limits. */
async function lookUp(
  app: App,
  { recorder }: MessageWays,
  { row, identifier, known }: LookedUp,
  { held, session }: DrivenAccount,
): Promise<Asked> {
  const { allowed, retry_after } = await app.limits.take(`lookup:${held.account_id}`, {
    limit: app.config.start_chat_minute,
    seconds: 60,
  })
  if (!allowed) return { lookUpsMs: retry_after * 1_000 } // guard: look ups a minute
  await countLookup(app.db, held)
  const found = await within(app.sources, lookUpMsMax, session.resolve(identifier))
  // crash point 3d: the platform was asked who a contact is, nothing is written
  if (found?.kind === 'accepted') {
    await learnPeople(app.db, held, [found.value], { identifier, has_name: true }) // guard: the phone that a look_up returns
    return checkFound(app, row, found.value)
  }
  if (found?.kind === 'refused') {
    const { reason } = found
    // The platform also says so when it was asked too often.
    // guard: nobody is no proof
    if (reason === 'username_not_found' && known && !row.unfound) {
      const { now, hours } = factsOf(app, row)
      await putOffUnfound(app, row, dayEnds(hours, now))
      return 'done'
    }
    return refuse(app, recorder, { row, held, reason })
  }
  if (found?.kind === 'flood_wait') {
    const about = { ...held, id: null }
    // guard: a flood wait of a look up is noted
    await app.db.transaction((tx) => noteFloodWait(tx, about, found))
    return 'done'
  }
  return 'avoid'
}

async function refuse(
  app: App,
  recorder: MessageWays['recorder'],
  { row, held, reason }: { row: FactsRow; held: DrivenAccount['held']; reason: PlatformRefusal },
): Promise<'done'> {
  // guard: trouble of the account ends no contact
  if (isTrouble(reason)) await recorder.noteTrouble(held, reason)
  else await endRecipient(app, row, { status: 'failed', reason })
  return 'done'
}

/** Ties the recipient to the person at once: a later answer that names somebody else ends it. */
async function checkFound(app: App, row: FactsRow, person: Person): Promise<Asked> {
  // guard: only people are written to
  if (person.kind !== 'person') {
    await endRecipient(app, row, { status: 'failed', reason: 'identity_ineligible' })
    return 'done'
  }
  // The recipient keeps the person it was tied to, also when another account of the pool takes it over.
  // guard: a name that is another person
  if (row.tied_to !== null && row.tied_to !== person.id) {
    await endRecipient(app, row, { status: 'failed', reason: 'name_changed' })
    return 'done'
  }
  const tied = await tieRecipient(app, row, person)
  return tied ? { row: { ...row, version: tied.version }, found: person } : 'done'
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
  if (row?.attempt_token === token) await releaseNeverSent(app, { id: row.id, token }) // guard: only the own attempt is taken back
}
