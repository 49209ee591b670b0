/** The CRM against a simple model: any sequence of moves and sets, and many at once. */
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type ColumnType, createColumn, deleteOption } from '../src/capabilities/columns/columns.ts'
import { createStage, updateStage } from '../src/capabilities/pipeline/pipeline.ts'
import { sql } from '../src/db/sql.ts'
import { countUnsequenced, sequence } from '../src/events/sequencer.ts'
import { type Answer, openService, type Service, type Tenant } from './harness/service.ts'

const chats = 3
const stages = ['new', 'talks', 'won', 'attic'] as const
const types = ['select', 'multi_select', 'number', 'date', 'checkbox'] as const satisfies ColumnType[]

let service: Service

beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())

interface CrmFixture {
  readonly tenant: Tenant
  readonly accounts: readonly string[]
  readonly columns: Record<string, string>
}

/** Two accounts with chats of the same numbers, stages of which one is hidden, a column of each type. */
async function makeFixture(): Promise<CrmFixture> {
  const tenant = await service.tenant('Model')
  const { workspace_id } = tenant
  const accounts = [await service.account(workspace_id), await service.account(workspace_id)]
  for (const account_id of accounts) {
    for (let id = 1; id <= chats; id++) await service.chat({ account_id, workspace_id, id: `${id}` })
  }
  for (const key of stages.slice(1))
    await createStage(service.app, 'system', { workspace_id, key, label: key })
  await updateStage(service.app, 'system', { workspace_id, key: 'attic', hidden: true })
  const columns: Record<string, string> = {}
  for (const type of types) {
    const options = type.includes('select') ? ['a', 'b', 'gone'].map((value) => ({ value })) : []
    const { id } = await createColumn(service.app, 'system', { workspace_id, name: type, type, options })
    if (options.length > 0) {
      await deleteOption(service.app, 'system', { workspace_id, column_id: id, value: 'gone' })
    }
    columns[type] = id
  }
  return { tenant, accounts, columns }
}

type Act = { readonly account: number; readonly chat: number } & (
  | { readonly kind: 'move'; readonly stage: string }
  | { readonly kind: 'set'; readonly type: (typeof types)[number]; readonly value: readonly string[] }
)

const where = { account: fc.nat(1), chat: fc.integer({ min: 1, max: chats + 1 }) }
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ kind: fc.constant('move' as const), ...where, stage: fc.constantFrom(...stages, 'nope') }),
  fc.record({
    kind: fc.constant('set' as const),
    ...where,
    type: fc.constantFrom(...types),
    value: fc.array(fc.constantFrom('a', 'b', 'gone', '1', '1.0', '2027-02-28', '2027-02-30', 'true'), {
      maxLength: 3,
    }),
  }),
)

/** What the contract says, in as few words as possible. */
class Model {
  readonly placed = new Map<string, string>()
  readonly values = new Map<string, readonly string[]>()
  readonly moves: string[] = []

  /** The status it must answer. */
  apply(one: Act): number {
    const chat = `${one.account}:${one.chat}`
    if (one.kind === 'move') {
      if (one.stage === 'nope' || one.stage === 'attic') return 400
      if (one.chat > chats) return 404
      const from = this.placed.get(chat) ?? 'new'
      this.placed.set(chat, one.stage)
      if (from !== one.stage) this.moves.push(`${chat} ${from} ${one.stage}`)
      return 200
    }
    if (one.chat > chats) return 404
    if (!fits(one.type, one.value)) return 400
    if (one.value.length === 0) this.values.delete(`${chat} ${one.type}`)
    else this.values.set(`${chat} ${one.type}`, one.value)
    return 200
  }
}

function fits(type: (typeof types)[number], value: readonly string[]): boolean {
  const among = (known: readonly string[]) => value.every((each) => known.includes(each))
  if (type === 'multi_select') return among(['a', 'b']) && new Set(value).size === value.length
  const known = { select: ['a', 'b'], number: ['1'], date: ['2027-02-28'], checkbox: ['true'] }
  return value.length <= 1 && among(known[type])
}

function perform({ tenant, accounts, columns }: CrmFixture, one: Act): Promise<Answer> {
  const at = { account_id: accounts[one.account], chat_id: `platform:chat:${one.chat}` }
  return one.kind === 'move'
    ? service.post('/pipeline/move', { key: tenant.key, body: { ...at, stage_key: one.stage } })
    : service.post('/columns/set', {
        key: tenant.key,
        body: { ...at, column_id: columns[one.type], value: one.value },
      })
}

async function listMoves({ tenant, accounts }: CrmFixture): Promise<string[]> {
  while ((await countUnsequenced(service.app.db)) > 0) await sequence(service.app.db)
  const rows = await service.app.db.rows<{ data: Record<string, string> }>(sql`
    select data from events where workspace_id = ${tenant.workspace_id} order by sequence`)
  return rows.map(({ data }) => {
    const chat = data.chat_id?.split(':').at(-1)
    return `${accounts.indexOf(data.account_id ?? '')}:${chat} ${data.from_stage_key} ${data.to_stage_key}`
  })
}

/** What the API shows, in the model's terms. */
async function shown({ tenant: { key }, accounts, columns }: CrmFixture) {
  const types = Object.fromEntries(Object.entries(columns).map(([type, id]) => [id, type]))
  const chat = (row: Record<string, string>) =>
    `${accounts.indexOf(row.account_id ?? '')}:${row.chat_id?.split(':').at(-1)}`
  const pipeline = await service.get('/pipeline', { key })
  const values = await service.get('/columns', { key })
  return {
    placed: new Map(
      (pipeline.body.placements as Record<string, string>[]).map((row) => [chat(row), row.stage_key]),
    ),
    values: new Map(
      (values.body.values as (Record<string, string> & { value: string[] })[]).map((row) => [
        `${chat(row)} ${types[row.column_id ?? '']}`,
        row.value,
      ]),
    ),
  }
}

describe('moves and sets', () => {
  test('any sequence ends like a simple model, and emits one event per real move', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(act, { minLength: 1, maxLength: 25 }), async (acts) => {
        const place = await makeFixture()
        const model = new Model()
        for (const one of acts) {
          expect((await perform(place, one)).status, JSON.stringify(one)).toBe(model.apply(one))
        }
        const { placed, values } = await shown(place)
        expect(placed).toEqual(model.placed)
        expect(values).toEqual(model.values)
        expect(await listMoves(place)).toEqual(model.moves)
      }),
      { numRuns: 12 },
    )
  })

  test('many at once emit one event per change, in a chain for each chat that ends at its stage', async () => {
    const moves = fc.array(
      fc.record({ chat: fc.integer({ min: 1, max: 2 }), stage: fc.constantFrom('new', 'talks', 'won') }),
      {
        minLength: 5,
        maxLength: 25,
      },
    )
    await fc.assert(
      fc.asyncProperty(moves, async (wanted) => {
        const place = await makeFixture()
        const answers = await Promise.all(
          wanted.map((one) => perform(place, { kind: 'move', account: 0, ...one })),
        )
        expect(answers.every(({ status }) => status === 200)).toBe(true)
        const events = await listMoves(place)
        expect(events).toHaveLength(answers.filter(({ body }) => body.changed).length)
        const at = new Map<string, string>()
        for (const event of events) {
          const [chat = '', from = '', to = ''] = event.split(' ')
          expect(at.get(chat) ?? 'new').toBe(from)
          at.set(chat, to)
        }
        const { placed } = await shown(place)
        for (const [chat, stage] of placed) expect(at.get(chat) ?? 'new').toBe(stage)
      }),
      { numRuns: 8 },
    )
  })
})
