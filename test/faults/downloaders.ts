/**
 * Callers that download the files people send to the accounts, while the storm rages. Every file that a caller gets must be
 * the one that was sent, every file must arrive in the end, and no download may leave rows behind.
 *
 *   const downloaders = startDownloaders(plant, { random, count: 6 })
 *   await downloaders.stop()
 *   const problems = await downloaders.finish()
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { forgetMedia } from '../../src/capabilities/media/media.ts'
import { sql } from '../../src/db/sql.ts'
import type { FaultKind } from '../../src/platform/sandbox/faults.ts'
import { readFile } from '../../src/platform/sandbox/file-bytes.ts'
import { until } from '../harness/process.ts'
import type { Plant } from './plant.ts'
import type { Random } from './random.ts'

const bytesMax = 3_000_000
/** The account's own data centre, and another, to which its login is exported. */
const dataCentres = [2, 4] as const
const faultShare = 0.3
const faults: readonly (readonly [FaultKind, number])[] = [
  ['slow', 3],
  ['unavailable', 2],
  ['flood_wait', 2],
  ['drop_after', 3],
]
/** Longer than the service lets a caller wait. */
const answerMsMax = 75_000
const attemptsMax = 20
const finishMsMax = 240_000

interface SentFile {
  readonly account_id: string
  readonly person_id: number
  readonly message_id: number
  readonly size: number
  readonly seed: number
}

type Verdict = 'whole' | 'again' | 'wrong' | 'gone'

export interface Downloaders {
  readonly counts: Readonly<Record<'sent' | 'whole' | 'again', number>>
  /** Every caller finishes its current request and sends no more. */
  stop(): Promise<void>
  /** Asks for every file once more. Returns what is wrong. */
  finish(): Promise<string[]>
}

interface DownloadersOptions {
  readonly random: Random
  readonly count: number
}

export function startDownloaders(plant: Plant, options: DownloadersOptions): Downloaders {
  const callers = new Callers(plant, options)
  const living = Promise.all(Array.from({ length: options.count }, (_, number) => callers.live(number)))
  return {
    counts: callers.counts,
    async stop() {
      callers.over = true
      await living
    },
    finish: () => callers.finish(),
  }
}

class Callers {
  readonly counts = { sent: 0, whole: 0, again: 0 }
  over = false
  readonly #plant: Plant
  readonly #options: DownloadersOptions
  readonly #files: SentFile[] = []
  readonly #problems: string[] = []

  constructor(plant: Plant, options: DownloadersOptions) {
    this.#plant = plant
    this.#options = options
  }

  async live(number: number): Promise<void> {
    const random = this.#options.random.fork(`downloader ${number}`)
    for (let n = 0; !this.over; n++) {
      const file = await this.#send(random, number * 1_000_000 + n).catch(() => undefined)
      if (!file) {
        await sleep(200)
        continue
      }
      for (let attempt = 1; attempt <= attemptsMax && !this.over; attempt++) {
        const crowd = random.chance(0.2) ? 2 : 1
        const verdicts = await Promise.all(Array.from({ length: crowd }, () => this.#fetch(file, random)))
        if (!verdicts.includes('again')) break
        await sleep(random.between(50, 1_000))
      }
    }
  }

  /** A person sends a file. Resolves when its message is stored. */
  async #send(random: Random, seed: number): Promise<SentFile> {
    const plant = this.#plant
    const account_id = random.pick(plant.accounts)
    const person_id = random.pick(plant.people)
    const size = 1 + random.whole(bytesMax)
    if (random.chance(faultShare)) {
      const fault = random.weigh(faults)
      await plant.fault({ on: 'download', fault, seconds: random.between(0.2, 2), times: 1, account_id })
    }
    const { message_id } = (await plant.control('POST', '/messages', {
      ...{ account_id, person_id },
      file: { size, seed, dc: random.pick(dataCentres) },
    })) as { message_id: number }
    const file = { account_id, person_id, message_id, size, seed }
    this.counts.sent++
    this.#files.push(file)
    await this.#untilStored(file, 20_000)
    return file
  }

  #untilStored({ account_id, person_id, message_id }: SentFile, msMax: number): Promise<unknown> {
    return until('the message is stored', msMax, () =>
      this.#plant.db
        .maybe(sql`
          select 1 from messages where account_id = ${account_id} and chat_id = ${person_id} and id = ${message_id}`)
        .catch(() => undefined),
    )
  }

  async #fetch(file: SentFile, random: Random): Promise<Verdict> {
    const { urls, tenant } = this.#plant
    const { account_id, person_id, message_id } = file
    const url = urls.length > 0 ? random.pick(urls) : undefined
    const path = `/chats/platform:chat:${person_id}/messages/${message_id}/attachments/0?account_id=${account_id}`
    const start = random.chance(0.3) ? random.whole(file.size) : 0
    const headers = { authorization: `Bearer ${tenant.key}`, range: `bytes=${start}-` }
    const got = await fetch(`${url}/api/v1${path}`, { headers, signal: AbortSignal.timeout(answerMsMax) })
      .then(async (answer) => ({ status: answer.status, bytes: Buffer.from(await answer.arrayBuffer()) }))
      // No answer, or one that breaks off: its process was killed.
      .catch(() => undefined)
    const verdict = got ? verdictOn(file, start, got) : 'again'
    if (verdict === 'whole' || verdict === 'again') this.counts[verdict]++
    else
      this.#problems.push(`a download was ${verdict}: ${got?.status} ${JSON.stringify({ ...file, start })}`)
    return verdict
  }

  async finish(): Promise<string[]> {
    const random = this.#options.random.fork('last downloads')
    const left = [...this.#files]
    const fetchAll = async () => {
      for (let file = left.pop(); file; file = left.pop()) {
        const wanted = file
        await until(`the file ${JSON.stringify(wanted)} arrives`, finishMsMax, async () => {
          await this.#untilStored(wanted, finishMsMax)
          return (await this.#fetch(wanted, random)) !== 'again'
        }).catch((error: Error) => void this.#problems.push(error.message))
      }
    }
    await Promise.all(Array.from({ length: this.#options.count }, fetchAll))
    return [...this.#problems, ...(await this.#listRemains())]
  }

  /** What unfinished downloads have left once the hour has passed. */
  async #listRemains(): Promise<string[]> {
    const { db } = this.#plant
    await db.run(sql`
      update media_files set wanted_at = wanted_at - interval '1 hour' where ended_at is null or failure is not null`)
    while ((await forgetMedia(db)) > 0) {}
    const { files, chunks } = await db.one<{ files: number; chunks: number }>(sql`
      select (select count(*)::int from media_files where ended_at is null or failure is not null) as files,
        (select count(*)::int from media_chunks c where not exists (
          select from media_files f where f.id = c.file_id and f.ended_at is not null and f.failure is null)) as chunks`)
    return files + chunks === 0 ? [] : [`downloads left ${files} files and ${chunks} chunks`]
  }
}

function verdictOn(
  { size, seed }: SentFile,
  start: number,
  { status, bytes }: { readonly status: number; readonly bytes: Buffer },
): Verdict {
  if (status === 206) {
    const sent = readFile({ index: 0, kind: 'file', file_name: '', media_type: '', size, seed }, 0, size)
    return bytes.equals(sent.subarray(start)) ? 'whole' : 'wrong'
  }
  return status === 404 || status === 413 || status === 416 ? 'gone' : 'again'
}
