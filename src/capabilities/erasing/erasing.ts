/** Erasing a person: forgotten, and still never written to twice (docs/decisions/0075-erasing-a-person.md). */
import type { App, Topic } from '../../app.ts'
import { type Db, sql, type Tx } from '../../db/sql.ts'
import { ApiError } from '../../lib/errors.ts'
import { isUuid } from '../../lib/ids.ts'
import { notFound } from '../../lib/names.ts'
import type { ChatNumber } from '../../lib/shapes.ts'
import { type Actor, record } from '../audit/audit.ts'
import { type ErasedPerson, listNames, markErased, tombstoneOf } from '../people/people.ts'
import { listErased } from '../suppressions/suppressions.ts'
import { type Counts, countStored, hashOf } from './preview.ts'
import { hidePerson } from './shown.ts'

export { eraseNext, type Turn } from './job.ts'

/** A person is to be erased. */
export const erasureWanted: Topic = { topic: 'erasures' }

export interface Erasure {
  readonly id: string
  readonly state: 'waiting' | 'running' | 'done'
  /** How many rows were cleared so far, of how many that the preview counted. */
  readonly cleared: number
  readonly total: number
  readonly at: string
  readonly done_at: string | null
}

const shown = sql`id, case when done_at is not null then 'done' when step = 'begin' then 'waiting' else 'running' end as state,
  cleared, total, wire_time(at) as at, wire_time(done_at) as done_at`

export interface Preview {
  readonly person_id: string
  readonly removes: Omit<Counts, 'operations'>
  readonly stays: { readonly operations: number }
  /** What POST takes. */
  readonly preview: string
  /** The last erasure of this person. */
  readonly erasure: Erasure | null
}

async function requirePerson(db: Db, workspace_id: string, id: string): Promise<ErasedPerson> {
  const person = isUuid(id)
    ? await db.maybe<ErasedPerson>(sql`
        select id, workspace_id, platform, number::text from people
        where id = ${id} and workspace_id = ${workspace_id} -- guard: only people of the workspace are erased
        `)
    : undefined
  if (!person) throw notFound('person', id)
  return person
}

export async function previewErasure(db: Db, workspace_id: string, id: string): Promise<Preview> {
  const person = await requirePerson(db, workspace_id, id)
  const counts = await countStored(db, person)
  const { operations, ...removes } = counts
  return {
    person_id: person.id,
    removes,
    stays: { operations },
    preview: hashOf(person, counts),
    erasure: (await findErasure(db, person.id)) ?? null,
  }
}

/** The last erasure of a person, and how far it has come; null: there was none. */
export async function readErasure(db: Db, workspace_id: string, id: string): Promise<Erasure | null> {
  const person = await requirePerson(db, workspace_id, id)
  return (await findErasure(db, person.id)) ?? null
}

function findErasure(db: Db, person_id: string): Promise<Erasure | undefined> {
  return db.maybe<Erasure>(sql`
    select ${shown} from erasures where person_id = ${person_id} order by at desc, id desc limit 1`)
}

export interface ErasureRequest {
  readonly workspace_id: string
  readonly person_id: string
  /** From the preview. */
  readonly preview: string
  readonly contact_allowed: boolean
}

/**
 * From the commit on no list shows the person, nothing that arrives of them is stored, and unless they may be contacted again, nothing
 * crosses to them. A worker does the rest.
 */
export async function requestErasure(
  app: App,
  tx: Tx,
  actor: Actor,
  { workspace_id, person_id, preview, contact_allowed }: ErasureRequest,
): Promise<Erasure> {
  const person = await requirePerson(tx, workspace_id, person_id)
  await tx.run(sql`select 1 from people where id = ${person.id} for no key update`)
  const open = await tx.maybe<Erasure>(sql`
    select ${shown} from erasures where person_id = ${person.id} and done_at is null`)
  if (open) throw new ApiError('erasure_in_progress') // guard: one erasure of a person at a time
  const counts = await countStored(tx, person)
  // guard: an erasure runs only as it was shown
  if (hashOf(person, counts) !== preview) throw new ApiError('preview_outdated')
  tx.afterCommit(() => {
    app.wake.signal(erasureWanted)
    app.wake.mark({ workspace_id, kind: 'everything' })
  })
  const names = await listNames(tx, person.id)
  const tombstones = names.map((name) => tombstoneOf(app, workspace_id, name))
  const id = app.sources.newId()
  const total = counts.messages + counts.operations
  const erasure = await tx.one<Erasure>(sql`
    insert into erasures (id, workspace_id, person_id, platform, number, actor, contact_allowed, tombstones, total)
    values (${id}, ${workspace_id}, ${person.id}, ${person.platform}, ${person.number}, ${actor}, ${contact_allowed},
      ${tombstones}::bytea[], ${total})
    returning ${shown}`)
  await markErased(tx, { ...person, erased_at: null, tombstones })
  await hideEverywhere(tx, person) // guard: no list shows an erased person
  if (!contact_allowed) await listErased(tx, person)
  await record(app, tx, actor, {
    action: 'person.erasure_requested',
    target: person.id,
    workspace_id,
    detail: { erasure: id, contact_allowed, ...counts },
  })
  return erasure
}

