/** Opening a private chat: the whole operation, from the request's identifier to the stored chat. */
import { z } from 'zod'
import type { App } from '../../app.ts'
import type { Account, AccountKey, Caller } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { countLookup } from '../../ledger/account-usage.ts'
import { ApiError } from '../../lib/errors.ts'
import { chatIdOf, chatNumberShape } from '../../lib/shapes.ts'
import { quote } from '../../lib/text.ts'
import {
  type Forbidden,
  type NewOperation,
  type OperationKind,
  operationKind,
  type Target,
} from '../../operation.ts'
import type { Chat, Outcome, Person } from '../../platform/port.ts'
import { type Identifier, parseIdentifier } from '../../rules/identifier.ts'
import { noteChat, storeChats } from '../chats/chats.ts'
import { requireContacts, storeContacts } from '../contacts/contacts.ts'
import {
  findErasedChats,
  findOwner,
  learnAsked,
  learnPeople,
  noteReturned,
  wasErased,
} from '../people/people.ts'
import { findSuppressed, requireUnlisted } from '../suppressions/suppressions.ts'

interface StartRequest {
  readonly account_id: string
  readonly identifier: string
  readonly provider?: string | undefined
  readonly text?: string | undefined
}

/** Whether the request uses fields that only the gate `extended` allows. */
export function isExtended({ identifier, provider, text }: StartRequest): boolean {
  const parsed = parseIdentifier(identifier)
  const other = typeof parsed === 'object' && parsed.kind !== 'username'
  return other || provider !== undefined || text !== undefined
}

/** Refuses identifiers that cannot name a person, before anything is looked up. */
export async function requireStartable(
  app: App,
  _caller: Caller,
  { body }: { readonly body: StartRequest },
): Promise<void> {
  const parsed = readIdentifier(body.identifier)
  const { gates } = await app.settings.current()
  if (gates.has('extended')) return
  if (parsed.kind !== 'username') throw new ApiError('unsupported_identifier')
  for (const name of ['provider', 'text'] as const) {
    if (body[name] !== undefined) {
      throw new ApiError('invalid_request', {
        detail: `${name} needs the gate extended, which is closed on this instance.`,
      })
    }
  }
}

function readIdentifier(identifier: string): Identifier {
  const parsed = parseIdentifier(identifier)
  if (parsed === 'invalid') {
    throw new ApiError('invalid_username', {
      detail: `${quote(identifier)} is not a username: 3 to 32 letters, digits and underscores, a letter first.`,
    })
  }
  if (parsed === 'unsupported') {
    throw new ApiError('unsupported_identifier', {
      detail: 'identifier must be a username, an @username, or a link such as t.me/name.',
    })
  }
  return parsed
}

/** The operation that a request asks for. */
export async function wantChat(
  app: App,
  { caller, accounts, body }: { caller: Caller; accounts: readonly Account[]; body: StartRequest },
): Promise<NewOperation> {
  const [account] = accounts
  if (!account) throw new ApiError('account_unavailable')
  if (body.provider !== undefined && body.provider.toLowerCase() !== account.provider) {
    throw new ApiError('invalid_request', {
      detail: `provider must be ${account.provider}, the platform of this account.`,
    })
  }
  await requireContacts(app.db)
  const identifier = readIdentifier(body.identifier)
  const known = { [identifier.kind]: identifier.value }
  // Do not look up a person who is known to be suppressed. `findPerson` checks again after the look-up.
  const key = { workspace_id: caller.workspace_id, account_id: account.id }
  await requireUnlisted(app, key, known)
  const stored: Payload = { identifier }
  return { account_id: account.id, chat_id: null, payload: stored }
}

const payload = z.object({
  identifier: z.discriminatedUnion('kind', [
    z.object({ kind: z.literal('username'), value: z.string() }),
    z.object({ kind: z.literal('phone'), value: z.string() }),
    z.object({ kind: z.literal('id'), value: z.string() }),
  ]),
})
type Payload = z.infer<typeof payload>

const person = z.object({
  id: z.string(),
  name: z.string(),
  username: z.string().nullable(),
  phone: z.string().nullable(),
  kind: z.enum(['person', 'bot', 'deleted', 'self']),
})

const chat = z.object({
  id: chatNumberShape,
  kind: z.enum(['private', 'group', 'channel']),
  name: z.string(),
  username: z.string().nullable(),
  unread_count: z.number().nullable(),
  participants: z.array(person).nullable(),
})

