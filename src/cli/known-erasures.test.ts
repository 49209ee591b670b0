import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { BackupOrigin } from '../db/backup-origin.ts'
import { beginErasures, erasureListIn, keepErasures } from '../ledger/erasure-list.ts'
import { newId } from '../lib/ids.ts'
import { requireErasuresOf, requireErasuresSince } from './known-erasures.ts'

let data_dir: string
let ledger: string
beforeEach(async () => {
  data_dir = await mkdtemp(join(tmpdir(), 'parley-known-'))
  ledger = join(data_dir, 'ledger')
  await mkdir(ledger)
})
afterEach(() => rm(data_dir, { recursive: true, force: true }))

const origin: BackupOrigin = { id: newId(), restore_counter: '40', workspace_ids: new Set([newId()]) }
const [workspace_id = ''] = origin.workspace_ids
const unconfirmed = { erasures: undefined, without_erasures: false }
const asked = () => requireErasuresSince(origin, { data_dir, ...unconfirmed })
const refused = expect.objectContaining({ message: expect.stringContaining('would come back') })
const sees = (id: string, restore_counter: string) =>
  writeFile(join(ledger, 'instance.json'), JSON.stringify({ id, restore_counter }))
const erasureOf = (workspace: string) => ({ id: newId(), workspace_id: workspace })

describe('a restore of a backup', () => {
  test('is refused where there is no list, unless the operator confirms that people come back', async () => {
    await sees(origin.id, '40')
    await expect(asked()).rejects.toEqual(refused)
    expect(await requireErasuresSince(origin, { data_dir, ...unconfirmed, without_erasures: true })).toEqual(
      [],
    )
  })

  test('takes an empty list of the same instance', async () => {
    await beginErasures(ledger)
    await sees(origin.id, '40')
    expect(await asked()).toEqual([])
  })

  test('is refused with the empty list that a service has begun on a new disk', async () => {
    await beginErasures(ledger)
    await expect(asked()).rejects.toEqual(refused)
    await sees(newId(), '90')
    await expect(asked()).rejects.toEqual(refused)
  })

  test('is refused with the list of a disk that was set back to before the backup', async () => {
    await keepErasures(erasureListIn(ledger), [erasureOf(workspace_id)])
    await sees(origin.id, '39')
    await expect(asked()).rejects.toEqual(refused)
  })

  test('takes a list with erasures of its workspaces on a disk of another instance, and none of others', async () => {
    await sees(newId(), '90')
    await keepErasures(erasureListIn(ledger), [erasureOf(newId())])
    await expect(asked()).rejects.toEqual(refused)
    await keepErasures(erasureListIn(ledger), [erasureOf(workspace_id)])
    expect(await asked()).toEqual([expect.anything(), expect.objectContaining({ workspace_id })])
  })

  test('adds the given list to that of the disk', async () => {
    const given = join(data_dir, 'newer.erasures')
    await keepErasures(erasureListIn(ledger), [erasureOf(workspace_id)])
    await keepErasures(given, [erasureOf(workspace_id)])
    const found = await requireErasuresSince(origin, { data_dir, ...unconfirmed, erasures: given })
    expect(found).toHaveLength(2)
  })
})

describe('a mark after a restore with other tools', () => {
  const database = { id: origin.id, restore_counter: '40', generation: newId(), server_run: '' }
  const marked = () => requireErasuresOf(database, { data_dir, ...unconfirmed })

  test('takes the list of a disk that has seen more than the database', async () => {
    await keepErasures(erasureListIn(ledger), [erasureOf(workspace_id)])
    await sees(origin.id, '41')
    expect(await marked()).toHaveLength(1)
  })

  test('is refused where the disk may have been put back with the database', async () => {
    await keepErasures(erasureListIn(ledger), [erasureOf(workspace_id)])
    await sees(origin.id, '40')
    await expect(marked()).rejects.toEqual(refused)
  })

  test('is refused with the disk of another database, and with none', async () => {
    await expect(marked()).rejects.toEqual(refused)
    await beginErasures(ledger)
    await sees(newId(), '90')
    await expect(marked()).rejects.toEqual(refused)
  })
})
