/**
 * What erasing a person costs another workspace: the latency of its sends while a person with 10,000 messages is erased, over the same
 * without, in alternating rounds after one that warms up; medians. One process, as `parley start`.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { parseArgs } from 'node:util'
import { previewErasure, requestErasure } from '../src/capabilities/erasing/erasing.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import { sql } from '../src/db/sql.ts'
import { addAccounts, number, row, verdict } from './harness.ts'
import { during, medianOf, printSends, type Sends, withSending } from './sending.ts'

const { values } = parseArgs({
  options: { rounds: { type: 'string', default: '5' }, messages: { type: 'string', default: '10000' } },
})
const rounds = Number(values.rounds)
const messages = Number(values.messages)
const accounts = 10
const callers = 10
/** A round without an erasure. */
const roundMs = 8_000
/** The p99 of another workspace's sends, over that without an erasure. */
const most = 1.3

await withSending(accounts, async ({ app, send }) => {
  const other = await createWorkspace(app, 'system', { name: 'Other' })
  const [theirs = ''] = await addAccounts(app, other.id, 1)

  let people = 50_000
  /** A person of the other workspace with this many messages, of which every second is ours and has its operation and its event. */
  async function makePerson(): Promise<string> {
    const chat = ++people
    const step = 1_000
    for (let at = 0; at < messages; at += step) {
      await app.db.run(sql`
        insert into messages (account_id, chat_id, id, workspace_id, text, is_sender, sent_at, random_id)
        select ${theirs}, ${chat}::bigint, ${chat}::bigint * 100000 + n, ${other.id}, 'A message with several words, number ' || n,
          n % 2 = 0, now() - n * interval '1 minute', case when n % 2 = 0 then ${chat}::bigint * 100000 + n end
        from generate_series(${at}::int, ${at + step - 1}::int) n`)
      await app.db.run(sql`
        insert into operations (id, workspace_id, kind, effect, fingerprint, state, account_id, chat_id, payload, random_id,
          reply_status, reply_body, finished_at)
        select gen_random_uuid(), ${other.id}, 'send_message', 'platform', sha256('x'), 'completed', ${theirs}, ${chat}::bigint,
          '{"text": "A message.", "file": null}', ${chat}::bigint * 100000 + n, 200, '{"ok": true, "message_id": "1"}',
          now() - n * interval '1 minute'
        from generate_series(${at}::int, ${at + step - 1}::int, 2) n`)
    }
    await app.db.run(sql`
      insert into chats (account_id, chat_id, workspace_id, kind, name)
      values (${theirs}, ${chat}::bigint, ${other.id}, 'private', 'Erased')`)
    await app.db.run(sql`
      insert into contacts (account_id, provider_id, workspace_id, name, username)
      values (${theirs}, ${chat}::bigint, ${other.id}, 'Erased', ${`erased_${chat}`})`)
    const found = await app.db.one<{ id: string }>(sql`
      select id from people where workspace_id = ${other.id} and number = ${chat}::bigint`)
    return found.id
  }

  async function erase(person: string): Promise<void> {
    const { preview } = await previewErasure(app.db, other.id, person)
    const wanted = { workspace_id: other.id, person_id: person, preview, contact_allowed: false }
    const erasure = await app.db.transaction((tx) => requestErasure(app, tx, 'system', wanted))
    for (;;) {
      const { done } = await app.db.one<{ done: boolean }>(sql`
        select done_at is not null as done from erasures where id = ${erasure.id}`)
      if (done) return
      await sleep(100)
    }
  }

  /** Only sends during the erasure count. */
  async function measure(person: string): Promise<Sends> {
    let isErasing = true
    const erased = erase(person).finally(() => {
      isErasing = false
    })
    const [sends] = await Promise.all([send(callers, () => isErasing), erased])
    return sends
  }
  const measureWithout = () => send(callers, during(roundMs))

  const made: string[] = []
  for (let n = 0; n <= rounds; n++) made.push(await makePerson())
  await app.db.run(sql`analyze`)
  const next = () => measure(made.pop() ?? '')
  await measureWithout()
  await next()
  const without: Sends[] = []
  const erasing: Sends[] = []
  for (let round = 0; round < rounds; round++) {
    // Whichever comes first changes with each round.
    if (round % 2 === 0) without.push(await measureWithout())
    erasing.push(await next())
    if (round % 2 === 1) without.push(await measureWithout())
  }
  printSends('of another workspace', without)
  printSends('of another workspace during an erasure', erasing)
  row(`erasing a person with ${number(messages)} messages`, `${number(medianOf(erasing, 'seconds'), 1)} s`)
  const ratio = medianOf(erasing, 'p99') / medianOf(without, 'p99')
  verdict('p99 of another workspace during an erasure', ratio, { most })
})
