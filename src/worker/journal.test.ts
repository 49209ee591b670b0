/** The journal on its own: what was flushed can be read, whatever went wrong before it. */
import { appendFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Remembered } from '../access/ledger/put-back.ts'
import { newId } from '../lib/ids.ts'
import { listJournals, openJournal, readJournal } from './journal.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-journal-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const intent = (id: string): Remembered => ({
  id,
  token: newId(),
  workspace_id: newId(),
  kind: 'send_message',
  account_id: 'acc_1',
  chat_id: '1',
  random_id: '1',
  key: null,
  fingerprint: '00',
})

test('a line that a full disk cut off does not swallow the next one', async () => {
  const worker_id = newId()
  const journal = await openJournal(directory, worker_id)
  await journal.intend(intent('first'))
  await appendFile(join(directory, `${worker_id}.0.jsonl`), '{"entry":"intent","id":"torn')
  await journal.intend(intent('second'))
  await journal.conclude({ id: 'second', token: 'x', outcome: { kind: 'unknown', reason: 'timeout' } })
  await journal.close()
  const [file] = await listJournals(directory)
  const { entries, damaged } = file ? await readJournal(directory, file) : { entries: [], damaged: 0 }
  expect(damaged).toBe(1)
  expect(entries.map(({ entry, id }) => [entry, id])).toEqual([
    ['intent', 'first'],
    ['intent', 'second'],
    ['outcome', 'second'],
  ])
})
