/** A team's notes on its chats. The other person never sees them. */
import { z } from 'zod'
import { hasRole } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { notFound } from '../../lib/names.ts'
import { type ChatId, chatNumber } from '../../lib/shapes.ts'
import { moment, said, uuid } from '../../lib/wire.ts'
import { memberName } from '../chats/chats.ts'

export const noteOut = z.object({
  id: uuid('Id of the note.'),
  at: moment('When it was written.'),
  text: said('Its text.'),
  author: z.object({ user_id: uuid('Id of the user.'), name: said('Name of the user.') }),
  deletable: z.boolean().meta({ description: 'Whether the caller may delete it.' }),
})

export const noteExample = {
  id: '019a7e6e-7c1a-7b55-9f53-0d6a1f0c7e01',
  at: '2026-11-15T09:32:00.000Z',
  text: 'Wants it delivered on Friday.',
  author: { user_id: '0199a1f0-0000-7000-8000-000000000002', name: 'Ana' },
  deletable: true,
}

interface NewNote {
  /** One of the caller's workspace. */
  readonly account_id: string
  readonly chat_id: ChatId
  readonly text: string
}

export async function createNote(
  { sources }: App,
  tx: Tx,
  caller: Caller,
  { account_id, chat_id, text }: NewNote,
) {
  const note = await tx.maybe<z.infer<typeof noteOut>>(sql`
    with note as (
      insert into notes (id, workspace_id, account_id, chat_id, author_id, text)
      select ${sources.newId()}, workspace_id, account_id, chat_id, ${caller.user_id}, ${text} from chats
      where account_id = ${account_id} and chat_id = ${chatNumber(chat_id)}
      returning id, created_at, text, author_id)
    select n.id, n.created_at as at, n.text, json_build_object('user_id', u.id, 'name', ${memberName}) as author,
      true as deletable
    from note n join users u on u.id = n.author_id`)
  if (!note) throw notFound('chat', chat_id, 'chat_not_found')
  return note
}

/** Authors delete their own notes, admins everyone's. */
export async function deleteNote(tx: Tx, caller: Caller, id: string): Promise<void> {
  const { workspace_id, user_id } = caller
  const note = await tx.maybe<{ author_id: string }>(sql`
    select author_id from notes where id = ${id}
      and workspace_id = ${workspace_id} -- guard: notes of another workspace
    for update`)
  if (!note) throw notFound('note', id)
  const may = note.author_id === user_id || hasRole(caller, 'admin') // guard: notes of a colleague
  if (!may) throw new ApiError('missing_role', { detail: 'Only its author and admins may delete a note.' })
  await tx.run(sql`delete from notes where id = ${id}`)
}

/** Clears the texts of notes; that a member wrote one, where and when, stays. Returns how many were cleared. */
export async function clearNotes(tx: Tx, ids: readonly string[]): Promise<number> {
  if (ids.length === 0) return 0
  return tx.run(sql`
    with locked as materialized (
      select n.id from (select distinct id from unnest(${ids}::uuid[]) as given (id) order by id) g
      cross join lateral (select n.id from notes n where n.id = g.id and n.cleared_at is null for update) n)
    update notes n set text = '', cleared_at = domain_now() from locked l where n.id = l.id`)
}
