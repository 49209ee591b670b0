/**
 * Files of an account, in parts, over a client of their own for each data centre. Not over mtcute's pools: there an idle pool
 * would end the session, a failed export stays unhandled and fails every later one, and an unknown data centre spins.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { tl } from '@mtcute/core'
import { type Download, downloadChunkBytes, type FilePlace, type Outcome } from '../port.ts'
import {
  ConnectionRefused,
  findErrorText,
  findSeconds,
  nameOf,
  outcomeOf,
  Refused,
  refusedSeconds,
} from './errors.ts'
import { MediaLine, type MediaOwner } from './media-line.ts'
import { findChatNumber, findWholeSize } from './view.ts'

/** Divides 1 MiB, as Telegram requires of a part. */
const partBytes = downloadChunkBytes
const flyingMax = 3
/** A longer wait is returned to the caller, and counts as reading. */
const waitSecondsMax = 10
const waitsMax = 5
/** After a server error. */
const againMs = 500

type Location = tl.RawInputDocumentFileLocation | tl.RawInputPhotoFileLocation

interface FoundFile {
  dc: number
  location: Location
  readonly size: number
  renewals: number
  renewing: Promise<void> | undefined
}

export class Media {
  readonly #owner: MediaOwner
  /** By data centre. */
  readonly #lines = new Map<number, MediaLine>()
  readonly #over = new AbortController()
  /** By the monotonic clock: no new connection before. */
  #restsUntil = 0

  constructor(owner: MediaOwner) {
    this.#owner = owner
  }

  async download(place: FilePlace): Promise<Outcome<Download>> {
    try {
      const found = await this.#patiently(() => this.#find(place))
      return { kind: 'accepted', value: { size: found.size, chunks: this.#chunks(place, found) } }
    } catch (error) {
      return this.#outcome(error)
    }
  }

  /** Ends every download. */
  close(): void {
    this.#over.abort(new Error('The session is over.'))
    for (const line of this.#lines.values()) line.end()
    this.#lines.clear()
  }

  /** A message stores no reference to its file: fetching the message again returns one that is valid now. */
  async #find({ chat_id, message_id, index }: FilePlace): Promise<FoundFile> {
    const id = [{ _: 'inputMessageID' as const, id: Number(message_id) }]
    const answer = await this.#owner.call({ _: 'messages.getMessages', id })
    const message = 'messages' in answer ? answer.messages[0] : undefined
    if (message?._ !== 'message' || index !== 0) throw new Refused('file_unavailable')
    const number = findChatNumber(message.peerId, this.#owner.self_id())
    if (number !== chat_id) throw new Refused('file_unavailable') // guard: a file belongs to its chat
    const file = locate(message.media)
    if (!file) throw new Refused('file_unavailable')
    return { ...file, renewals: 0, renewing: undefined }
  }

  async *#chunks(place: FilePlace, found: FoundFile): AsyncGenerator<Outcome<Uint8Array>> {
    const flying: Promise<Uint8Array>[] = []
    try {
      for (let at = 0, next = 0; at < found.size; at += partBytes) {
        for (; next < found.size && flying.length < flyingMax; next += partBytes) {
          const part = this.#part(place, found, next)
          // Awaited later, or not at all if an earlier one fails.
          part.catch(() => {})
          flying.push(part)
        }
        const bytes = await flying.shift()
        // guard: a part that is cut short ends the download
        if (bytes?.length !== Math.min(partBytes, found.size - at))
          throw new Error('The file has another size.')
        yield { kind: 'accepted', value: bytes }
      }
    } catch (error) {
      yield this.#outcome(error)
    }
  }

  async #part(place: FilePlace, found: FoundFile, offset: number): Promise<Uint8Array> {
    for (let losses = 0, moves = 0; ; ) {
      const { renewals } = found
      const used: { line?: MediaLine } = {}
      const read = () => {
        used.line = this.#line(found.dc)
        return used.line.read(found.location, offset, partBytes)
      }
      try {
        return await this.#patiently(read)
      } catch (error) {
        if (error instanceof ConnectionRefused) this.#refuse(error)
        if (this.#over.signal.aborted) throw error
        const text = findErrorText(error)
        const name = text === undefined ? undefined : nameOf(text)
        const isLost = name === undefined && !(error instanceof Refused)
        if (name?.startsWith('FILE_REFERENCE_')) await this.#renew(place, found, renewals)
        else if (name === 'FILE_MIGRATE' && moves++ === 0) found.dc = newDcOf(error)
        else if (isLost && losses++ === 0)
          used.line?.end() // guard: a lost connection is replaced once
        else throw error
      }
    }
  }

  /** Once for a file, however many parts notice. */
  async #renew(place: FilePlace, found: FoundFile, seen: number): Promise<void> {
    if (found.renewals === seen) {
      if (found.renewals > 0) throw new Refused('file_unavailable') // guard: a reference is renewed once
      found.renewals++
      found.renewing = this.#patiently(async () => {
        const now = await this.#find(place)
        const isSame = now.location.id.eq(found.location.id)
        if (!isSame) throw new Refused('file_unavailable') // guard: another file is not fetched
        found.location = now.location
      })
    }
    await found.renewing
  }

  #refuse(error: ConnectionRefused): never {
    const now = performance.now()
    if (now >= this.#restsUntil) this.#restsUntil = now + refusedSeconds * 1000
    throw error
  }

  #line(dc: number): MediaLine {
    this.#over.signal.throwIfAborted()
    const known = this.#lines.get(dc)
    if (known && !known.isOver) return known
    // guard: downloads wait after a refused connection
    if (performance.now() < this.#restsUntil) throw new ConnectionRefused('Refused a short time ago.')
    const line = new MediaLine(this.#owner, dc)
    this.#lines.set(dc, line)
    return line
  }

  /** Sits out short waits, and retries after server errors. */
  async #patiently<T>(work: () => Promise<T>): Promise<T> {
    for (let waits = 1; ; waits++) {
      try {
        return await work()
      } catch (error) {
        const ms = pauseOf(error)
        if (ms === undefined || waits >= waitsMax) throw error
        await sleep(ms, undefined, { signal: this.#over.signal })
      }
    }
  }

  /** A refusal here says nothing about the account: the download never ends the session. */
  #outcome(error: unknown): Exclude<Outcome<never>, { kind: 'accepted' }> {
    if (error instanceof ConnectionRefused)
      return { kind: 'flood_wait', retry_after_seconds: refusedSeconds, stops: 'reading' }
    const outcome = outcomeOf(error, 'reading')
    if (outcome.kind !== 'refused' || outcome.reason === 'file_unavailable') return outcome
    return { kind: 'unknown', reason: outcome.detail ?? outcome.reason }
  }
}

