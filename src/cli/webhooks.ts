/** The verbs for receivers of events: a workspace's endpoints, and the feed. They call the API with a key. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import { Refusal } from '../lib/errors.ts'
import { ApiClient, sentenceOf } from './api-client.ts'
import { followEvents } from './events-feed.ts'
import { describeArguments } from './help.ts'
import { Failed, Noted, print, type Result } from './output.ts'
import { commandOf, list, whole } from './verbs.ts'

type Row = Readonly<Record<string, unknown>>

const secretNote = 'The secret is shown only now. Keep it like a password; `webhook rotate` creates another.'

export function addWebhookVerbs(program: Command): void {
  addEvents(program)
  const webhook = commandOf(program, 'webhook')
  apiVerb(webhook, 'list', 'list all endpoints', async (api) => {
    return (await api.call<{ webhooks: Row[] }>('GET', '/webhooks')).webhooks
  })
  addChanges(webhook)
  apiVerb(
    webhook,
    'test <id>',
    'deliver a test event, even to an inactive endpoint, and wait for the response',
    async (api, _, id) => {
      const path = `/webhooks/${part(id)}`
      const { delivery } = await api.call<{ delivery: { id: string } }>('POST', `${path}/test`)
      return reportTest(await awaitTest(api, `${path}/deliveries/${delivery.id}`))
    },
  )
  apiVerb<{ state?: string }>(
    webhook,
    'deliveries <id>',
    'list the newest 100 deliveries',
    async (api, { state }, id) => {
      const query = new URLSearchParams({ limit: '100', ...(state && { state }) })
      return (await api.call<{ deliveries: Row[] }>('GET', `/webhooks/${part(id)}/deliveries?${query}`))
        .deliveries
    },
  ).addOption(
    new Option('--state <state>', 'only deliveries in this state').choices([
      'pending',
      'delivered',
      'failed',
    ]),
  )
  apiVerb(webhook, 'resend <id> <delivery>', 'resend a delivery', async (api, _, id, delivery) => {
    const path = `/webhooks/${part(id)}/deliveries/${part(delivery)}/resend`
    return (await api.call<{ delivery: Row }>('POST', path)).delivery
  })
}

interface TestDelivery extends Row {
  readonly state: 'pending' | 'delivered' | 'failed'
  readonly last: { readonly status: number | null; readonly ms: number; readonly error: string | null } | null
}

/** A test is one attempt, which takes at most 15 seconds once a worker starts it. */
const testMsMax = 60_000 // limit: wait for a test
const pollMs = { first: 100, most: 2_000 }

/** The delivery after its attempt. */
async function awaitTest(api: ApiClient, path: string): Promise<TestDelivery> {
  const deadline = performance.now() + testMsMax
  for (let pause = pollMs.first; performance.now() < deadline; pause = Math.min(pause * 2, pollMs.most)) {
    const { status, text, retry_after } = await api.ask('GET', path)
    const delivery = status === 200 ? (JSON.parse(text).delivery as TestDelivery) : undefined
    if (delivery && delivery.state !== 'pending') return delivery
    // The test stays queued even if a single poll fails.
    if (!delivery && status !== 429 && status < 500) throw new Refusal(sentenceOf(text))
    await sleep(retry_after === undefined ? pause : retry_after * 1_000)
  }
  throw new Refusal(
    `No worker made the attempt within ${testMsMax / 1_000} seconds. The test stays queued: ` +
      '`parley webhook deliveries ID` shows the result.',
  )
}

function reportTest({ last, body: _, tries: __, ...facts }: TestDelivery): Row | Failed {
  const found = { ...facts, ...last }
  if (facts.state === 'delivered' || last === null) return found
  const { status, error, ms } = last
  return new Failed(
    found,
    status === null
      ? `The endpoint gave no answer (${error}) after ${ms} ms.`
      : `The endpoint answered ${status} after ${ms} ms.`,
  )
}

interface ChangeOptions {
  readonly url?: string
  readonly events?: readonly string[]
  readonly active?: boolean
}

function addChanges(webhook: Command): void {
  apiVerb<ChangeOptions>(
    webhook,
    'create <url>',
    'add an endpoint and print its secret once; to test on this machine, use `events --forward-to`',
    async (api, { events }, url) => {
      const made = await api.call<{ webhook: Row; secret: string }>('POST', '/webhooks', { url, events })
      return new Noted({ ...made.webhook, secret: made.secret }, secretNote)
    },
  ).option('--events <types>', 'comma-separated event types; all by default', list)
  apiVerb<ChangeOptions>(
    webhook,
    'update <id>',
    'change the address or events of an endpoint, activate or deactivate it',
    async (api, { url, events, active }, id) =>
      (await api.call<{ webhook: Row }>('PATCH', `/webhooks/${part(id)}`, { url, events, active })).webhook,
  )
    .option('--url <url>', 'new address, such as https://example.com/hook')
    .option('--events <types>', 'comma-separated event types, or *', list)
    .option('--active', 'activate it; delivery continues where it stopped')
    .option('--no-active', 'deactivate it')
  apiVerb(
    webhook,
    'rotate <id>',
    'create a new secret for an endpoint and print it once',
    async (api, _, id) => {
      const path = `/webhooks/${part(id)}/rotate-secret`
      const made = await api.call<{ webhook: Row; secret: string }>('POST', path)
      const note = `${secretNote}\nFor 24 hours Parley also signs deliveries with the previous secret.`
      return new Noted({ ...made.webhook, secret: made.secret }, note)
    },
  )
  apiVerb(webhook, 'delete <id>', 'delete an endpoint with its undelivered events', (api, _, id) =>
    api.call<Row>('DELETE', `/webhooks/${part(id)}`),
  )
}

interface FeedOptions {
  readonly after: number
  readonly follow?: boolean
  readonly forwardTo?: string
  readonly secret?: string
}

function addEvents(program: Command): void {
  commandOf(program, 'events')
    .addOption(
      new Option('--after <sequence>', 'sequence of the last event that you have processed')
        .argParser(whole)
        .default(0),
    )
    .option('--follow', 'keep running and print new events')
    .option(
      '--forward-to <url>',
      'post each event to this address as a webhook would, such as http://localhost:3000/hook',
    )
    .option('--secret <secret>', 'secret that signs forwarded events; created and printed by default')
    .action(async ({ after, follow = false, forwardTo, secret }: FeedOptions) => {
      await followEvents(new ApiClient(), { after, follow, forward_to: forwardTo, secret })
    })
}

/** A verb that calls the API and prints the result. */
function apiVerb<O extends object>(
  parent: Command,
  usage: string,
  description: string,
  act: (api: ApiClient, options: O, ...args: string[]) => Promise<Result>,
): Command {
  return describeArguments(parent.command(usage))
    .description(description)
    .option('--json', 'print one JSON document', false)
    .action(async (...given: unknown[]) => {
      const command = given.pop() as Command
      const options = command.optsWithGlobals<O & { json: boolean }>()
      const result = await act(new ApiClient(), options, ...(command.processedArgs as string[]))
      await print(result, options)
    })
}

function part(id: string | undefined): string {
  return encodeURIComponent(id ?? '')
}