export const startChat = operationKind<Payload, Person, Chat>({
  kind: 'start_chat',
  found_in_history: false,
  stopped_by: 'lookups',
  forgettable: true,
  payload,
  answer: chat,
  asks: () => true,
  prepare: (target, { payload: { identifier } }) => findPerson(target, identifier),
  submit: async (session, _, found) => withFound(await session.openChat(found.id), found),
  journaled: ({ id, kind }) => ({ id, kind, ...unnamed }),
  reply: (tx, done) =>
    Promise.all(done.map(({ operation, value }) => replyOf(tx, operation.account_id, value))),
  async store(tx, done) {
    for (const { operation, value } of done) {
      if (isUnnamed(value)) {
        await noteChat(tx, operation, value)
        continue
      }
      await noteOpened(tx, operation, value)
      const people = (value.participants ?? []).filter(({ kind }) => kind === 'person')
      await Promise.all([
        storeChats(tx, operation, [{ chat: value, last: null }]),
        storeContacts(tx, operation, people),
      ])
    }
  },
})
export const operations: readonly OperationKind[] = [startChat]

/** What the journal keeps of a chat. The platform shows the rest again. */
const unnamed = { name: '', username: null, unread_count: null, participants: null } as const

const isUnnamed = ({ name, participants }: Chat): boolean => name === '' && participants === null

/** A person who was erased and may be contacted again: what comes from here on is stored. */
async function noteOpened(tx: Tx, account: AccountKey, { id }: Chat): Promise<void> {
  const erased = (await findErasedChats(tx, account, [id])).get(id)
  if (erased?.from_id === null) {
    await noteReturned(tx, account, new Map([[id, String(BigInt(erased.last_id) + 1n)]]))
  }
}

/** Opening a chat need not show all that asking for the person did, or their names at all. */
function withFound(opened: Outcome<Chat>, found: Person): Outcome<Chat> {
  if (opened.kind !== 'accepted' || opened.value.participants === null) return opened
  const { name, username } = found
  const participants = opened.value.participants.map((one) => (one.id === found.id ? found : one))
  return { kind: 'accepted', value: { ...opened.value, name, username, participants } }
}

/** Finds out who the person is, and checks that they may be written to. */
async function findPerson(target: Target, identifier: Identifier): Promise<Outcome<Person> | Forbidden> {
  const { db, account } = target
  const found = (await askKnown(target, identifier)) ?? (await lookUp(target, identifier))
  // crash point 3: the platform was asked who it is, nothing is prepared yet
  if (found.kind !== 'accepted') return found
  if (found.value.kind !== 'person') return { kind: 'refused', reason: 'identity_ineligible' }
  const suppressed = await findSuppressed(db, account, found.value)
  if (!suppressed) return found
  const erased = await wasErased(db, account, { number: found.value.id, tombstones: [] })
  return { kind: 'forbidden', detail: erased ? 'identity_erased' : 'identity_suppressed' }
}

/** Asks about the person who had the name last, which is no look-up. Null: it is not known whose it is. */
async function askKnown(
  { db, account, session }: Target,
  identifier: Identifier,
): Promise<Outcome<Person> | null> {
  const { number } = await findOwner(db, account, identifier)
  if (number === null) return null
  const asked = await session.askPerson(number, identifier)
  // Look-ups wait apart.
  if (asked.kind === 'flood_wait' && identifier.kind !== 'id') return null
  if (asked.kind !== 'accepted') return asked
  const value = await learnAsked(db, account, identifier, asked.value)
  return value && { kind: 'accepted', value }
}

async function lookUp({ db, account, session }: Target, identifier: Identifier): Promise<Outcome<Person>> {
  if (identifier.kind === 'id') return { kind: 'refused', reason: 'username_not_found' } // guard: nobody is looked up by id
  await countLookup(db, account)
  const found = await session.resolve(identifier)
  if (found.kind === 'accepted') await learnPeople(db, account, [found.value], { identifier, has_name: true })
  return found
}

/** The reply of POST /chats/start. `created`: the account did not have the chat before. */
async function replyOf(tx: Tx, account_id: string, chat: Chat) {
  const known = await tx.maybe<Pick<Chat, 'name' | 'username'>>(sql`
    select name, username from chats where account_id = ${account_id} and chat_id = ${chat.id}`)
  const { name, username } = known && isUnnamed(chat) ? known : chat // guard: an answer from a journal has the stored name
  return { chat: { id: chatIdOf(chat.id), account_id, name, username }, created: known === undefined }
}
