/** Which files a worker fetches at a time, and what it stores about those that fail. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type LedgerRows, openLedgerRows } from '../../test/harness/ledger-rows.ts'
import { hangMs, until } from '../../test/harness/process.ts'
import { beginFile, failFile, listWantedFiles, type WantedFile } from '../capabilities/media/media.ts'
import { sql } from '../db/sql.ts'
import type { DrivenAccount } from '../ledger/attempt.ts'
import { type HeldLease, revokeLease } from '../ledger/leases.ts'
import { newId } from '../lib/ids.ts'
import type { Download, FilePlace, Outcome, Session } from '../platform/port.ts'
import { Downloads } from './downloads.ts'

let rows: LedgerRows
beforeAll(async () => {
  rows = await openLedgerRows()
})
afterAll(() => rows.close())
beforeEach(async () => {
  await rows.db.run(sql`delete from media_files`)
})

let messages = 0

/** A message with a file that a caller wants. */
async function want({ account_id, workspace_id }: HeldLease): Promise<string> {
  const id = String(++messages)
  const file = JSON.stringify([{ index: 0, kind: 'file', file_name: 'x', media_type: 'x/y', size: 9 }])
  await rows.db.run(sql`
    insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, attachments)
    values (${account_id}, 42, ${id}, ${workspace_id}, '', false, now(), ${file}::jsonb)`)
  await rows.db.run(sql`
    insert into media_files (id, account_id, chat_id, message_id, index, workspace_id)
    values (${newId()}, ${account_id}, 42, ${id}, 0, ${workspace_id})`)
  return id
}

type Fetch = (file: FilePlace) => Promise<Outcome<Download>>

function drivenBy(held: HeldLease, download: Fetch): DrivenAccount {
  const session = { download } as unknown as Session
  return { held, session, awaits: () => {}, gapJitter: 0, paceMs: 0 }
}

function worker(...driven: readonly DrivenAccount[]): Downloads {
  return new Downloads(rows.app, () => new Map(driven.map((each) => [each.held.account_id, each])))
}

async function* chunksOf(...sizes: readonly number[]): AsyncGenerator<Outcome<Uint8Array>> {
  for (const size of sizes) yield { kind: 'accepted', value: new Uint8Array(size).fill(7) }
}

/** The state of a wanted file once its download has ended. */
function ended(message_id: string): Promise<{ failure: string | null; chunks: number }> {
  return until('the download has ended', hangMs, async () =>
    rows.db.maybe<{ failure: string | null; chunks: number }>(sql`
      select failure, (select count(*)::int from media_chunks where file_id = f.id) as chunks
      from media_files f where message_id = ${message_id} and ended_at is not null`),
  )
}

/** An account of another workspace. */
async function elsewhere(name: string): Promise<HeldLease> {
  const { workspace_id } = await rows.service.tenant(name)
  const account_id = await rows.service.account(workspace_id)
  await rows.db.run(sql`
    insert into account_hosts (account_id, workspace_id, lease_owner, lease_epoch, lease_until, observed_at)
    values (${account_id}, ${workspace_id}, ${rows.worker_id}, 3, real_now() + interval '1 hour', real_now())
    on conflict (account_id) do update set lease_owner = excluded.lease_owner, lease_epoch = 3`)
  return { ...(await rows.account()), account_id, workspace_id }
}

async function run(downloads: Downloads): Promise<void> {
  await downloads.loop.step(rows.app, new AbortController().signal)
}

