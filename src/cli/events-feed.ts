/** Reads `GET /events` in order, prints every event, and can forward each one as a webhook would. */
import { setTimeout as sleep } from 'node:timers/promises'
import { Refusal } from '../lib/errors.ts'
import { userAgent } from '../lib/version.ts'
import { newSecret, signatureHeaders } from '../lib/webhook-signatures.ts'
import { type ApiClient, sentenceOf } from './api-client.ts'

const waitSeconds = 25
const pageMax = 1_000
const retrySeconds = 2
const forwardMsMax = 15_000

interface Feed {
  readonly after: number
  readonly follow: boolean
  readonly forward_to: string | undefined
  readonly secret: string | undefined
}

/** Ends after the last event; with `follow`, never. Refuses at the end if the receiver did not accept an event. */
export async function followEvents(
  api: ApiClient,
  { after, follow, forward_to, secret }: Feed,
): Promise<void> {
  const forward = forward_to === undefined ? undefined : forwarding(forward_to, secret)
  let refused = 0
  const exitCode = () => {
    if (refused > 0) process.stderr.write(`${refusedSentence(refused)}\n`)
    return refused > 0 ? 1 : 0
  }
  // A reader that closes the pipe early, such as `head`, is not a failure.
  process.stdout.on('error', () => process.exit(exitCode()))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    // `once` has removed the listener by then, so the second signal ends the process in the usual way.
    process.once(signal, () => (exitCode() === 0 ? process.kill(process.pid, signal) : process.exit(1)))
  }
  let reported: string | undefined
  // Prints a sentence once, not every two seconds.
  const tell = (sentence: string) => {
    if (sentence !== reported) process.stderr.write(`${sentence} Retrying.\n`)
    reported = sentence
  }
  for (let place = after; ; ) {
    const page = await readPage(api, { after: place, follow, tell })
    if (page === undefined) continue
    reported = undefined
    for (const text of splitItems(page)) {
      await new Promise<void>((resolve) => void process.stdout.write(`${text}\n`, () => resolve()))
      if (forward && !(await forward(text))) refused++
      place = JSON.parse(text).sequence
    }
    if (!follow && !JSON.parse(page).has_more) break
  }
  if (refused > 0) throw new Refusal(refusedSentence(refused))
}

function refusedSentence(count: number): string {
  return count === 1 ? 'The receiver refused 1 event.' : `The receiver refused ${count} events.`
}

/** The text of a page; undefined if the caller has to ask the service again. */
async function readPage(
  api: ApiClient,
  { after, follow, tell }: { after: number; follow: boolean; tell: (sentence: string) => void },
): Promise<string | undefined> {
  const query = `after=${after}&limit=${pageMax}&wait=${follow ? waitSeconds : 0}`
  const answer = await api.ask('GET', `/events?${query}`).catch((error) => {
    if (!follow) throw error
    tell(error.message)
    return undefined
  })
  if (answer?.status === 200) return answer.text
  const again = answer === undefined || answer.status === 429 || answer.status >= 500
  if (!follow || !again) throw new Refusal(sentenceOf(answer?.text ?? ''))
  await sleep((answer?.retry_after ?? retrySeconds) * 1_000)
  return undefined
}

/** The items of the first array in a JSON text, byte for byte: signatures cover exactly these bytes. */
export function splitItems(text: string): string[] {
  const items: string[] = []
  let depth = 0
  let quoted = false
  let from = text.indexOf('[') + 1
  for (let at = from; at > 0 && at < text.length; at++) {
    const char = text[at]
    if (quoted) {
      if (char === '\\') at++
      else if (char === '"') quoted = false
    } else if (char === '"') quoted = true
    else if (char === '{' || char === '[') depth++
    else if (depth === 0 && (char === ',' || char === ']')) {
      if (at > from) items.push(text.slice(from, at))
      from = at + 1
      if (char === ']') break
    } else if (char === '}' || char === ']') depth--
  }
  return items
}

/** Posts a signed body and returns whether the receiver accepted it. Reports a failure on standard error. */
function forwarding(url: string, given: string | undefined): (body: string) => Promise<boolean> {
  if (!/^https?:$/.test(URL.parse(url)?.protocol ?? '')) {
    throw new Refusal('--forward-to must be an address such as http://localhost:3000/hook.')
  }
  if (given !== undefined && !/^whsec_[A-Za-z0-9+/]{32,}={0,2}$/.test(given)) {
    throw new Refusal('--secret must be a webhook secret: whsec_ and base64.')
  }
  const secret = given ?? newSecret()
  if (given === undefined) process.stderr.write(`Signed with ${secret}\n`)
  return async (body) => {
    const { id } = JSON.parse(body)
    const timestamp = Math.floor(Date.now() / 1_000)
    const headers = {
      'content-type': 'application/json',
      'user-agent': userAgent,
      ...signatureHeaders({ id, timestamp, body }, [secret]),
    }
    const signal = AbortSignal.timeout(forwardMsMax)
    const status = await fetch(url, { method: 'POST', headers, body, redirect: 'manual', signal }).then(
      (response) => response.status,
      () => undefined,
    )
    const taken = status !== undefined && status >= 200 && status <= 299
    if (!taken) process.stderr.write(`The receiver refused ${id}: ${status ?? 'no answer'}\n`)
    return taken
  }
}
