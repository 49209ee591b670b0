/** A workspace in which the example of every operation succeeds, and requests made from these examples. */
import { createColumn } from '../../src/capabilities/columns/columns.ts'
import { previewErasure } from '../../src/capabilities/erasing/erasing.ts'
import { createWebhook } from '../../src/capabilities/webhooks/webhooks.ts'
import { sql } from '../../src/db/sql.ts'
import { emit } from '../../src/events/emit.ts'
import { sequence } from '../../src/events/sequencer.ts'
import { newId } from '../../src/lib/ids.ts'
import { writeMessage } from '../../src/platform/sandbox/person-acts.ts'
import type { Route } from '../../src/route.ts'
import type { Answer, Ask, Service, Tenant } from './service.ts'
import { openWorkplace, type Workplace } from './worker.ts'

/** What only our own workspace may ever see. */
export const canary = 'canaryofown'

/** The limits of single operations have their own tests. */
const limitsAway = {
  PARLEY_START_CHAT_PER_MINUTE: '10000',
  PARLEY_CAMPAIGN_CREATE_PER_MINUTE: '10000',
  PARLEY_CAMPAIGN_CANCEL_PER_MINUTE: '10000',
}

/** What the examples name. */
interface Places {
  readonly account_id: string
  readonly chat_id: string
  readonly column_id: string
  readonly operation_id: string
  readonly person_id: string
}

/** One request, before it is sent. */
export interface ExampleRequest {
  readonly method: string
  readonly path: string
  readonly ask: Ask
}

export class Examples {
  readonly workplace: Workplace
  readonly service: Service
  readonly own: Tenant
  readonly other: Tenant
  readonly account_id: string
  readonly chat_id: string
  readonly column_id: string
  readonly operation_id: string
  readonly person_id: string
  campaign_id = ''
  broadcast_id = ''
  webhook_id = ''
  delivery_id = ''
  /** Somebody whom nothing else needs. */
  erased_id = ''
  preview = ''
  #serial = 0

  constructor(workplace: Workplace, { own, other, ...places }: Places & { own: Tenant; other: Tenant }) {
    this.workplace = workplace
    this.service = workplace.service
    this.own = own
    this.other = other
    this.account_id = places.account_id
    this.chat_id = places.chat_id
    this.column_id = places.column_id
    this.operation_id = places.operation_id
    this.person_id = places.person_id
  }

  close(): Promise<void> {
    return this.workplace.close()
  }

  /** An endpoint with a delivery. Earlier ones are removed, because a workspace has at most 10. */
  async makeWebhook(): Promise<void> {
    const { db } = this.service.app
    const { workspace_id } = this.own
    await db.run(sql`update webhooks set deleted_at = now(), active = false where deleted_at is null`)
    const url = `https://${canary}.example.com/hook`
    const made = await db.transaction((tx) =>
      createWebhook(this.service.app, tx, 'system', { workspace_id, url }),
    )
    this.webhook_id = made.webhook.id
    // Not active, because no request of ours goes to the internet.
    await db.run(sql`update webhooks set active = false where id = ${this.webhook_id}`)
    this.delivery_id = newId()
    await db.run(sql`
      insert into webhook_deliveries (id, workspace_id, webhook_id, sequence, event_id, type, due_at, created_at)
      select ${this.delivery_id}, ${workspace_id}, ${this.webhook_id}, sequence, id, type, now(), created_at
      from events where workspace_id = ${workspace_id} limit 1`)
  }

  /** A sequence of ours, with `canary` like everything else. */
  async makeCampaign(): Promise<string> {
    const { account_id, chat_id } = this
    const answer = await this.service.post('/campaigns', {
      key: this.own.key,
      headers: { 'idempotency-key': `campaign-${this.#serial++}` },
      body: {
        name: canary,
        message_text: canary,
        recipients: [{ account_id, chat_id }],
        steps: [{ branch: 'no_reply', wait_hours: 1, variants: [canary] }],
        scheduled_at: new Date(Date.now() + 86_400_000).toISOString(),
      },
    })
    return (answer.body.campaign as { id: string }).id
  }

