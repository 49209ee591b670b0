/** Asks the sessions of a campaign's accounts whether the platform has exactly the messages of the ledger. */
import type { App } from '../../app.ts'
import { given } from '../../db/given.ts'
import { type Db, sql } from '../../db/sql.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { type AnsweredChat, type AskedChat, askHistory, type ShownMessage } from '../history/history.ts'
import { identityOf } from './running/running.ts'
import { type Check, describeCheck } from './verify.ts'

/** The first message and five follow-ups. */
const messagesMax = 6

interface AcceptedMessage {
  readonly id: string
  readonly account_id: string
  readonly chat_id: ChatNumber
  readonly random_id: string
  readonly message_id: string
}

type ShownChat = AnsweredChat & { readonly answer: readonly ShownMessage[] }

/** Reads accepted messages before asking the platform, and known ones after, so that messages in flight are no mismatch. */
export async function verifyOnPlatform(
  app: App,
  campaign_id: string,
  silentMsMax?: number,
): Promise<Check[]> {
  const accepted = await listAccepted(app.db, campaign_id)
  const answered = await askHistory(app, await listChats(app.db, campaign_id), silentMsMax)
  const shownChats = answered.filter((chat): chat is ShownChat => typeof chat.answer !== 'string')
  const [missing, strangers] = [
    await findMissing(app.db, { accepted, shownChats }),
    await findStrangers(app, campaign_id, shownChats),
  ]
  const of = `Of ${shownChats.length} chats read from the platform`
  return [
    checkAsked(answered),
    describeCheck('platform_messages', missing, `${of}, each has every accepted message exactly once.`),
    describeCheck('platform_strangers', strangers, describeStrangers(shownChats)),
  ]
}

/** Telegram's history, for one, shows no random ids. A chat without them passes, but the check says so. */
function describeStrangers(shownChats: readonly ShownChat[]): string {
  const blind = shownChats.filter(({ answer }) => answer.some(({ random_id }) => random_id === null)).length // guard: what cannot be seen is said
  const of = `Of ${shownChats.length} chats read from the platform`
  if (blind === 0) return `${of}, none has a message that is not in the ledger.`
  return `${of}, ${blind} show messages without random ids: a message that is not in the ledger cannot be seen there.`
}

/** An account that could not be asked fails this check. */
function checkAsked(answered: readonly AnsweredChat[]): Check {
  const silent = answered.flatMap(({ account_id, answer }) =>
    typeof answer === 'string' ? [{ account_id, answer }] : [],
  )
  const reasons = [...Map.groupBy(silent, ({ account_id, answer }) => `${account_id}: ${answer}`)]
  const sentences = reasons.map(([reason, chats]) => `${reason} (chats: ${chats.length})`)
  const detail =
    silent.length === 0
      ? 'Every account was read.'
      : `Chats of these accounts were not read: ${sentences.join('; ')}.`
  return { name: 'platform_asked', ok: silent.length === 0, detail }
}

function listAccepted(db: Db, campaign_id: string): Promise<AcceptedMessage[]> {
  return db.rows<AcceptedMessage>(sql`
    select o.id, o.account_id, o.chat_id::text, o.random_id::text,
      coalesce(o.reply_body ->> 'message_id', o.proof_message_id::text) as message_id
    from campaign_recipients r join operations o on o.recipient_id = r.id
    where r.campaign_id = ${campaign_id} and o.state = 'completed'`)
}

/** Starts a day before the campaign's first possible message, because the platform's clock may differ from ours. */
function listChats(db: Db, campaign_id: string): Promise<AskedChat[]> {
  return db.rows<AskedChat>(sql`
    with first as (
      select least(min(k.created_at), min(o.created_at), min((o.reply_body ->> 'timestamp')::timestamptz), min(o.proof_at)) as at
      from campaigns k join campaign_recipients r on r.campaign_id = k.id
      left join operations o on o.recipient_id = r.id where k.id = ${campaign_id})
    select account_id, chat_id::text, first.at - interval '1 day' as since from first, (
      select account_id, chat_id from campaign_recipients where campaign_id = ${campaign_id}
      union
      select o.account_id, o.chat_id from campaign_recipients r join operations o on o.recipient_id = r.id
      where r.campaign_id = ${campaign_id}) c
    where account_id is not null and chat_id is not null order by 1, c.chat_id`)
}

const placeOf = ({ account_id, chat_id }: Pick<AskedChat, 'account_id' | 'chat_id'>) =>
  `${account_id}:${chat_id}`

/** Accepted operations without their message, or with two. Messages reported as deleted since do not count as missing. */
async function findMissing(
  db: Db,
  { accepted, shownChats }: { accepted: readonly AcceptedMessage[]; shownChats: readonly ShownChat[] },
): Promise<string[]> {
  const answers = new Map(shownChats.map((chat) => [placeOf(chat), chat.answer]))
  const wrong = accepted.filter((one) => {
    const shown = answers.get(placeOf(one))
    const found = shown?.filter(({ id, random_id }) =>
      random_id === null ? id === one.message_id : random_id === one.random_id,
    )
    return found !== undefined && found.length !== 1
  })
  const deleted = await db.rows<{ id: string }>(sql`
    select g.id from ${given(wrong, { id: 'uuid', account_id: 'text', chat_id: 'bigint', message_id: 'bigint' })} as g
    join messages m on m.account_id = g.account_id and m.chat_id = g.chat_id and m.id = g.message_id
    where m.deleted_at is not null`)
  const gone = new Set(deleted.map(({ id }) => id))
  return wrong.map(({ id }) => id).filter((id) => !gone.has(id))
}

/** Messages whose random id only this campaign derives, but which the ledger does not know or says were not sent. */
async function findStrangers(
  app: App,
  campaign_id: string,
  shownChats: readonly ShownChat[],
): Promise<string[]> {
  const recipients = await app.db.rows<{ recipient_id: string; workspace_id: string; kind: string }>(sql`
    select r.id as recipient_id, r.workspace_id, k.kind
    from campaigns k join campaign_recipients r on r.campaign_id = k.id where k.id = ${campaign_id}`)
  const own = new Set(
    recipients.flatMap((row) =>
      Array.from({ length: messagesMax }, (_, step) => identityOf(app, { ...row, step }).random_id),
    ),
  )
  const known = await app.db.rows<{ random_id: string }>(sql`
    select o.random_id::text from campaign_recipients r join operations o on o.recipient_id = r.id
    where r.campaign_id = ${campaign_id} and o.state in ('submitting', 'completed', 'ambiguous')`)
  const expected = new Set(known.map(({ random_id }) => random_id))
  return shownChats.flatMap((chat) =>
    chat.answer
      .filter(({ random_id }) => random_id !== null && own.has(random_id) && !expected.has(random_id))
      .map(({ id }) => `${chat.account_id} platform:chat:${chat.chat_id} message ${id}`),
  )
}
