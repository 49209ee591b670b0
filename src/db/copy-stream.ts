/** Copies whole tables to and from the database, however large: neither side gets more than a few blocks ahead. */
import type { Duplex } from 'node:stream'
import pg from 'pg'

/** Takes the bytes of a row, which are valid during the call. A returned promise holds the server back until it settles. */
type Take = (row: Buffer) => Promise<void> | undefined

type Done = (error: Error | undefined, result: pg.QueryResult) => void

/** A `copy … to stdout`. Resolves with the number of rows. If `take` fails, cuts the connection. */
export function copyRows(client: pg.ClientBase, text: string, take: Take): Promise<number> {
  return new Promise((resolve, reject) => {
    client.query(new CopyRows(text, take, settle(resolve, reject)))
  })
}

/** A `copy … from stdin`. Resolves with the number of rows. If the source fails, so does the copy. */
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
    // The cause says more than the connection that was cut because of it.
    super(text, (error, result) => done(this.#failure ?? error, result))
    this.#take = take
  }

  /** Called by the driver. Rows that were read together with this one still arrive while it waits. */
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
/** A message's length includes itself, but not the kind before it. */
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

  /** Called by the driver when the server is ready for the data. */
  handleCopyInResponse({ stream }: pg.Connection): void {
    this.#send(stream).catch((error: Error) => {
      this.#failure = error
      stream.write(copyFail)
    })
  }

  async #send(stream: Duplex): Promise<void> {
    for await (const bytes of this.#source) {
      // The server has refused a row and reads no more.
      if (this.#ended || stream.destroyed) return
      const head = Buffer.from([copyData, 0, 0, 0, 0])
      head.writeInt32BE(bytes.length + lengthBytes, 1)
      stream.write(head)
      if (!stream.write(bytes)) await drained(stream)
    }
    stream.write(copyDone)
  }
}

/** Resolves on close as well: the driver reports that, and the copy must not wait forever. */
function drained(stream: Duplex): Promise<void> {
  return new Promise((resolve) => {
    const go = () => {
      stream.off('drain', go).off('close', go)
      resolve()
    }
    stream.on('drain', go).on('close', go)
  })
}
