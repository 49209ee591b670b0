/** Fetches the files of messages that callers want, for the accounts that this process drives. */

import type { App } from '../app.ts'
import {
  beginFile,
  completeFile,
  type FileFailure,
  failFile,
  filesWanted,
  listWantedFiles,
  releaseFile,
  storeFileChunk,
  type WantedFile,
} from '../capabilities/media/media.ts'
import type { DrivenAccount } from '../ledger/attempt.ts'
import { findFloodWait, noteFlood } from '../ledger/floods.ts'
import { LeaseLost } from '../ledger/leases.ts'
import { within } from '../ledger/within.ts'
import { freeBuffer } from '../lib/free-buffer.ts'
import { findGivingWay, type Share } from '../lib/shares.ts'
import type { Loop } from '../loop.ts'
import { type Download, downloadChunkBytes, type Outcome } from '../platform/port.ts'
import { fileBytesMax } from '../rules/limits.ts'
import { countDownloads } from './metrics.ts'

/** Downloads at a time. A workspace never has all places of a process, so that others need not wait for it. */
const perAccount = 2
const perWorkspace = 3
const perProcess = 4
/** An adapter requests a part twice, 20 s each, and sits out short waits in between. */
const chunkMsMax = 90_000
/** A file that takes longer gives its place to another. */
const fileMsMax = 600_000
const restMs = 1_000

interface Running {
  readonly file: WantedFile
  readonly work: Promise<void>
  /** Aborted if it gives its place to another workspace. */
  readonly leaving: AbortController
}

export class Downloads {
  readonly loop: Loop
  readonly #app: App
  readonly #driven: () => ReadonlyMap<string, DrivenAccount>
  /** The oldest first. */
  readonly #running = new Map<string, Running>()
  readonly #stopping = new AbortController()

