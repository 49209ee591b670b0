/** The stages that chats move through, and moving chats between them. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { given } from '../../db/given.ts'
import { moveItem } from '../../db/places.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { emit, emitted, type NewEvent } from '../../events/emit.ts'
import { ApiError } from '../../lib/errors.ts'
import { notFound, requireColor, requireName } from '../../lib/names.ts'
import { quote } from '../../lib/text.ts'
import type { Traceparent } from '../../lib/traceparent.ts'
import { type Actor, record } from '../audit/audit.ts'
import {
  emptyStage,
  invalidStage,
  type MovedChat,
  type Placement,
  placeChat,
  requireChat,
} from '../chats/chats.ts'
import { freeStageKey, requireStageKey } from './stage-keys.ts'

export interface NewStage {
  readonly key: string
  readonly label: string
  readonly color?: string | null | undefined
  readonly terminal?: boolean | undefined
  readonly hidden?: boolean | undefined
}

interface Stage {
  readonly key: string
  readonly label: string
  /** Null: none was chosen. */
  readonly color: string | null
  readonly terminal: boolean
  readonly hidden: boolean
}

/** The stage every chat starts in. It cannot be hidden or deleted. */
export const defaultStage: NewStage = { key: 'new', label: 'New' }

const stagesMax = 100
const fields = sql`key, label, color, terminal, hidden`

/** Who moved a chat, for the event. */
interface Mover {
  readonly type: 'key' | 'user' | 'cli' | 'system'
  readonly id: string
}

function moverOf({ via, user_id }: Caller): Mover {
  return via.kind === 'key' ? { type: 'key', id: via.id } : { type: 'user', id: user_id }
}

function moverFrom(actor: Actor): Mover {
  const [type, ...rest] = actor.split(':')
  return { type: type as Mover['type'], id: rest.join(':') || actor }
}

function movedEvent({ stage_key, ...chat }: Placement, from_stage_key: string, actor: Mover): NewEvent {
  return {
    type: 'pipeline.moved',
    occurred_at: null,
    data: { ...chat, from_stage_key, to_stage_key: stage_key, actor },
  }
}

/** Moves a chat to a stage. Repeating the move changes nothing and emits no event. */
export async function moveChat(
  tx: Tx,
  caller: Caller,
  accounts: readonly Account[],
  { chat_id, stage_key }: Omit<Placement, 'account_id'>,
): Promise<Placement & { changed: boolean }> {
  const { hidden } = await requireStage(tx, caller, stage_key)
  const { id } = await requireChat({ db: tx }, accounts, { chat_id, missing: 'chat_not_found' }).catch(
    async (error) => {
      // An error about the stage takes precedence over one about the chat.
      throw hidden && error.code === 'chat_not_found' ? await hiddenStage(tx, caller, stage_key) : error
    },
  )
  const to = { account_id: id, chat_id, stage_key }
  const from = await placeChat(tx, to)
  if (from === undefined) throw new ApiError('chat_not_found')
  const changed = from !== stage_key
  // Throwing rolls the placement back. A chat that already is in the hidden stage is no error.
  if (changed && hidden) throw await hiddenStage(tx, caller, stage_key)
  if (changed) {
    emit(tx, caller.workspace_id, [movedEvent(to, from, moverOf(caller))], caller.traceparent)
  }
  return { ...to, changed }
}

function hiddenStage(tx: Tx, caller: Caller, key: string): Promise<ApiError> {
  return invalidStage(tx, caller, `The stage ${quote(key)} is hidden: no chat can be moved to it.`)
}

/** Locks the stage against deletion until the move commits. */
async function requireStage(tx: Tx, caller: Caller, key: string): Promise<Pick<Stage, 'hidden'>> {
  const stage = await tx.maybe<Pick<Stage, 'hidden'>>(sql`
    select hidden from stages where workspace_id = ${caller.workspace_id} and key = ${key} for key share`)
  if (!stage) throw await invalidStage(tx, caller, `There is no stage ${quote(key)}.`)
  return stage
}

/** Adds stages at the end, in this order. */
export async function addStages(tx: Tx, workspace_id: string, stages: readonly NewStage[]): Promise<void> {
  await tx.run(sql`
    insert into stages (workspace_id, key, label, color, terminal, hidden, position)
    select ${workspace_id}, key, label, color, terminal, hidden,
      place + coalesce((select max(position) from stages where workspace_id = ${workspace_id}), -1)
    from ${given(stages, {
      key: 'text',
      label: 'text',
      color: ['text', ({ color }) => color],
      terminal: ['boolean', ({ terminal = false }) => terminal],
      hidden: ['boolean', ({ hidden = false }) => hidden],
      place: 'ordinality',
    })} as stage`)
}

export function listStages(db: Db, workspace_id: string): Promise<Stage[]> {
  return db.rows<Stage>(sql`
    select ${fields} from stages where workspace_id = ${workspace_id} order by position, key`)
}

/** Without a key, the stage gets one from its label. */
export async function createStage(
  app: App,
  actor: Actor,
  { workspace_id, ...wanted }: Omit<NewStage, 'key'> & { key?: string | undefined; workspace_id: string },
): Promise<Stage> {
  const { label, color = null, terminal = false, hidden = false } = wanted
  if (wanted.key !== undefined) requireStageKey(wanted.key)
  requireName('A stage needs a label', label)
  if (color !== null) requireColor(color)
  return app.db.transaction(async (tx) => {
    const known = (await lockStages(tx, workspace_id)).map(({ key }) => key)
    if (wanted.key !== undefined && known.includes(wanted.key)) {
      throw new ApiError('conflict', { detail: `This workspace already has a stage ${quote(wanted.key)}.` })
    }
    if (known.length >= stagesMax) {
      throw new ApiError('conflict', { detail: `A workspace can have at most ${stagesMax} stages.` })
    }
    const key = wanted.key ?? freeStageKey(label, known)
    const detail = { label, color, terminal, hidden }
    await addStages(tx, workspace_id, [{ key, ...detail }])
    await record(app, tx, actor, { action: 'stage.created', target: key, workspace_id, detail })
    return { key, ...detail }
  })
}

