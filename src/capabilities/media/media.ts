/**
 * Files of messages. The API writes a row for a file that a caller wants, the account's session fetches it in chunks
 * (`worker/downloads.ts`), and both read the same row: two callers cause one download.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { App, Topic } from '../../app.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { findFloodWait } from '../../ledger/floods.ts'
import { type HeldLease, LeaseLost, requireLease } from '../../ledger/leases.ts'
import { isLive } from '../../ledger/liveness.ts'
import { ApiError } from '../../lib/errors.ts'
import { newId } from '../../lib/ids.ts'
import type { FilePlace } from '../../platform/port.ts'

export { readRange } from './stored-bytes.ts'

/** A caller waits for a file. */
export const filesWanted: Topic = { topic: 'media' }

/** A caller waits no longer than this; the download continues. */
const waitMsMax = 60_000 // limit: wait for a file
/** A download starts only while its caller may still wait for it. */
const wantedSeconds = 90

/** Why a file could not be fetched. */
export type FileFailure = 'gone' | 'too_large' | 'unavailable'

interface AccountFile extends FilePlace {
  readonly account_id: string
}

export interface CachedFile {
  readonly id: string
  readonly size: number
  readonly head: Buffer
}

interface FileState {
  readonly id: string
  readonly size: number | null
  readonly head: Buffer | null
  readonly ended: boolean
  readonly failure: FileFailure | null
}

interface Waiting {
  /** Aborted once the caller is gone. */
  readonly left: AbortSignal | undefined
  /** Throws if the message no longer has the file. */
  readonly requireAttachment: () => Promise<unknown>
}

/** The file, once all of it is stored. Fetches it unless it is cached. */
export async function fetchFile(
  app: App,
  file: AccountFile,
  { left, requireAttachment }: Waiting,
): Promise<CachedFile> {
  const kept = await findFile(app.db, file)
  if (kept && isWhole(kept)) return kept
  await want(app, file)
  const deadline = performance.now() + waitMsMax
  for (let pauseMs = 5; performance.now() < deadline; pauseMs = Math.min(pauseMs * 1.5, 1_000)) {
    await sleep(pauseMs)
    left?.throwIfAborted()
    const state = await findFile(app.db, file)
    if (!state) {
      // The message was deleted or edited, or PostgreSQL crashed, which empties the cache.
      await requireAttachment()
      await want(app, file) // guard: a file that the cache lost is fetched again
    } else if (isWhole(state)) {
      return state
    } else if (state.failure) {
      throw await refusalOf(app.db, file, state.failure)
    }
  }
  throw await refusalOf(app.db, file, 'unavailable')
}

function isWhole(state: FileState): state is FileState & CachedFile {
  return state.ended && state.failure === null
}

export function fileGone(): ApiError {
  return new ApiError('not_found', {
    detail: 'The message has no such file, or the platform no longer has it.',
  })
}

export function fileTooLarge(): ApiError {
  return new ApiError('attachment_too_large', {
    detail: 'The file is larger than 25 MiB, so it is not fetched.',
  })
}

async function refusalOf(db: Db, { account_id }: AccountFile, failure: FileFailure): Promise<ApiError> {
  if (failure === 'gone') return fileGone()
  if (failure === 'too_large') return fileTooLarge()
  const seconds = await findFloodWait(db, account_id, 'reading')
  if (seconds === undefined) return new ApiError('session_unavailable')
  return new ApiError('flood_wait', { status: 503, retry_after: seconds })
}

function findFile(
  db: Db,
  { account_id, chat_id, message_id, index }: AccountFile,
): Promise<FileState | undefined> {
  return db.maybe<FileState>(sql`
    select id, size::int, coalesce(head, '') as head, ended_at is not null as ended, failure from media_files
    where account_id = ${account_id} and chat_id = ${chat_id} and message_id = ${message_id} and index = ${index}`)
}

/** Refuses immediately while no session could fetch it. Retries a file that failed before. */
async function want(app: App, { account_id, chat_id, message_id, index }: AccountFile): Promise<void> {
  const seconds = await findFloodWait(app.db, account_id, 'reading')
  if (seconds !== undefined) throw new ApiError('flood_wait', { status: 503, retry_after: seconds })
  const wanted = await app.db.run(sql`
    insert into media_files as f (id, account_id, chat_id, message_id, index, workspace_id)
    select ${newId()}, h.account_id, ${chat_id}::bigint, ${message_id}::bigint, ${index}::int, h.workspace_id
    from account_hosts h where h.account_id = ${account_id} and ${isLive}
    on conflict (account_id, chat_id, message_id, index) do update set wanted_at = excluded.wanted_at,
      ended_at = case when f.failure is null then f.ended_at end, failure = null`)
  if (wanted === 0) throw new ApiError('session_unavailable')
  app.wake.signal(filesWanted)
}

export interface WantedFile extends AccountFile {
  readonly id: string
  readonly workspace_id: string
}

/** The first files that callers want of each account, in the order they asked. */
export function listWantedFiles(db: Db, account_ids: readonly string[], each: number): Promise<WantedFile[]> {
  return db.rows<WantedFile>(sql`
    select f.* from unnest(${account_ids}::text[]) as a (id) cross join lateral (
      select id, workspace_id, account_id, chat_id::text, message_id::text, index, wanted_at from media_files
      where account_id = a.id and ended_at is null
        and wanted_at > clock_timestamp() - make_interval(secs => ${wantedSeconds}) -- guard: no download without a caller
      order by wanted_at limit ${each}) f
    order by f.wanted_at`)
}