/** Undefined: there is no file, or one with a timer. */
function locate(
  media: tl.TypeMessageMedia | undefined,
): Pick<FoundFile, 'dc' | 'location' | 'size'> | undefined {
  if (media?._ !== 'messageMediaDocument' && media?._ !== 'messageMediaPhoto') return undefined
  // guard: media with a timer is never fetched
  if (media.ttlSeconds !== undefined) return undefined
  if (media._ === 'messageMediaDocument') {
    if (media.document?._ !== 'document') return undefined
    const { id, accessHash, fileReference, dcId: dc, size } = media.document
    return {
      dc,
      size,
      location: { _: 'inputDocumentFileLocation', id, accessHash, fileReference, thumbSize: '' },
    }
  }
  const whole = media.photo?._ === 'photo' ? findWholeSize(media.photo.sizes) : undefined
  if (media.photo?._ !== 'photo' || !whole) return undefined
  const { id, accessHash, fileReference, dcId: dc } = media.photo
  const location = {
    _: 'inputPhotoFileLocation',
    id,
    accessHash,
    fileReference,
    thumbSize: whole.type,
  } as const
  return { dc, size: whole.size, location }
}

function newDcOf(error: unknown): number {
  const { newDc } = error as { newDc?: unknown }
  const [, digits] = /_(\d+)$/.exec(findErrorText(error) ?? '') ?? []
  return typeof newDc === 'number' ? newDc : Number(digits)
}

/** How long to wait before the call is worth repeating; undefined: it is not. */
function pauseOf(error: unknown): number | undefined {
  const seconds = findSeconds(error)
  if (seconds !== undefined) return seconds <= waitSecondsMax ? seconds * 1000 : undefined // guard: a long wait is not served
  const { code } = error as { code?: unknown }
  const isServers =
    findErrorText(error) !== undefined && typeof code === 'number' && (code >= 500 || code < 0)
  return isServers ? againMs : undefined
}