interface StageChange {
  readonly workspace_id: string
  readonly key: string
  readonly label?: string | undefined
  /** Null removes the colour. */
  readonly color?: string | null | undefined
  readonly terminal?: boolean | undefined
  readonly hidden?: boolean | undefined
  /** Its position among the stages, from 1. */
  readonly place?: number | undefined
}

export async function updateStage(app: App, actor: Actor, change: StageChange): Promise<Stage> {
  const { workspace_id, key, label, color, terminal, hidden, place } = change
  if (label !== undefined) requireName('A stage needs a label', label)
  if (color !== undefined && color !== null) requireColor(color)
  if (key === defaultStage.key && hidden) {
    throw new ApiError('conflict', { detail: 'The stage "new" cannot be hidden.' })
  }
  return app.db.transaction(async (tx) => {
    await lockStages(tx, workspace_id)
    const stage = await tx.maybe<Stage>(sql`
      update stages set label = coalesce(${label ?? null}, label),
        color = case when ${color === undefined} then color else ${color ?? null} end,
        terminal = coalesce(${terminal ?? null}, terminal), hidden = coalesce(${hidden ?? null}, hidden)
      where key = ${key}
        and workspace_id = ${workspace_id} -- guard: a stage of the workspace is changed
      returning ${fields}`)
    if (!stage) throw notFound('stage', key)
    if (place !== undefined) await moveItem(tx, orderedStages(workspace_id), { item: key, place })
    const detail = { ...stage, ...(place !== undefined && { place }) }
    await record(app, tx, actor, { action: 'stage.updated', target: key, workspace_id, detail })
    return stage
  })
}

const orderedStages = (workspace_id: string) => ({
  update: sql`update stages`,
  table: sql`stages`,
  key: sql`key`,
  rows: sql`workspace_id = ${workspace_id}`,
})

const emptiedMax = 1_000

interface DeletedStage {
  readonly workspace_id: string
  readonly key: string
  readonly traceparent?: Traceparent | undefined
}

/**
 * Moves its chats back to `new` in batches, each with its event. The stage is hidden first, so that no chats are added.
 * After an interruption it stays hidden with the remaining chats, and the next call continues.
 */
export async function deleteStage(
  app: App,
  actor: Actor,
  { workspace_id, key, traceparent }: DeletedStage,
): Promise<{ key: string; moved: number }> {
  if (key === defaultStage.key) {
    throw new ApiError('conflict', { detail: 'The stage "new" cannot be deleted.' })
  }
  const known = await app.db.run(sql`
    update stages set hidden = true where key = ${key}
      and workspace_id = ${workspace_id} -- guard: a stage of the workspace is deleted
    `)
  if (known === 0) throw notFound('stage', key)
  const moves = { workspace_id, key, traceparent, actor }
  let moved = 0
  for (const account_id of await listAccounts(app.db, workspace_id)) {
    moved += await emptyAccount(moves, account_id, async (work) => {
      const left = await app.db.transaction(work)
      app.wake.signal(emitted)
      return left
    })
  }
  await app.db.transaction(async (tx) => {
    // Waits for moves into this stage that have not committed yet.
    const gone = await tx.maybe(sql`
      select 1 from stages where workspace_id = ${workspace_id} and key = ${key} for update`)
    if (!gone) throw notFound('stage', key)
    for (const account_id of await listAccounts(tx, workspace_id)) {
      moved += await emptyAccount(moves, account_id, (work) => work(tx))
    }
    await tx.run(sql`delete from stages where workspace_id = ${workspace_id} and key = ${key}`)
    await record(app, tx, actor, { action: 'stage.deleted', target: key, workspace_id, detail: { moved } })
  })
  app.wake.signal(emitted)
  return { key, moved }
}

async function listAccounts(db: Db, workspace_id: string): Promise<string[]> {
  const rows = await db.rows<{ id: string }>(sql`
    select id from accounts where workspace_id = ${workspace_id} order by id`)
  return rows.map(({ id }) => id)
}

/** `run` gives each batch its transaction. Returns how many chats were moved. */
async function emptyAccount(
  { workspace_id, key, traceparent, actor }: DeletedStage & { actor: Actor },
  account_id: string,
  run: (work: (tx: Tx) => Promise<MovedChat[]>) => Promise<MovedChat[]>,
): Promise<number> {
  const to = defaultStage.key
  let moved = 0
  let after: MovedChat | undefined
  do {
    const left = await run(async (tx) => {
      const some = await emptyStage(tx, account_id, { from: key, to, after, limit: emptiedMax })
      const events = some.map(({ chat_id }) =>
        movedEvent({ account_id, chat_id, stage_key: to }, key, moverFrom(actor)),
      )
      emit(tx, workspace_id, events, traceparent)
      return some
    })
    moved += left.length
    after = left.length < emptiedMax ? undefined : left.at(-1)
  } while (after)
  return moved
}

/** Locks the workspace's stages: one change at a time. */
async function lockStages(tx: Tx, workspace_id: string): Promise<Stage[]> {
  await tx.run(sql`select 1 from workspaces where id = ${workspace_id} for no key update`)
  return listStages(tx, workspace_id)
}