  async #makeErasable(): Promise<void> {
    const { db } = this.service.app
    const { workspace_id } = this.own
    this.erased_id = newId()
    await db.run(sql`
      insert into people (id, workspace_id, platform, number)
      values (${this.erased_id}, ${workspace_id}, 'sandbox', ${880_000 + this.#serial++})`)
    this.preview = (await previewErasure(db, workspace_id, this.erased_id)).preview
  }

  /** What must hold for a request to succeed once more. */
  async #prepare({ name, path }: Route): Promise<void> {
    const { db } = this.service.app
    if (path.startsWith('/webhooks')) await this.makeWebhook()
    if (path.startsWith('/people/{person_id}/eras')) await this.#makeErasable()
    if (name === 'resume_campaign') {
      await db.run(sql`
        update campaigns set status = 'paused', pause_reason = 'requested' where id = ${this.campaign_id}`)
    }
    if (name === 'cancel_campaign') {
      const { status } = await db.one<{ status: string }>(
        sql`select status from campaigns where id = ${this.campaign_id}`,
      )
      if (status === 'cancelled') this.campaign_id = await this.makeCampaign()
    }
  }

  /** A request that would succeed, made from the operation's own example. */
  async requestOf(route: Route): Promise<ExampleRequest> {
    await this.#prepare(route)
    const { account_id } = this
    const example = JSON.stringify(route.example)
      .replaceAll('platform:chat:42', this.chat_id)
      .replaceAll('0199a1f0-0000-7000-8000-00000000000a', this.column_id)
      .replaceAll('019a7e6e-7c1a-7b55-9f53-0d6a1f0c7a11', this.operation_id)
      .replaceAll('019a7e70-0000-7000-8000-0000000000d1', this.person_id)
      .replaceAll('019a7e70-0000-7000-8000-0000000000d2', this.erased_id)
      .replaceAll('7c1f'.repeat(16), this.preview)
      .replaceAll('019a7e70-0000-7000-8000-0000000000c1', this.campaign_id)
      .replaceAll('019a7e70-0000-7000-8000-0000000000b1', this.broadcast_id)
      .replaceAll('acc_2Jk9vQ7wXb4LmN8pRt3Z', account_id)
      .replaceAll('019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b01', this.webhook_id)
      .replaceAll('019a7e6e-7c1a-7b55-9f53-0d6a1f0c7b02', this.delivery_id)
    const { params = {}, query = {}, body }: Route['example'] = JSON.parse(example)
    const path = route.path.replaceAll(/\{(\w+)\}/g, (_, name) => encodeURIComponent(params[name] ?? ''))
    const filled = new URLSearchParams({ ...query, ...('account_id' in query && { account_id }) })
    const withAccount =
      typeof body === 'object' && body !== null && 'account_id' in body ? { ...body, account_id } : body
    const headers = { 'idempotency-key': `contract-${this.#serial++}` }
    const { key } = this.own
    return { method: route.method, path: `${path}?${filled}`, ask: { key, body: withAccount, headers } }
  }

  async ask(route: Route, overrides: Ask = {}): Promise<Answer> {
    const { method, path, ask } = await this.requestOf(route)
    return this.service.call(method, path, {
      ...ask,
      ...overrides,
      headers: { ...ask.headers, ...overrides.headers },
    })
  }
}

export async function openExamples({
  routes,
  env = {},
}: {
  routes?: readonly Route[]
  env?: Readonly<Record<string, string>>
} = {}): Promise<Examples> {
  const workplace = await openWorkplace({ ...(routes && { routes }), env: { ...limitsAway, ...env } })
  const { service } = workplace
  await service.open('extended')
  const own = await service.tenant('Own')
  const other = await service.tenant('Other')
  await workplace.work()
  const person = workplace.sandbox.world.addPerson({ name: canary, username: 'ines_garcia' })
  const chat_id = `platform:chat:${person.person_id}`
  const account_id = await workplace.connected(own)
  const id = `${person.person_id}` as const
  await service.chat({ account_id, workspace_id: own.workspace_id, id, name: canary, texts: [canary] })
  const photo = {
    index: 0,
    kind: 'photo',
    file_name: canary,
    media_type: 'image/png',
    size: 9,
    seed: 1,
  } as const
  for (let n = 1; n <= 7; n++) {
    writeMessage(workplace.sandbox.world, {
      account_id,
      person_id: person.person_id,
      text: canary,
      file: photo,
    })
  }
  await workplace.untilStored(account_id, 7)
  const column = await createColumn(service.app, 'system', {
    workspace_id: own.workspace_id,
    name: canary,
    type: 'select',
    options: [{ value: 'Team' }],
  })
  const actor = { type: 'system', id: 'system' }
  const moved = { account_id, chat_id, from_stage_key: canary, to_stage_key: 'new', actor }
  await service.app.db.transaction((tx) =>
    emit(tx, own.workspace_id, [{ type: 'pipeline.moved', occurred_at: null, data: moved }]),
  )
  await sequence(service.app.db)
  const operation_id = newId()
  await service.app.db.run(sql`
    insert into operations (id, workspace_id, kind, effect, fingerprint, state, reply_status)
    values (${operation_id}, ${own.workspace_id}, 'probe', 'local', ${Buffer.alloc(32)}, 'completed', 200)`)
  await service.allow(own)
  await service.allow(other)
  const { id: person_id } = await service.app.db.one<{ id: string }>(sql`
    select id from people where workspace_id = ${own.workspace_id} and number = ${id}::bigint`)
  const places = { account_id, chat_id, column_id: column.id, operation_id, person_id }
  const examples = new Examples(workplace, { own, other, ...places })
  examples.campaign_id = await examples.makeCampaign()
  const broadcast = await service.post('/broadcast', {
    key: own.key,
    body: { account_id, audience_type: 'stage', audience_ref: 'new', message_text: canary },
  })
  examples.broadcast_id = String(broadcast.body.broadcast_id)
  await examples.makeWebhook()
  return examples
}
