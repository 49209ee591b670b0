/** Whom a campaign can write to, and why not the others: looked up in our own database only. */
import type { App } from '../../app.ts'
import { given } from '../../db/given.ts'
import { type Db, sql } from '../../db/sql.ts'
import { ApiError, type ErrorCode } from '../../lib/errors.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { listedDigits } from '../../rules/identifier.ts'
import { findFault } from '../../rules/placeholders.ts'
import { tombstonesOf } from '../people/people.ts'
import { listSuppressed, namesOf } from '../suppressions/suppressions.ts'
import { type CampaignRequest, listed, type RequestedRecipient } from './campaign-request.ts'
import { type ExclusionReason, whyExcluded } from './planning/why.ts'

/** A recipient who can be written to, as far as the database knows. */
export interface FoundRecipient extends RequestedRecipient {
  readonly username: string | null
}

/** Why a recipient cannot be written to, in the order in which creation reports it. */
const reasons = {
  foreign: ['account_unavailable', 'Not eligible accounts of this workspace'],
  not_ready: ['account_not_ready', 'Accounts that are not READY'],
  no_chat: ['chat_not_found', 'Chats that are not available in their accounts'],
  no_person: ['invalid_request', 'Chats without a person who can receive messages'],
  suppressed: ['suppressed_recipient', 'Recipients who are on the suppression list'],
  nameless: ['unresolved_personalization', 'Recipients without a value for a placeholder in the message'],
  too_long: ['invalid_request', 'Recipients for whom the text is longer than 4096 characters'],
} as const satisfies Record<ExclusionReason, readonly [ErrorCode, string]>

interface ExcludedRecipient {
  readonly wanted: RequestedRecipient
  readonly reason: ExclusionReason
}

interface Recipients {
  readonly found: readonly FoundRecipient[]
  readonly excluded: readonly ExcludedRecipient[]
}

/** For people. `name`: of its account, if it has one of the workspace. */
export function exclusionOf({ reason }: ExcludedRecipient, name?: string): string {
  return whyExcluded(reason, name)
}

export function codeOf({ reason }: ExcludedRecipient): ErrorCode {
  return reasons[reason][0]
}

/** Creation refuses all of them at once: throws the first reason that applies, with the first ten recipients. */
export function requireAll({ found, excluded }: Recipients): readonly FoundRecipient[] {
  for (const [reason, [code, what]] of Object.entries(reasons)) {
    const concerned = excluded.filter((one) => one.reason === reason).map(({ wanted }) => wanted)
    if (concerned.length === 0) continue
    const names = concerned.map((one) => nameOf(one, code))
    throw new ApiError(code, { detail: `${what}: ${listed([...new Set(names)])}.` })
  }
  return found
}

function nameOf({ account_id, chat_id, identifier }: RequestedRecipient, code: ErrorCode): string {
  if (account_id !== null && code.startsWith('account_')) return account_id
  return identifier ?? `platform:chat:${chat_id}`
}

interface AccountRow {
  readonly id: string
  readonly platform: string
  readonly ready: boolean
  readonly platform_user_id: string | null
}

/** Checks accounts and chats first, then the suppression list, then the texts. */
export async function findRecipients(
  { db, secrets }: { readonly db: Db } & Pick<App, 'secrets'>,
  workspace_id: string,
  request: CampaignRequest,
): Promise<Recipients> {
  const accounts = await readAccounts(db, workspace_id, request)
  requirePool(accounts, request.pool)
  const chats = await readChats(db, workspace_id, request)
  const looked = request.wanted.map((wanted) => look(wanted, accounts, chats, request.pool))
  const found = looked.flatMap((one) => ('reason' in one ? [] : [one]))
  const excluded = looked.filter((one) => 'reason' in one)
  const barred = await findBarred({ db, secrets }, workspace_id, {
    found,
    accounts: perPlatform(accounts, request.pool),
  })
  for (const one of found) {
    const reason = barred.has(one) ? 'suppressed' : findTextFault(one, request)
    if (reason) excluded.push({ wanted: one, reason })
  }
  const left = new Set(excluded.map(({ wanted }) => wanted))
  return { found: found.filter((one) => !left.has(one)), excluded }
}

async function readAccounts(
  db: Db,
  workspace_id: string,
  { wanted, pool }: CampaignRequest,
): Promise<ReadonlyMap<string, AccountRow>> {
  const ids = [...new Set([...pool, ...wanted.flatMap(({ account_id }) => account_id ?? [])])]
  const rows = await db.rows<AccountRow>(sql`
    select id, platform, status = 'READY' as ready, platform_user_id::text from accounts
    where workspace_id = ${workspace_id} and id = any(${ids})`)
  return new Map(rows.map((row) => [row.id, row]))
}

/** Every account of the pool must exist and be READY. */
function requirePool(accounts: ReadonlyMap<string, AccountRow>, pool: readonly string[]): void {
  const none = pool.filter((id) => !accounts.has(id))
  const idle = pool.filter((id) => accounts.get(id)?.ready === false)
  for (const [ids, [code, what]] of [
    [none, reasons.foreign],
    [idle, reasons.not_ready],
  ] as const) {
    if (ids.length > 0) throw new ApiError(code, { detail: `${what}: ${listed(ids)}.` })
  }
}