/**
 * Makes room in the workspace's cache, and returns the id under which the chunks are stored. Undefined: the file is no longer
 * wanted, or the cache is full of files that are being fetched.
 */
export async function beginFile(
  app: App,
  held: HeldLease,
  file: WantedFile,
  size: number,
): Promise<string | undefined> {
  return app.db.transaction(async (tx) => {
    await requireLease(tx, held)
    if (!(await lockWanted(tx, file.id))) return undefined // guard: a file that is there is not fetched again
    if (!(await makeRoom(tx, held.workspace_id, { size, most: app.config.media_cache_bytes })))
      return undefined
    // Chunks of an attempt that another worker did not finish.
    await tx.run(sql`delete from media_chunks where file_id = ${file.id}`)
    const begun = await tx.maybe<{ id: string }>(sql`
      update media_files set id = ${app.sources.newId()}, size = ${size} where id = ${file.id} and ended_at is null
      returning id`)
    return begun?.id
  })
}

/** False: the file has been fetched since it was listed, or is forgotten. */
async function lockWanted(tx: Tx, id: string): Promise<boolean> {
  const row = await tx.maybe(sql`select 1 from media_files where id = ${id} and ended_at is null for update`)
  return row !== undefined
}

/** Deletes the oldest files that are not being fetched. False: that is not enough. */
async function makeRoom(
  tx: Tx,
  workspace_id: string,
  { size, most }: { readonly size: number; readonly most: number },
): Promise<boolean> {
  await tx.one(sql`select id from workspaces where id = ${workspace_id} for no key update`) // guard: one download at a time makes room
  const bytes = async () =>
    (
      await tx.one<{ bytes: number }>(sql`
      select coalesce(sum(size), 0)::float8 as bytes from media_files where workspace_id = ${workspace_id}`)
    ).bytes
  const excess = (await bytes()) + size - most
  if (excess <= 0) return true
  await tx.run(sql`
    delete from media_files where id in (
      select id from media_files where id in (
        select id from (
          select id, sum(size) over (order by ended_at, id) - size as freed from media_files
          where workspace_id = ${workspace_id} and ended_at is not null and failure is null) oldest
        where freed < ${excess})
      for update skip locked)`)
  return (await bytes()) + size <= most // guard: the bound of the cache
}

/** Throws if the file was forgotten meanwhile: its message was deleted or edited, or another worker fetches it. */
export async function storeFileChunk(
  db: Db,
  { id, n, bytes }: { readonly id: string; readonly n: number; readonly bytes: Uint8Array },
): Promise<void> {
  const { buffer, byteOffset, length } = bytes
  await db.run(sql`
    insert into media_chunks (file_id, n, bytes) values (${id}, ${n}, ${Buffer.from(buffer, byteOffset, length)})`)
}

const headBytes = 64

/** Marks the file as complete. False: the size is not the announced one, or the file no longer belongs to the message. */
export async function completeFile(app: App, held: HeldLease, id: string): Promise<boolean> {
  return app.db.transaction(async (tx) => {
    await requireLease(tx, held) // guard: a file is completed under the lease
    const done = await tx.run(sql`
      update media_files f set ended_at = clock_timestamp(),
        head = (select substring(bytes for ${headBytes}) from media_chunks where file_id = f.id and n = 0)
      where id = ${id} and ended_at is null
        and size = (select coalesce(sum(octet_length(bytes)), 0) from media_chunks where file_id = f.id) -- guard: a file of another size is not kept
        and exists (
          select from messages m where m.account_id = f.account_id and m.chat_id = f.chat_id and m.id = f.message_id
            and m.deleted_at is null and jsonb_array_length(m.attachments) > f.index)`)
    return done > 0
  })
}

/** Stores why the file could not be fetched, and deletes its chunks. If the lease is lost, the next worker fetches it. */
export async function failFile(app: App, held: HeldLease, id: string, failure: FileFailure): Promise<void> {
  await app.db
    .transaction(async (tx) => {
      await requireLease(tx, held)
      if (!(await lockWanted(tx, id))) return // guard: a file that is there does not fail
      await tx.run(sql`delete from media_chunks where file_id = ${id}`)
      await tx.run(sql`
        update media_files set ended_at = clock_timestamp(), failure = ${failure}, size = null where id = ${id}`)
    })
    .catch(async (error) => {
      if (!(error instanceof LeaseLost)) throw error
      await releaseFile(app.db, id)
    })
}

/** Deletes what an attempt has stored. The file stays wanted. */
export async function releaseFile(db: Db, id: string): Promise<void> {
  await db.run(sql`
    with gone as (delete from media_chunks c using media_files f where c.file_id = f.id and f.id = ${id} and f.ended_at is null)
    update media_files set size = null where id = ${id} and ended_at is null`)
}

const keptDays = 7
/** How many files one step deletes: their thousand chunks stay well below a statement's time limit. */
const forgottenMax = 10

/** Deletes files after a week, and after an hour what a killed process left. Returns how many. */
export function forgetMedia(db: Db): Promise<number> {
  return db.run(sql`
    delete from media_files where id in (
      select id from media_files
      where ended_at < clock_timestamp() - make_interval(days => ${keptDays})
        or ((ended_at is null or failure is not null) and wanted_at < clock_timestamp() - interval '1 hour') -- guard: an unfinished download is forgotten
      order by wanted_at limit ${forgottenMax} for update skip locked)`)
}

/** The cached files of an erased person's private chats. */
export async function eraseFiles(tx: Tx, account_ids: readonly string[], number: string): Promise<void> {
  await tx.run(sql`delete from media_files where account_id = any(${account_ids}) and chat_id = ${number}`)
}