  constructor(app: App, driven: () => ReadonlyMap<string, DrivenAccount>) {
    this.#app = app
    this.#driven = driven
    countDownloads(app, () => this.#running.size)
    this.loop = { name: 'downloads', restMs, wakeOn: filesWanted, step: () => this.#step() }
  }

  async stop(): Promise<void> {
    this.#stopping.abort()
    await Promise.all([...this.#running.values()].map(({ work }) => work))
  }

  async #step(): Promise<boolean> {
    const driven = this.#driven()
    if (driven.size === 0) return false
    const wanted = await listWantedFiles(this.#app.db, [...driven.keys()], perAccount + 1)
    // The workspace with the fewest downloads comes first.
    while (!this.#stopping.signal.aborted) {
      const free = wanted.filter((file) => !this.#running.has(placeOf(file)) && this.#hasPlace(file))
      const [next] = free.sort((one, other) => this.#count(one) - this.#count(other))
      const account = next && driven.get(next.account_id)
      if (!account) return false
      const full = this.#running.size >= perProcess // guard: few downloads of a process
      if (full) {
        this.#makeRoom(next)
        return false
      }
      this.#start(next, account)
    }
    return false
  }

  #hasPlace({ account_id, workspace_id }: WantedFile): boolean {
    const running = [...this.#running.values()].map(({ file }) => file)
    if (running.filter((file) => file.workspace_id === workspace_id).length >= perWorkspace) return false // guard: no workspace takes all downloads
    return running.filter((file) => file.account_id === account_id).length < perAccount // guard: few downloads of an account
  }

  #count({ workspace_id }: WantedFile): number {
    return [...this.#running.values()].filter(({ file }) => file.workspace_id === workspace_id).length
  }

  /** The newest file of the workspace with the most is fetched later: its end wakes the loop, which starts this one. */
  #makeRoom(wanted: WantedFile): void {
    const running = [...this.#running.values()].toReversed()
    if (running.some(({ leaving }) => leaving.signal.aborted)) return
    const found = findGivingWay(running, ({ file }) => shareOf(file), shareOf(wanted))
    if (found?.file.workspace_id !== wanted.workspace_id) found?.leaving.abort() // guard: a download gives way
  }

  #start(file: WantedFile, account: DrivenAccount): void {
    const { account_id } = file
    const place = placeOf(file)
    const leaving = new AbortController()
    const signal = AbortSignal.any([this.#stopping.signal, leaving.signal])
    const work = fetchWanted(this.#app, account, { file, signal })
      .catch((err) => this.#app.log.warn({ err, account_id }, 'a file could not be fetched'))
      .finally(() => {
        this.#running.delete(place)
        this.#app.wake.signal(filesWanted)
      })
    this.#running.set(place, { file, work, leaving })
  }
}

function shareOf({ workspace_id, account_id }: WantedFile): Share {
  return { workspace: workspace_id, user: account_id }
}

function placeOf({ account_id, chat_id, message_id, index }: WantedFile): string {
  return [account_id, chat_id, message_id, index].join(' ')
}

interface Fetching {
  readonly file: WantedFile
  readonly signal: AbortSignal
}

async function fetchWanted(app: App, account: DrivenAccount, { file, signal }: Fetching): Promise<void> {
  const { held, session } = account
  const flooded = (await findFloodWait(app.db, held.account_id, 'reading')) !== undefined
  if (flooded) return failFile(app, held, file.id, 'unavailable')
  const { chat_id, message_id, index } = file
  const opened = await within(
    app.sources,
    chunkMsMax,
    session.download({ chat_id, message_id, index }),
    signal,
  )
  // The next worker fetches it.
  if (signal.aborted) return
  if (opened?.kind !== 'accepted') return fail(app, account, file.id, opened)
  const { size } = opened.value
  if (size > fileBytesMax) return failFile(app, held, file.id, 'too_large') // guard: no large file is fetched
  const id = await beginFile(app, held, file, size)
  if (id === undefined) return pause(app, signal)
  try {
    const stored = await storeChunks(app, opened.value, { id, signal })
    if (signal.aborted) return await releaseFile(app.db, id)
    if (stored.kind !== 'accepted') return await fail(app, account, id, stored)
    if (!(await completeFile(app, held, id))) await failFile(app, held, id, 'unavailable')
  } catch (error) {
    await releaseFile(app.db, id)
    await pause(app, signal)
    if (!(error instanceof LeaseLost)) throw error
  }
}

/** The file stays wanted, and is not requested again immediately. */
async function pause({ sources }: App, signal: AbortSignal): Promise<void> {
  await within(sources, restMs, new Promise<void>(() => {}), signal)
}

/** Stores the file's chunks in turn. Whatever is not accepted ends it. */
async function storeChunks(
  app: App,
  { size, chunks }: Download,
  { id, signal }: { readonly id: string; readonly signal: AbortSignal },
): Promise<Outcome<null>> {
  const reading = chunks[Symbol.asyncIterator]()
  const deadline = app.sources.now() + fileMsMax
  try {
    for (let n = 0, left = size; ; n++) {
      const next = await within(app.sources, chunkMsMax, reading.next(), signal)
      if (!next || app.sources.now() > deadline) return { kind: 'unknown', reason: 'timeout' }
      if (next.done) return { kind: 'accepted', value: null }
      if (next.value.kind !== 'accepted') return next.value
      const bytes = next.value.value
      left -= bytes.length
      if (left < 0 || bytes.length > downloadChunkBytes) return { kind: 'unknown', reason: 'wrong_size' } // guard: never more bytes than announced
      await storeFileChunk(app.db, { id, n, bytes })
      freeBuffer(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length))
    }
  } finally {
    // Not awaited: an iterator that waits for the platform returns only when the platform answers.
    void Promise.resolve(reading.return?.()).catch(() => {})
  }
}

async function fail(
  app: App,
  { held }: DrivenAccount,
  id: string,
  outcome: Exclude<Outcome<unknown>, { kind: 'accepted' }> | undefined,
): Promise<void> {
  const { account_id } = held
  app.log.info({ account_id, outcome: outcome?.kind ?? 'timeout' }, 'a file could not be fetched')
  if (outcome?.kind === 'flood_wait') await noteFlood(app.db, account_id, outcome)
  await failFile(app, held, id, failureOf(outcome))
}

function failureOf(outcome: Outcome<unknown> | undefined): FileFailure {
  if (outcome?.kind !== 'refused') return 'unavailable'
  return outcome.reason === 'file_unavailable' || outcome.reason === 'chat_unavailable'
    ? 'gone'
    : 'unavailable'
}