interface ChatRow {
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly kind: string
  readonly name: string
  readonly username: string | null
  /** What the other side is, if the platform said so. */
  readonly other: string | null
}

/** Every requested chat, in every account that may write to it. */
async function readChats(
  db: Db,
  workspace_id: string,
  { wanted, pool }: CampaignRequest,
): Promise<ReadonlyMap<string, ChatRow>> {
  const pairs = wanted.flatMap(({ account_id, chat_id }) =>
    chat_id === null
      ? []
      : (account_id === null ? pool : [account_id]).map((id) => ({ account_id: id, chat_id })),
  )
  if (pairs.length === 0) return new Map()
  const rows = await db.rows<ChatRow>(sql`
    select c.account_id, c.chat_id::text, c.kind, c.name, c.username, p.one ->> 'kind' as other
    from ${given(pairs, { account_id: 'text', chat_id: 'bigint' })} as g
    join chats c on c.account_id = g.account_id and c.chat_id = g.chat_id and c.workspace_id = ${workspace_id}
    left join lateral (
      select one from jsonb_array_elements(c.participants) as one where one ->> 'id' = c.chat_id::text limit 1) p on true`)
  return new Map(rows.map((row) => [`${row.account_id}:${row.chat_id}`, row]))
}

type CheckedRecipient = ExcludedRecipient | FoundRecipient

function look(
  wanted: RequestedRecipient,
  accounts: ReadonlyMap<string, AccountRow>,
  chats: ReadonlyMap<string, ChatRow>,
  pool: readonly string[],
): CheckedRecipient {
  const { account_id, chat_id } = wanted
  if (account_id !== null && !accounts.has(account_id)) return { wanted, reason: 'foreign' }
  if (account_id !== null && !accounts.get(account_id)?.ready) return { wanted, reason: 'not_ready' }
  if (chat_id === null) return { ...wanted, username: null }
  const chat = (account_id === null ? pool : [account_id])
    .map((id) => chats.get(`${id}:${chat_id}`))
    .find((one) => one !== undefined)
  if (!chat) return { wanted, reason: 'no_chat' }
  const self = accounts.get(chat.account_id)?.platform_user_id === chat_id
  if (chat.kind !== 'private' || (chat.other ?? 'person') !== 'person' || self) {
    return { wanted, reason: 'no_person' }
  }
  const name = wanted.name ?? (chat.name.trim() === '' ? null : chat.name)
  return { ...wanted, account_id: chat.account_id, name, username: chat.username }
}

/** How many recipients are compared with the list at a time: the process serves other requests in between. */
const listedAtATime = 500

interface Unbarred {
  readonly found: readonly FoundRecipient[]
  /** One account of each platform on which contacts may be looked up. */
  readonly accounts: readonly string[]
}

/** Asks the list about everything known of a person: the chat's number, the names given, and the people who have them. */
async function findBarred(
  { db, secrets }: { readonly db: Db } & Pick<App, 'secrets'>,
  workspace_id: string,
  { found, accounts }: Unbarred,
): Promise<ReadonlySet<FoundRecipient>> {
  const barred = new Set<FoundRecipient>()
  for (let from = 0; from < found.length; from += listedAtATime) {
    const asked = found.slice(from, from + listedAtATime).flatMap((one) => {
      const { account_id, chat_id: id, username } = one
      const given = [...(one.identifier === null ? [] : [listedName(one.contact)]), ...namesOf({ username })]
      const names = [...given, ...tombstonesOf({ secrets }, workspace_id, given)] // guard: an import asks about tombstones
      return (account_id === null ? accounts : [account_id]).map((known) => ({
        ...{ one, account_id: known, id, names },
      }))
    })
    for (const { one } of await listSuppressed(db, workspace_id, asked)) barred.add(one)
  }
  return barred
}

function perPlatform(accounts: ReadonlyMap<string, AccountRow>, pool: readonly string[]): readonly string[] {
  const platforms = new Map(pool.flatMap((id) => [[accounts.get(id)?.platform, id] as const]))
  return [...platforms.values()]
}

/** The identifier of a contact in the suppression list's form. */
function listedName(contact: string): string {
  const digits = contact.startsWith('phone:') ? listedDigits(contact.slice('phone:'.length)) : undefined
  return digits === undefined ? contact : `phone:${digits}`
}

/** A contact that was never looked up may still turn out to have a name. */
function findTextFault(
  one: FoundRecipient,
  { templates, kind }: CampaignRequest,
): ExclusionReason | undefined {
  if (kind === 'contacts' && one.name === null && one.chat_id === null) return undefined
  for (const template of templates) {
    const fault = findFault(template, one)
    if (fault) return fault === 'text_too_long' ? 'too_long' : 'nameless'
  }
  return undefined
}