describe('downloads at a time', () => {
  /** Platforms that answer only at the end of the test. Returns which files were asked for. */
  async function count(accounts: readonly HeldLease[], files: number): Promise<string[]> {
    const asked: string[] = []
    const { promise, resolve } = Promise.withResolvers<Outcome<Download>>()
    const driven = accounts.map((held) =>
      drivenBy(held, ({ message_id }) => {
        asked.push(`${held.account_id} ${message_id}`)
        return promise
      }),
    )
    for (const held of accounts) for (let n = 0; n < files; n++) await want(held)
    const downloads = worker(...driven)
    await run(downloads)
    await until('some are asked for', hangMs, async () => asked.length > 0)
    await run(downloads)
    await new Promise((done) => setTimeout(done, 100))
    resolve({ kind: 'refused', reason: 'file_unavailable' })
    await downloads.stop()
    return asked
  }

  test('an account has two', async () => {
    expect(await count([await rows.account()], 5)).toHaveLength(2)
  })

  test('a workspace has three, so that another one never waits for all of them', async () => {
    expect(await count([await rows.account(), await rows.account()], 3)).toHaveLength(3)
  })

  test('a process has four, of the workspaces in turn', async () => {
    const own = [await rows.account(), await rows.account()]
    const accounts = [...own, await elsewhere('Other 1'), await elsewhere('Other 2')]
    const asked = await count(accounts, 3)
    expect(asked).toHaveLength(4)
    for (const { account_id } of accounts.slice(2)) {
      expect(asked.filter((each) => each.startsWith(account_id)).length).toBeGreaterThan(0)
    }
  })

  test('the newest of the workspace with the most gives way to one that has none', async () => {
    const own = [await rows.account(), await rows.account()]
    const [other, late] = [await elsewhere('Another'), await elsewhere('Late')]
    const asked: string[] = []
    const never = new Promise<Outcome<Download>>(() => {})
    const downloads = worker(
      ...[...own, other, late].map((held) =>
        drivenBy(held, () => {
          asked.push(held.account_id)
          return never
        }),
      ),
    )
    for (const held of [...own, ...own, other]) await want(held)
    const countAsked = (held: HeldLease) => asked.filter((id) => id === held.account_id).length
    const runUntil = (what: string, holds: () => boolean) =>
      until(what, hangMs, async () => {
        await run(downloads)
        return holds() || undefined
      })
    await runUntil('all places are taken', () => asked.length === 4)
    const id = await want(late)
    await runUntil('the late one has a place', () => countAsked(late) === 1)
    for (let n = 0; n < 3; n++) await run(downloads)
    // Two, one and one: nobody has more than the others would then have.
    expect(asked).toHaveLength(5)
    expect(countAsked(other)).toBe(1)
    const { count: wanted } = await rows.db.one<{ count: number }>(sql`
      select count(*)::int from media_files where ended_at is null and message_id <> ${id}`)
    expect(wanted).toBe(5)
    await downloads.stop()
  })

  test('a file that was wanted long ago is not fetched', async () => {
    const held = await rows.account()
    const id = await want(held)
    await rows.db.run(
      sql`update media_files set wanted_at = wanted_at - interval '5 minutes' where message_id = ${id}`,
    )
    expect(await listWantedFiles(rows.db, [held.account_id], 3)).toEqual([])
  })
})

