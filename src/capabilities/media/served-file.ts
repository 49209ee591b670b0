/** A received file as a response. It comes from a stranger, so nothing in it may run in a browser. */
import type { App } from '../../app.ts'
import type { Account } from '../../contract.ts'
import { type Database, type Db, sql } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { type ChatId, chatNumber } from '../../lib/shapes.ts'
import type { Share } from '../../lib/shares.ts'
import type { FilePlace } from '../../platform/port.ts'
import { Bytes, type Reply, type Sending } from '../../route.ts'
import { fileBytesMax } from '../../rules/limits.ts'
import { requireChat } from '../chats/chats.ts'
import { type ByteRange, findRange } from './byte-range.ts'
import { dispositionOf, findContentType } from './content-type.ts'
import { type CachedFile, fetchFile, fileGone, fileTooLarge } from './media.ts'
import { sendFile } from './sent-files.ts'
import { readRange } from './stored-bytes.ts'

interface FileRequest extends Omit<FilePlace, 'chat_id'> {
  readonly chat_id: ChatId
  readonly range: string | undefined
  readonly left: AbortSignal | undefined
  /** Whom the place of the answer counts for. */
  readonly share: Share
}

export async function serveFile(
  app: App,
  accounts: readonly Account[],
  { chat_id, message_id, index, range, left, share }: FileRequest,
): Promise<Reply> {
  const account = await requireChat(app, accounts, { chat_id, missing: 'chat_not_found' })
  const stored = { account_id: account.id, chat_id: chatNumber(chat_id), message_id, index }
  const named = await requireAttachment(app.db, stored)
  if (named.size > fileBytesMax) throw fileTooLarge()
  const file = await fetchFile(app, stored, {
    left,
    requireAttachment: () => requireAttachment(app.db, stored),
  })
  const part = findRange(range, file.size)
  if (part === 'none') throw new ApiError('range_not_satisfiable', { content_range: `bytes */${file.size}` })
  const place = sendFile(share)
  try {
    return await answer(app.db, file, { part, file_name: named.file_name, begins: place.sendBy })
  } catch (error) {
    place.release()
    throw error
  }
}

interface NamedFile {
  readonly file_name: string
  readonly size: number
}

async function requireAttachment(
  db: Db,
  { account_id, chat_id, message_id, index }: FilePlace & { readonly account_id: string },
): Promise<NamedFile> {
  const found = await db.maybe<NamedFile>(sql`
    select file ->> 'file_name' as file_name, (file ->> 'size')::float8 as size
    from messages m cross join lateral (select m.attachments -> ${index}::int as file) each
    where m.account_id = ${account_id} and m.chat_id = ${chat_id} and m.id = ${message_id} and m.deleted_at is null
      and file is not null`)
  if (!found) throw fileGone()
  return found
}

interface Answer {
  readonly part: ByteRange | null
  readonly file_name: string
  readonly begins: (sending: Sending) => void
}

async function answer(db: Database, file: CachedFile, { part, file_name, begins }: Answer): Promise<Reply> {
  const { start, end } = part ?? { start: 0, end: file.size - 1 }
  const content = findContentType(file.head)
  return {
    status: part ? 206 : 200,
    body: await Bytes.begin(end - start + 1, readRange(db, file.id, { start, end }), begins),
    headers: {
      'content-type': content.type,
      'content-disposition': dispositionOf(content, file_name),
      'accept-ranges': 'bytes',
      ...(part && { 'content-range': `bytes ${start}-${end}/${file.size}` }),
      // Even where it is opened as a page of its own, it runs nothing, and belongs to no origin of ours.
      'content-security-policy': "default-src 'none'; sandbox; frame-ancestors 'none'", // guard: a file runs nothing
      'cross-origin-resource-policy': 'same-origin',
    },
  }
}
