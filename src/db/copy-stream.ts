/** Whole tables to and from the database, however large: neither side gets ahead of the other by more than a few blocks. */
import type { Duplex } from 'node:stream'
import pg from 'pg'

/** Takes the bytes of a row, which are good during the call. A promise holds the server back until it is settled. */
type Take = (row: Buffer) => Promise<void> | undefined

type Done = (error: Error | undefined, result: pg.QueryResult) => void

/** A `copy … to stdout`. Resolves with the number of rows. If `take` fails, the connection is cut. */
export function copyRows(client: pg.ClientBase, text: string, take: Take): Promise<number> {
  return new Promise((resolve, reject) => {
    client.query(new CopyRows(text, take, settle(resolve, reject)))
  })
}

/** A `copy … from stdin`. Resolves with the number of rows. If the source fails, the copy does. */
export function copyStream(
  client: pg.ClientBase,
  text: string,
  source: AsyncIterable<Buffer>,
): Promise<number> {
  return new Promise((resolve, reject) => {
    client.query(new CopyStream(text, source, settle(resolve, reject)))
  })
}

function settle(resolve: (rows: number) => void, reject: (error: Error) => void): Done {
  return (error, result) => (error ? reject(error) : resolve(result.rowCount ?? 0))
}

class CopyRows extends pg.Query {
  readonly #take: Take
  #waiting: Promise<void> | undefined
  #failure: Error | undefined

  constructor(text: string, take: Take, done: Done) {
    // What stopped it says more than the connection that was cut because of it.
    super(text, (error, result) => done(this.#failure ?? error, result))
    this.#take = take
  }

  /** Called by the driver. Rows that were read together with this one still come while it waits. */
  handleCopyData({ chunk }: { chunk: Buffer }, { stream }: pg.Connection): void {
    const wait = this.#failure ? undefined : this.#take(chunk)
    if (!wait || wait === this.#waiting) return
    this.#waiting = wait
    stream.pause()
    wait.then(
      () => {
        if (this.#waiting === wait) stream.resume()
      },
      (error: Error) => {
        this.#failure = error
        stream.destroy()
      },
    )
  }
}

const copyData = 0x64
const copyDone = Buffer.from([0x63, 0, 0, 0, 4])
const copyFail = Buffer.from([0x66, 0, 0, 0, 5, 0])
/** The length of a message counts itself, but not the kind before it. */
const lengthBytes = 4

class CopyStream extends pg.Query {
  readonly #source: AsyncIterable<Buffer>
  #failure: Error | undefined
  #ended = false

  constructor(text: string, source: AsyncIterable<Buffer>, done: Done) {
    super(text, (error, result) => {
      this.#ended = true
      done(this.#failure ?? error, result)
    })
    this.#source = source
  }

  /** Called by the driver when the server is ready for them. */
  handleCopyInResponse({ stream }: pg.Connection): void {
    this.#send(stream).catch((error: Error) => {
      this.#failure = error
      stream.write(copyFail)
    })
  }

  async #send(stream: Duplex): Promise<void> {
    for await (const bytes of this.#source) {
      // The server has refused a row: it reads no more.
      if (this.#ended || stream.destroyed) return
      const head = Buffer.from([copyData, 0, 0, 0, 0])
      head.writeInt32BE(bytes.length + lengthBytes, 1)
      stream.write(head)
      if (!stream.write(bytes)) await drained(stream)
    }
    stream.write(copyDone)
  }
}

/** Or closed: the driver tells of that, and nobody waits for ever. */
function drained(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      stream.off('drain', go).off('close', go)
      resolve()
    }
    stream.on('drain', go).on('close', go)
  })
}
