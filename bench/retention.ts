/**
 * What clearing costs sends: their rate and latency while the loop of retention clears messages and operations of the same accounts, over
 * the same without it, in alternating rounds after a round that warms up; medians. One process, as `parley start`.
 */
import { parseArgs } from 'node:util'
import { makeSweep } from '../src/capabilities/retention/loops.ts'
import { sql } from '../src/db/sql.ts'
import { runLoops } from '../src/worker/run-loops.ts'
import { number, row, verdict } from './harness.ts'
import { during, medianOf, printSends, type Sends, withSending } from './sending.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '7' }, rows: { type: 'string', default: '60000' } },
})
const rounds = Number(values.rounds)
const rows = Number(values.rows)
const accounts = 10
const callers = 20
const roundMs = 8_000
/** A send may cost a tenth more. */
const most = 1.1

await withSending(accounts, async ({ app, workspace_id, ids, person_id, send }) => {
  for (const account_id of ids) {
    await app.db.run(sql`
        insert into chats (account_id, chat_id, workspace_id, kind, name)
        select ${account_id}, c, ${workspace_id}, 'private', 'Ada' from generate_series(${person_id}::bigint + 1, 1999) c`)
  }
  await fill()

  /** Messages and ended operations of two years ago, in the accounts that send. */
  async function fill(): Promise<void> {
    // A statement has 5 s, also on a busy machine.
    const step = 500
    for (let at = 0; at < rows; at += step) {
      await app.db.run(sql`
          insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at)
          select (${ids}::text[])[n % ${accounts} + 1], 1000 + n % 999, 1000000 + n, ${workspace_id},
            'A message of long ago, number ' || n, false, now() - interval '2 years' + n * interval '1 second'
          from generate_series(${at}::int, ${at + step - 1}::int) n`)
      await app.db.run(sql`
          insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, chat_id, payload, random_id,
            reply_status, reply_body, finished_at)
          select gen_random_uuid(), ${workspace_id}, 'send_message', 'platform', sha256('x'), 'completed',
            (${ids}::text[])[n % ${accounts} + 1], 1000 + n % 999, '{"text": "A message of long ago.", "file": null}', n, 200,
            '{"ok": true, "message_id": "1"}', now() - interval '2 years' + n * interval '1 second'
          from generate_series(${at}::int, ${at + step - 1}::int) n`)
    }
    await app.db.run(sql`analyze`)
  }

  const countCleared = async () =>
    (
      await app.db.one<{ n: number }>(sql`
          select (select count(*) from messages where deleted_at is not null)::int
            + (select count(*) from operations where cleared_at is not null)::int as n`)
    ).n

  /** Rows that each round cleared. */
  const cleared: number[] = []

  async function measure(clearing: boolean): Promise<Sends> {
    await app.db.run(sql`delete from retention`)
    if (clearing) {
      await app.db.run(sql`
          insert into retention (workspace_id, messages_days, operations_days) values (${workspace_id}, 365, 365)`)
    }
    const before = await countCleared()
    const sweep = runLoops(app, [makeSweep()])
    const sends = await send(callers, during(roundMs))
    await sweep.stop()
    if (clearing) cleared.push((await countCleared()) - before)
    return sends
  }

  await measure(false)
  await measure(true)
  const all = { without: [] as Sends[], clearing: [] as Sends[] }
  for (let round = 0; round < rounds; round++) {
    // Whichever comes first changes with each round.
    const order = round % 2 === 0 ? ([false, true] as const) : ([true, false] as const)
    for (const clearing of order) all[clearing ? 'clearing' : 'without'].push(await measure(clearing))
  }
  for (const [name, sends] of Object.entries(all)) printSends(name, sends)
  row('rows cleared in a round, least', number(Math.min(...cleared)))
  if (cleared.includes(0)) process.exitCode = 1
  const times = (of: 'p50' | 'p99') => medianOf(all.clearing, of) / medianOf(all.without, of)
  verdict('a send, median, while the loop clears', times('p50'), { most })
  row('its p99 over that without', number(times('p99'), 2))
})
