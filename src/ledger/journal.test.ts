/** The journal alone: flushed lines can be read, whatever failed before them. */
import {
  appendFile,
  type FileHandle,
  mkdtemp,
  open,
  readFile,
  rm,
  symlink,
  utimes,
  writeFile,
} from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { newId } from '../lib/ids.ts'
import { listJournals, markReplayed, openJournal, readJournal } from './journal.ts'
import type { JournaledOperation } from './put-back.ts'

let directory: string
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-journal-'))
})
afterAll(() => rm(directory, { recursive: true, force: true }))

const intent = (id: string): JournaledOperation => ({
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

test('a line cut off by a full disk does not corrupt the next one', async () => {
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

test('an intent resolves only when it is on disk', async () => {
  const worker_id = newId()
  const journal = await openJournal(directory, worker_id)
  const probe = await open(join(directory, 'probe'), 'a')
  const handles = Object.getPrototypeOf(probe) as FileHandle
  await probe.close()
  const flush = Promise.withResolvers<void>()
  const flushed = vi.spyOn(handles, 'datasync').mockImplementation(() => flush.promise)
  try {
    let resolved = false
    const intended = journal.intend(intent('flushed')).then(() => {
      resolved = true
    })
    // An outcome needs no flush, and is written after the intent has been.
    await vi.waitFor(async () => {
      expect(await readFile(join(directory, `${worker_id}.0.jsonl`), 'utf8')).toContain('flushed')
    })
    await new Promise((resolve) => setImmediate(resolve))
    expect(resolved).toBe(false)
    flush.resolve()
    await intended
    expect(flushed).toHaveBeenCalledTimes(1)
  } finally {
    flushed.mockRestore()
    await journal.close()
  }
})

test('skips and counts a line whose bytes have changed, and reads the others', async () => {
  const worker_id = newId()
  const journal = await openJournal(directory, worker_id)
  for (const id of ['before', 'flipped', 'after']) await journal.intend(intent(id))
  await journal.close()
  const path = join(directory, `${worker_id}.0.jsonl`)
  await writeFile(path, (await readFile(path, 'utf8')).replace('flipped', 'fl1pped'))
  const file = (await listJournals(directory)).find((one) => one.worker_id === worker_id)
  if (!file) throw new Error('The journal is not there.')
  const { entries, damaged } = await readJournal(directory, file)
  expect([entries.map(({ id }) => id), damaged]).toEqual([['before', 'after'], 1])
})

test('a journal that was set aside and has grown since is not done', async () => {
  const worker_id = newId()
  const find = async () => (await listJournals(directory)).find((one) => one.worker_id === worker_id)
  const journal = await openJournal(directory, worker_id)
  await journal.intend(intent('one'))
  const before = await find()
  if (!before) throw new Error('The journal is not there.')
  await markReplayed(directory, before)
  expect(await find()).toMatchObject({ done: true })
  await journal.intend(intent('two'))
  expect(await find()).toMatchObject({ done: false })
  await journal.close()
})

test('a journal that is set aside during a listing appears under its new name', async () => {
  const crowded = await mkdtemp(join(directory, 'crowded-'))
  const workers = Array.from({ length: 300 }, () => newId()).sort()
  await Promise.all(workers.map((id) => writeFile(join(crowded, `${id}.0.jsonl`), '')))
  const last = { worker_id: workers.at(-1) ?? '', name: `${workers.at(-1)}.0.jsonl`, size: 0, done: false }
  const listing = listJournals(crowded)
  // The listing reads one file after the other: it has started by now, and has not reached the last one.
  for (let turn = 0; turn < 10; turn++) await new Promise((resolve) => setImmediate(resolve))
  await markReplayed(crowded, last)
  const listed = await listing
  expect(listed.map(({ worker_id }) => worker_id)).toEqual(workers)
  expect(listed.at(-1)).toMatchObject({ done: true })
})

test('a directory that is not there has no journals; one that cannot be read is an error', async () => {
  expect(await listJournals(join(directory, 'never-made'))).toEqual([])
  const file = join(directory, 'not-a-directory')
  await writeFile(file, '')
  await expect(listJournals(file)).rejects.toThrow('ENOTDIR')
})

test('a journal that could not be written reports that until it can be', async () => {
  const worker_id = newId()
  // A device that is always full, and the file in its place afterwards.
  await symlink('/dev/full', join(directory, `${worker_id}.0.jsonl`))
  const journal = await openJournal(directory, worker_id)
  expect(await journal.isWritable()).toBe(true)
  await expect(journal.intend(intent('lost'))).rejects.toThrow('ENOSPC')
  expect(await journal.isWritable()).toBe(false)
  await journal.close()
})

test('removes a journal past its retention once it was replayed, and not before', async () => {
  const old = await mkdtemp(join(directory, 'old-'))
  const [replayed, open] = [newId(), newId()]
  const month = new Date(Date.now() - 31 * 86_400_000)
  for (const worker_id of [replayed, open]) {
    const name = `${worker_id}.0.jsonl`
    await writeFile(join(old, name), '')
    await utimes(join(old, name), month, month)
  }
  await markReplayed(old, { worker_id: replayed, name: `${replayed}.0.jsonl`, size: 0, done: false })
  expect((await listJournals(old)).map(({ worker_id }) => worker_id)).toEqual([open])
})

test('a line that the disk did not flush does not count as written', async () => {
  const journal = await openJournal(directory, newId())
  const probe = await open(join(directory, 'probe'), 'a')
  const handles = Object.getPrototypeOf(probe) as FileHandle
  await probe.close()
  const flushed = vi.spyOn(handles, 'datasync').mockRejectedValueOnce(new Error('EIO'))
  try {
    await expect(journal.intend(intent('unflushed'))).rejects.toThrow('EIO')
    expect(journal.isFailing()).toBe(true)
    await journal.intend(intent('flushed'))
    expect(await journal.isWritable()).toBe(true)
  } finally {
    flushed.mockRestore()
    await journal.close()
  }
})
