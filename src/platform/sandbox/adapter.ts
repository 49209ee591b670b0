/** The sandbox as a platform: the port, spoken over a link. */
import type {
  AccountRef,
  Download,
  FilePlace,
  Listener,
  Outcome,
  Platform,
  Session,
  Submission,
  Upload,
  UploadedFile,
} from '../port.ts'
import { downloadChunkBytes } from '../port.ts'
import { chunkBytesMax, type Link, type LinkEvents, type Opened, type Wire } from './calls.ts'

/** How long to wait for a connection. Giving up is safe: nothing has been asked of it yet. */
const connectMsMax = 10_000

export function sandboxPlatform(link: Link): Platform {
  return {
    name: 'sandbox',
    paceMs: 0,
    gapJitter: 0,
    coldRamp: false,
    takeoverSeconds: 0,
    connect: (account, listener) => connect(link, account, listener),
    close: () => Promise.resolve(),
  }
}

async function connect(link: Link, account: AccountRef, listener: Listener): Promise<Outcome<Session>> {
  // The listener is called only after `connect` has returned the session.
  const handedOver = Promise.withResolvers<void>()
  let wire: Wire | null = null
  let over = false
  const lose = async (reason: string) => {
    await handedOver.promise
    if (over) return
    over = true
    listener.closed({ status: 'lost', reason })
  }
  const events: LinkEvents = {
    updates: async (batch) => {
      await handedOver.promise
      if (over) return
      try {
        await listener.updates(batch)
      } catch {
        // A batch that was not stored must not be skipped: the next session begins before it.
        await lose('The updates could not be processed.')
        await wire?.close()
      }
    },
    lost: (reason) => {
      lose(reason).catch(() => {})
    },
  }
  const { account_id, name, position } = account
  const outcome = await link.connect(
    { account_id, name, position },
    events,
    AbortSignal.timeout(connectMsMax),
  )
  if (outcome.kind !== 'accepted') return outcome
  wire = outcome.value.wire
  setImmediate(handedOver.resolve)
  const finish = () => {
    over = true
  }
  return { kind: 'accepted', value: makeSession(outcome.value, finish) }
}

function makeSession({ wire, self }: Opened, finish: () => void): Session {
  return {
    self,
    ping: async () => (await wire.call('ping', {})).kind === 'accepted',
    resolve: ({ kind, value }) => wire.call('resolve', { kind, value }),
    askPerson: (person_id, { kind, value }) =>
      wire.call('ask_person', { person_id, identifier: { kind, value } }),
    openChat: (person_id) => wire.call('open_chat', { person_id }),
    upload: (file) => upload(wire, file),
    send: ({ chat_id, text, file, random_id }: Submission) =>
      wire.call('send', { chat_id, text, handle: file?.handle ?? null, random_id }),
    history: ({ chat_id, before, limit }) =>
      wire.call('history', { chat_id, before: before && { message_id: before.message_id }, limit }),
    chats: ({ after, limit }) => wire.call('chats', { after, limit }),
    contacts: () => wire.call('contacts', {}),
    download: (file) => download(wire, file),
    setReadState: (chat_id, unread) => wire.call('read_state', { chat_id, unread }),
    close: async () => {
      finish()
      await wire.close()
    },
  }
}

/** Waits for the answer to each chunk before it reads the next, so a slow platform slows the source down. */
async function upload(
  wire: Wire,
  { chunks, file_name, media_type, size }: Upload,
): Promise<Outcome<UploadedFile>> {
  const begun = await wire.call('upload_begin', { file_name, media_type, size })
  if (begun.kind !== 'accepted') return begun
  const { handle } = begun.value
  for await (const chunk of chunks) {
    for (let start = 0; start < chunk.length; start += chunkBytesMax) {
      const data = chunk.subarray(start, start + chunkBytesMax)
      const taken = await wire.call('upload_chunk', { handle, data })
      if (taken.kind !== 'accepted') return taken
    }
  }
  const ended = await wire.call('upload_end', { handle })
  return ended.kind === 'accepted' ? { kind: 'accepted', value: { ...ended.value, handle } } : ended
}

/** Requests the first part immediately, which says how long the file is. */
async function download(wire: Wire, file: FilePlace): Promise<Outcome<Download>> {
  const { chat_id, message_id, index } = file
  const part = (offset: number) => wire.call('file_part', { chat_id, message_id, index, offset })
  const first = await part(0)
  if (first.kind !== 'accepted') return first
  const { size } = first.value
  async function* chunks(): AsyncGenerator<Outcome<Uint8Array>> {
    let parts: Buffer[] = []
    for (let offset = 0; offset < size; ) {
      const outcome = offset === 0 ? first : await part(offset)
      if (outcome.kind !== 'accepted') {
        yield outcome
        return
      }
      const bytes = Buffer.from(outcome.value.data, 'base64')
      if (bytes.length === 0 || outcome.value.size !== size) {
        yield { kind: 'unknown', reason: 'The file has another size than before.' }
        return
      }
      parts.push(bytes)
      offset += bytes.length
      if (offset % downloadChunkBytes !== 0 && offset < size) continue
      yield { kind: 'accepted', value: Buffer.concat(parts) }
      parts = []
    }
  }
  return { kind: 'accepted', value: { size, chunks: chunks() } }
}
