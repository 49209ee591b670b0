import { setTimeout as sleep } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openService, type Service } from '../../test/harness/service.ts'
import { timed } from '../../test/harness/timed.ts'
import { openNeighbour } from '../../test/harness/worker.ts'
import type { Database } from '../db/sql.ts'
import { sql } from '../db/sql.ts'
import { emit } from './emit.ts'
import { countUnsequenced, sequence } from './sequencer.ts'

let service: Service
beforeAll(async () => {
  service = await openService()
})
afterAll(() => service.close())

class Regret extends Error {}

/** Emits in many small transactions, some of which roll back. Returns what was committed. */
async function emitMany(
  db: Database,
  { workspaces, name, rounds }: { workspaces: readonly string[]; name: string; rounds: number },
): Promise<string[]> {
  const committed: string[] = []
  for (let n = 0; n < rounds; n++) {
    const notes = Array.from({ length: 1 + (n % 3) }, (_, at) => `${name} ${n} ${at}`)
    const workspace_id = workspaces[n % workspaces.length] ?? ''
    const kept = await db
      .transaction(async (tx) => {
        const data = notes.map((note) => ({ note }))
        emit(
          tx,
          workspace_id,
          data.map((each) => ({ type: 'message.received', occurred_at: null, data: each })),
        )
        if (n % 4 === 0) throw new Regret()
        return notes
      })
      .catch((error) => {
        if (error instanceof Regret) return []
        throw error
      })
    committed.push(...kept)
  }
  return committed
}

async function placed(workspace_id: string) {
  return service.app.db.rows<{ sequence: number; note: string }>(sql`
    select sequence::int, data ->> 'note' as note from events
    where workspace_id = ${workspace_id} order by sequence`)
}

describe('four emitters and three sequencers at once', () => {
  test('give every event one number, without gaps, in the order of each emitter', async () => {
    const workspaces = [(await service.tenant()).workspace_id, (await service.tenant()).workspace_id]
    const apps = [await openNeighbour(service.database.url), await openNeighbour(service.database.url)]
    const databases = [service.app.db, ...apps.map(({ db }) => db)]
    let emitting = true
    const turns: number[] = []
    const sequencers = databases.map(async (db, at) => {
      while (emitting || (await countUnsequenced(db)) > 0) {
        turns[at] = (turns[at] ?? 0) + (await sequence(db))
        await sleep(1)
      }
    })
    const emitters = ['a', 'b', 'c', 'd'].map((name, at) =>
      emitMany(databases[at % databases.length] ?? service.app.db, { workspaces, name, rounds: 150 }),
    )
    const committed = (await Promise.all(emitters)).flat()
    emitting = false
    await Promise.all(sequencers)
    const rows = await Promise.all(workspaces.map(placed))
    for (const events of rows) {
      expect(events.map((event) => event.sequence)).toEqual(events.map((_, at) => at + 1))
      for (const name of ['a', 'b', 'c', 'd']) {
        const own = events.map(({ note }) => note).filter((note) => note.startsWith(name))
        expect(own).toEqual(committed.filter((note) => own.includes(note)))
      }
    }
    const notes = rows.flat().map(({ note }) => note)
    expect(notes.sort()).toEqual(committed.sort())
    expect(turns.reduce((sum, moved) => sum + moved)).toBe(committed.length)
    for (const app of apps) await app.close()
  })

  test('number a backlog larger than one batch in order', async () => {
    const { workspace_id } = await service.tenant()
    const { db } = service.app
    await db.run(sql`
      insert into outbox (workspace_id, type, occurred_at, data)
      select ${workspace_id}, 'message.received', domain_now(), json_build_object('note', n::text)
      from generate_series(1, 2500) n order by n`)
    while ((await sequence(db)) > 0);
    const events = await placed(workspace_id)
    expect(events.map(({ note }) => Number(note))).toEqual(events.map(({ sequence: at }) => at))
    expect(events).toHaveLength(2500)
  })

  test('are as fast with a backlog that the statistics do not know yet', timed, async () => {
    const { workspace_id } = await service.tenant()
    const { db } = service.app
    // According to the statistics, and the plans that were made from them, the table is empty.
    await db.run(sql`vacuum analyze outbox`)
    for (let n = 0; n < 10; n++) await sequence(db)
    for (let n = 0; n < 6; n++) {
      await db.run(sql`
        insert into outbox (workspace_id, type, occurred_at, data)
        select ${workspace_id}, 'message.received', domain_now(), '{"note": ""}' from generate_series(1, 10000) n`)
    }
    const startedAt = performance.now()
    expect(await sequence(db)).toBe(1_000)
    expect(performance.now() - startedAt).toBeLessThan(1_500)
    await db.run(sql`delete from outbox`)
  })
})
