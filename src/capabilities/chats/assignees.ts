/** Who answers a chat: at most one member of its workspace. A trigger ends it with the membership. */
import type { Caller } from '../../contract.ts'
import { type Db, type Sql, sql, type Tx } from '../../db/sql.ts'
import { notFound } from '../../lib/names.ts'
import { type ChatId, chatNumber } from '../../lib/shapes.ts'

interface Assignee {
  readonly user_id: string
  readonly name: string
}

/** Of a user `u`, for colleagues: e-mail addresses are for admins. */
export const memberName: Sql = sql`coalesce(nullif(u.name, ''), split_part(u.email, '@', 1))`

function assignable({ workspace_id }: Caller): Sql {
  return sql`
    select u.id as user_id, ${memberName} as name from memberships m join users u on u.id = m.user_id
    where m.workspace_id = ${workspace_id}
      and m.ended_at is null and u.disabled_at is null -- guard: assigned to members only
    `
}

/** The members who can answer chats, by name. */
export function listAssignees(db: Db, caller: Caller): Promise<Assignee[]> {
  return db.rows<Assignee>(sql`${assignable(caller)} order by name, user_id`)
}

/** The membership is locked, so that it cannot end between the check and the commit. */
export async function assignChat(
  tx: Tx,
  caller: Caller,
  {
    account_id,
    chat_id,
    user_id,
  }: { readonly account_id: string; readonly chat_id: ChatId; readonly user_id: string | null },
): Promise<Assignee | null> {
  const assignee =
    user_id === null
      ? null
      : await tx.maybe<Assignee>(sql`
          ${assignable(caller)} and u.id = ${user_id}
          for share of m -- guard: an assignment ends with the membership
          `)
  if (assignee === undefined) throw notFound('member', user_id ?? '')
  const changed = await tx.run(sql`
    update chats set assignee_id = ${user_id} where account_id = ${account_id} and chat_id = ${chatNumber(chat_id)}`)
  if (changed === 0) throw notFound('chat', chat_id, 'chat_not_found')
  return assignee
}
