/** The service's stream, read by the leading tab. It reconnects automatically. */
import type { Mark } from './stale.ts'

/** The service sends a comment every 20 s: without one for this long the connection is dead. */
const silentMsMax = 45_000
const retryMs = { first: 1_000, most: 5_000 }
/** The service or this session has reached its limit of streams. */
const refusedMs = 30_000

interface StreamEvents {
  /** Marks may have been lost before this. */
  opened(): void
  /** It reconnects soon. */
  lost(): void
  /** The service accepts no stream now. */
  refused(): void
  marks(marks: readonly Mark[]): void
  /** Anything arrived, even a comment. */
  alive(): void
}

/** Reads until it is aborted, or the session has ended. */
export async function readStream(events: StreamEvents, signal: AbortSignal): Promise<void> {
  for (let failures = 0; !signal.aborted; ) {
    const ended = await readOnce(events, signal, () => {
      failures = 0
    })
    if (ended === 'signed_out' || signal.aborted) return
    if (ended === 'refused') events.refused()
    else events.lost()
    const growing = Math.min(retryMs.first * 2 ** failures++, retryMs.most)
    await pause(ended === 'refused' ? refusedMs : growing * (0.75 + Math.random() / 2), signal)
  }
}

type Ended = 'signed_out' | 'refused' | 'lost'

async function readOnce(events: StreamEvents, signal: AbortSignal, opened: () => void): Promise<Ended> {
  const dead = new AbortController()
  let timer: ReturnType<typeof setTimeout> | undefined
  const hear = () => {
    clearTimeout(timer)
    timer = setTimeout(() => dead.abort(), silentMsMax)
    events.alive()
  }
  try {
    hear()
    const response = await fetch('/dashboard/api/stream', {
      credentials: 'same-origin',
      cache: 'no-store',
      signal: AbortSignal.any([signal, dead.signal]),
    })
    if (response.status === 401) return 'signed_out' // guard: no stream without a session
    if (!response.ok || !response.body) return response.status === 503 ? 'refused' : 'lost'
    opened()
    events.opened()
    return await readEvents(response.body, events, hear)
  } catch {
    return 'lost'
  } finally {
    clearTimeout(timer)
  }
}

async function readEvents(
  body: ReadableStream<Uint8Array>,
  events: StreamEvents,
  hear: () => void,
): Promise<Ended> {
  const reader = body
    .pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>)
    .getReader()
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read()
    if (done) return 'lost'
    hear()
    const parts = (rest + value).split('\n\n')
    rest = parts.pop() ?? '' // guard: a mark that arrives in pieces
    for (const part of parts) {
      if (part.startsWith('event: replaced')) return 'refused'
      const data = /^event: marks\ndata: (.*)$/.exec(part)?.[1]
      if (data !== undefined) events.marks(JSON.parse(data) as Mark[])
    }
  }
}

function pause(ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, ms)
    signal.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