async function hideEverywhere(
  tx: Tx,
  { workspace_id, platform, number }: Pick<ErasedPerson, 'workspace_id' | 'platform' | 'number'>,
): Promise<void> {
  const accounts = await tx.rows<{ id: string }>(sql`
    select id from accounts where workspace_id = ${workspace_id} and platform = ${platform} order by id`)
  await hidePerson(
    tx,
    accounts.map(({ id }) => id),
    number,
  )
}

/** What a disk keeps of an erasure: no name, and enough to erase the person again in an older copy of the database. */
export interface KeptErasure {
  readonly id: string
  readonly workspace_id: string
  readonly person_id: string
  readonly platform: string
  readonly number: ChatNumber
  readonly contact_allowed: boolean
  /** Hexadecimal digits. */
  readonly tombstones: readonly string[]
  readonly at: string
}

const kept = sql`id, workspace_id, person_id, platform, number::text, contact_allowed,
  array(select encode(t, 'hex') from unnest(tombstones) as t) as tombstones, wire_time(at) as at`

/** The erasures that the database knows, besides those that the caller has. */
export function listErasures(db: Db, known: Iterable<string> = []): Promise<KeptErasure[]> {
  return db.rows<KeptErasure>(sql`
    select ${kept} from erasures where id <> all(${[...known]}::uuid[]) order by at, id`)
}

/**
 * Repeats what the database has forgotten: from the commit on nothing is sent to these people and nothing of them is stored. A
 * worker then removes what the database has of them again. Returns how many it did not know.
 */
export async function applyErasures(
  app: Pick<App, 'db' | 'secrets' | 'log'>,
  erasures: readonly KeptErasure[],
): Promise<number> {
  const known = new Set(
    (
      await app.db.rows<{ id: string }>(sql`
        select id from erasures where id = any(${erasures.map(({ id }) => id)}::uuid[])`)
    ).map(({ id }) => id),
  )
  let applied = 0
  for (const erasure of erasures) {
    if (known.has(erasure.id)) continue
    if (await app.db.transaction((tx) => applyErasure(app, tx, erasure))) applied += 1
  }
  return applied
}

async function applyErasure(
  app: Pick<App, 'secrets' | 'log'>,
  tx: Tx,
  { id, workspace_id, person_id, platform, number, contact_allowed, tombstones, at }: KeptErasure,
): Promise<boolean> {
  const workspace = await tx.maybe(sql`select 1 from workspaces where id = ${workspace_id}`)
  if (!workspace) return false
  const hashes = tombstones.map((hash) => Buffer.from(hash, 'hex'))
  const erased = {
    id: person_id,
    workspace_id,
    platform,
    number,
    erased_at: new Date(at),
    tombstones: hashes,
  }
  const person = await markErased(tx, erased)
  await hideEverywhere(tx, erased)
  const inserted = await tx.run(sql`
    insert into erasures (id, workspace_id, person_id, platform, number, actor, contact_allowed, tombstones, at)
    values (${id}, ${workspace_id}, ${person}, ${platform}, ${number}, 'system', ${contact_allowed}, ${hashes}::bytea[], ${at})
    on conflict do nothing`)
  if (inserted === 0) return false
  if (!contact_allowed) await listErased(tx, { ...erased, id: person })
  await record(app, tx, 'system', {
    action: 'person.erasure_restored',
    target: person,
    workspace_id,
    detail: { erasure: id },
  })
  return true
}
