/** The verbs of whoever receives events: the endpoints of a workspace, and the feed. They call the API with a key. */
import { type Command, Option } from 'commander'
import { ApiClient } from './api-client.ts'
import { followEvents } from './events-feed.ts'
import { describeArguments } from './help.ts'
import { print, type Result } from './output.ts'
import { list, noun, whole } from './verbs.ts'

type Row = Readonly<Record<string, unknown>>

export function addWebhookVerbs(program: Command): void {
  addEvents(program)
  const webhook = noun(program, 'webhook', 'where events are delivered; needs PARLEY_API_KEY')
  apiVerb(webhook, 'list', 'every endpoint', async (api) => {
    return (await api.call<{ webhooks: Row[] }>('GET', '/webhooks')).webhooks
  })
  addChanges(webhook)
  apiVerb(webhook, 'test <id>', 'deliver a test event, also while it is inactive', async (api, _, id) => {
    return (await api.call<{ delivery: Row }>('POST', `/webhooks/${part(id)}/test`)).delivery
  })
  apiVerb<{ state?: string }>(webhook, 'deliveries <id>', 'the newest 100', async (api, { state }, id) => {
    const query = new URLSearchParams({ limit: '100', ...(state && { state }) })
    return (await api.call<{ deliveries: Row[] }>('GET', `/webhooks/${part(id)}/deliveries?${query}`))
      .deliveries
  }).addOption(new Option('--state <state>', 'only these').choices(['pending', 'delivered', 'failed']))
  apiVerb(webhook, 'resend <id> <delivery>', 'deliver once more', async (api, _, id, delivery) => {
    const path = `/webhooks/${part(id)}/deliveries/${part(delivery)}/resend`
    return (await api.call<{ delivery: Row }>('POST', path)).delivery
  })
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
    'add an endpoint; prints its secret, once; `events --forward-to` tries one on this machine',
    async (api, { events }, url) => {
      const made = await api.call<{ webhook: Row; secret: string }>('POST', '/webhooks', { url, events })
      return { ...made.webhook, secret: made.secret }
    },
  ).option('--events <types>', 'separated by commas; all unless named', list)
  apiVerb<ChangeOptions>(
    webhook,
    'update <id>',
    'another address or other events, switch it on or off',
    async (api, { url, events, active }, id) =>
      (await api.call<{ webhook: Row }>('PATCH', `/webhooks/${part(id)}`, { url, events, active })).webhook,
  )
    .option('--url <url>', 'where events are sent to from now on, such as https://example.com/hook')
    .option('--events <types>', 'separated by commas, or *', list)
    .option('--active', 'deliver to it, from where it stopped')
    .option('--no-active', 'leave it alone')
  apiVerb(webhook, 'delete <id>', 'with what is undelivered', (api, _, id) =>
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
  program
    .command('events')
    .description('what happened, one JSON document a line; needs PARLEY_API_KEY')
    .addOption(new Option('--after <sequence>', 'the last one you have').argParser(whole).default(0))
    .option('--follow', 'go on with what happens from now on')
    .option(
      '--forward-to <url>',
      'post each to this address as a webhook would, such as http://localhost:3000/hook',
    )
    .option('--secret <secret>', 'signs what is forwarded; one is made and printed unless named')
    .action(async ({ after, follow = false, forwardTo, secret }: FeedOptions) => {
      await followEvents(new ApiClient(), { after, follow, forward_to: forwardTo, secret })
    })
}

/** A verb that asks the API and prints what came of it. */
function apiVerb<O extends object>(
  parent: Command,
  usage: string,
  description: string,
  act: (api: ApiClient, options: O, ...args: string[]) => Promise<Row | readonly Row[]>,
): Command {
  return describeArguments(parent.command(usage))
    .description(description)
    .option('--json', 'print one JSON document', false)
    .action(async (...given: unknown[]) => {
      const command = given.pop() as Command
      const options = command.optsWithGlobals<O & { json: boolean }>()
      const result = await act(new ApiClient(), options, ...(command.processedArgs as string[]))
      await print(result as Result, options)
    })
}

function part(id: string | undefined): string {
  return encodeURIComponent(id ?? '')
}
