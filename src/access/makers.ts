/** A user who makes something that outlives the request must still belong to the workspace when it is committed. */
import type { Caller, Role } from '../contract.ts'
import { sql, type Tx } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'
import { isEnough } from './needs.ts'

type Maker = Pick<Caller, 'workspace_id' | 'user_id'> & {
  /** The lowest role that may have such a thing. Undefined: any, or an operator decided. */
  readonly role?: Role | undefined
}

/**
 * Call it last in the transaction that makes the thing. The lock orders it with the end of the membership and with disabling
 * the user: those transactions either see what was made and stop it, or end first, and then nothing is made.
 */
export async function requireMaker(tx: Tx, { workspace_id, user_id, role }: Maker): Promise<void> {
  const member = await tx.maybe<{ role: Role }>(sql`
    select m.role from memberships m join users u on u.id = m.user_id
    where m.workspace_id = ${workspace_id} and m.user_id = ${user_id} and m.ended_at is null
      and u.disabled_at is null
    for share of m, u -- guard: making something waits for the end of a membership
    `)
  if (!member) throw lost('is no longer a member of this workspace') // guard: nothing is made by a former member
  const isAllowed = role === undefined || isEnough(member.role, { role, scopes: [] })
  if (!isAllowed) throw lost('has no longer the role for this') // guard: nothing is made with a lost role
}

function lost(what: string): ApiError {
  return new ApiError('missing_role', { detail: `The user of this request ${what}. Nothing was done.` })
}