describe('a download', () => {
  test('stores a whole file', async () => {
    const held = await rows.account()
    const id = await want(held)
    const fetch = async () =>
      ({ kind: 'accepted', value: { size: 262_145, chunks: chunksOf(262_144, 1) } }) as const
    await run(worker(drivenBy(held, fetch)))
    expect(await ended(id)).toEqual({ failure: null, chunks: 2 })
  })

  test.each([
    ['shorter', 262_145, [262_144]],
    ['longer', 262_145, [262_144, 2]],
    ['longer by a chunk', 262_144, [262_144, 262_144]],
  ])('of a file that is %s than announced leaves nothing', async (_, size, sizes) => {
    const held = await rows.account()
    const id = await want(held)
    const fetch = async () => ({ kind: 'accepted', value: { size, chunks: chunksOf(...sizes) } }) as const
    await run(worker(drivenBy(held, fetch)))
    expect(await ended(id)).toEqual({ failure: 'unavailable', chunks: 0 })
  })

  test('never stores more bytes than announced, however many come', async () => {
    const held = await rows.account()
    const id = await want(held)
    let read = 0
    async function* endless(): AsyncGenerator<Outcome<Uint8Array>> {
      for (; read < 50; read++) yield { kind: 'accepted', value: new Uint8Array(1000) }
    }
    const fetch = async () => ({ kind: 'accepted', value: { size: 2000, chunks: endless() } }) as const
    await run(worker(drivenBy(held, fetch)))
    expect(await ended(id)).toEqual({ failure: 'unavailable', chunks: 0 })
    expect(read).toBeLessThan(10)
  })

  test('of more than 25 MiB reads no chunk', async () => {
    const held = await rows.account()
    const id = await want(held)
    let read = false
    async function* never(): AsyncGenerator<Outcome<Uint8Array>> {
      read = true
      yield { kind: 'unknown', reason: 'never' }
    }
    const fetch = async () => ({ kind: 'accepted', value: { size: 26_214_401, chunks: never() } }) as const
    await run(worker(drivenBy(held, fetch)))
    expect(await ended(id)).toEqual({ failure: 'too_large', chunks: 0 })
    expect(read).toBe(false)
  })

  test('whose lease is lost before its last byte leaves nothing, and the file stays wanted', async () => {
    const held = await rows.account()
    const id = await want(held)
    const over = Promise.withResolvers<void>()
    async function* losing(): AsyncGenerator<Outcome<Uint8Array>> {
      try {
        yield { kind: 'accepted', value: new Uint8Array(262_144) }
        await rows.db.transaction((tx) => revokeLease(tx, held.account_id))
        yield { kind: 'accepted', value: new Uint8Array(1) }
      } finally {
        over.resolve()
      }
    }
    const fetch = async () => ({ kind: 'accepted', value: { size: 262_145, chunks: losing() } }) as const
    const downloads = worker(drivenBy(held, fetch))
    await run(downloads)
    await over.promise
    const state = await until('the download has ended', hangMs, async () => {
      const row = await rows.db.one<{ ended_at: Date | null; size: string | null }>(sql`
        select ended_at, size, (select count(*)::int from media_chunks) as chunks from media_files where message_id = ${id}`)
      return row.size === null || row.ended_at !== null ? row : undefined
    })
    await downloads.stop()
    expect(state).toEqual({ ended_at: null, size: null, chunks: 0 })
  })

  test('that is stopped leaves nothing, and the file stays wanted', async () => {
    const held = await rows.account()
    const id = await want(held)
    const begun = Promise.withResolvers<void>()
    async function* hanging(): AsyncGenerator<Outcome<Uint8Array>> {
      yield { kind: 'accepted', value: new Uint8Array(262_144) }
      begun.resolve()
      await new Promise(() => {})
    }
    const fetch = async () => ({ kind: 'accepted', value: { size: 262_145, chunks: hanging() } }) as const
    const downloads = worker(drivenBy(held, fetch))
    await run(downloads)
    await begun.promise
    await downloads.stop()
    const state = await rows.db.one(sql`
      select ended_at, size, (select count(*)::int from media_chunks) as chunks from media_files where message_id = ${id}`)
    expect(state).toEqual({ ended_at: null, size: null, chunks: 0 })
  })

  test('of a message that is deleted meanwhile leaves nothing', async () => {
    const held = await rows.account()
    const id = await want(held)
    const over = Promise.withResolvers<void>()
    async function* deleting(): AsyncGenerator<Outcome<Uint8Array>> {
      try {
        yield { kind: 'accepted', value: new Uint8Array(262_144) }
        await rows.db.run(sql`
          update messages set deleted_at = now(), attachments = '[]' where account_id = ${held.account_id} and id = ${id}`)
        yield { kind: 'accepted', value: new Uint8Array(1) }
      } finally {
        over.resolve()
      }
    }
    const fetch = async () => ({ kind: 'accepted', value: { size: 262_145, chunks: deleting() } }) as const
    const downloads = worker(drivenBy(held, fetch))
    await run(downloads)
    await over.promise
    await downloads.stop()
    const state = await rows.db.one(sql`
      select (select count(*)::int from media_files) as files, (select count(*)::int from media_chunks) as chunks`)
    expect(state).toEqual({ files: 0, chunks: 0 })
  })

  test('that was listed before another one ended leaves the file as it is', async () => {
    const held = await rows.account()
    const id = await want(held)
    const fetch = async () => ({ kind: 'accepted', value: { size: 1, chunks: chunksOf(1) } }) as const
    await run(worker(drivenBy(held, fetch)))
    expect(await ended(id)).toEqual({ failure: null, chunks: 1 })
    const [file] = await rows.db.rows<WantedFile>(sql`select * from media_files where message_id = ${id}`)
    if (!file) throw new Error('The file is gone.')
    expect(await beginFile(rows.app, held, file, 1)).toBeUndefined()
    expect(await ended(id)).toEqual({ failure: null, chunks: 1 })
    await failFile(rows.app, held, file.id, 'unavailable')
    expect(await ended(id)).toEqual({ failure: null, chunks: 1 })
  })

  test('makes room one after the other: together they stay within the bound', async () => {
    const accounts = await Promise.all(Array.from({ length: 6 }, () => rows.account()))
    for (const held of accounts) await want(held)
    const wanted = await listWantedFiles(
      rows.db,
      accounts.map(({ account_id }) => account_id),
      1,
    )
    const app = { ...rows.app, config: { ...rows.app.config, media_cache_bytes: 50_000_000 } }
    const begun = await Promise.all(
      wanted.map((file) => {
        const held = accounts.find(({ account_id }) => account_id === file.account_id) as HeldLease
        return beginFile(app, held, file, 20_000_000)
      }),
    )
    expect(begun.filter((id) => id !== undefined)).toHaveLength(2)
  })
})
