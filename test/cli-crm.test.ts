/** The verbs of the CRM as an operator types them. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { patient, runJson, runRefused, run as runVerb } from './harness/operator.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'
import { readZip } from './harness/zip.ts'

let service: Service
let own: Tenant
let home: string

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  home = await mkdtemp(join(tmpdir(), 'parley-crm-'))
})
afterAll(async () => {
  await service.close()
  await rm(home, { recursive: true, force: true })
})

const run = (...args: readonly string[]) => runVerb(service, args)
const json = <T = Record<string, unknown>>(...args: readonly string[]) =>
  runJson<T>(service, [...args, '--workspace', own.workspace_id])
const refused = (...args: readonly string[]) => runRefused(service, args)

describe('parley stage', () => {
  test('create, update, list, delete', patient, async () => {
    expect(await json('stage', 'create', '--key', 'won', '--label', 'Won', '--terminal')).toEqual({
      key: 'won',
      label: 'Won',
      color: null,
      terminal: true,
      hidden: false,
    })
    await json('stage', 'create', '--key', 'lost', '--label', 'Lost', '--hidden')
    await json('stage', 'update', 'lost', '--no-hidden', '--place', '1', '--label', 'Gone', '--color', 'red')
    const stages = await json<object[]>('stage', 'list')
    expect(stages).toMatchObject([
      { key: 'lost', label: 'Gone', color: 'red', hidden: false },
      { key: 'new' },
      { key: 'won' },
    ])
    expect(await json('stage', 'delete', 'won')).toEqual({ key: 'won', moved: 0 })
    expect(await refused('stage', 'delete', 'new', '--workspace', own.workspace_id)).toContain(
      'cannot be deleted',
    )
    expect(await refused('stage', 'list', '--workspace', 'nope')).toBe(
      'There is no workspace "nope". `parley workspace list` lists the workspaces.\n',
    )
    expect(await refused('stage', 'delete', 'zzz', '--workspace', own.workspace_id)).toBe(
      'There is no stage "zzz". `parley stage list --workspace ID` lists the stages.\n',
    )
  })
})

describe('parley column', () => {
  test('create, options, list, delete', patient, async () => {
    const { id } = await json<{ id: string }>(
      'column',
      'create',
      '--name',
      'Plan',
      '--type',
      'select',
      '--options',
      'a,b',
    )
    await json('column', 'option', 'add', id, 'c', '--color', 'blue')
    await json('column', 'option', 'update', id, 'a', '--name', 'A', '--place', '3')
    await json('column', 'option', 'delete', id, 'b')
    await json('column', 'update', id, '--name', 'Tariff')
    expect(await json('column', 'list')).toEqual([
      {
        id,
        name: 'Tariff',
        type: 'select',
        options: [
          { value: 'c', color: 'blue' },
          { value: 'A', color: null },
        ],
      },
    ])
    expect(await json('column', 'delete', id)).toEqual({ id, values: 0 })
    const { code } = await run(
      'column',
      'create',
      '--workspace',
      own.workspace_id,
      '--name',
      'x',
      '--type',
      'blob',
    )
    expect(code).toBe(2)
  })
})

describe('parley suppress', () => {
  test('add, import, list, export, remove', patient, async () => {
    expect(await json('suppress', 'add', '--phone', '+49 170 1234567')).toEqual({
      kind: 'phone',
      value: '491701234567',
      added: true,
    })
    const file = join(home, 'list.csv')
    // The report is more than a pipe accepts at once.
    const wrong = Array.from({ length: 1_000 }, () => 'x\n').join('')
    await writeFile(file, `username\nada_l\n${wrong}`)
    const report = await json<{ skipped: object[] }>('suppress', 'import', file)
    expect(report).toMatchObject({ added: 1, skipped: { length: 1_000, 999: { line: 1_002 } } })
    expect(await json('suppress', 'list')).toHaveLength(2)
    const { stdout } = await run('suppress', 'export', '--workspace', own.workspace_id)
    expect(stdout).toMatch(
      /^kind,value,.*\r\nphone,491701234567,operator,.*\r\nusername,ada_l,import,.*\r\n$/,
    )
    const copy = join(home, 'copy.csv')
    await json('suppress', 'export', copy)
    expect(await readFile(copy, 'utf8')).toBe(stdout)
    expect(await json('suppress', 'remove', '--username', '@ADA_L')).toMatchObject({ removed: true })
    expect(await refused('suppress', 'add', '--workspace', own.workspace_id)).toContain('exactly one')
    expect(
      await refused('suppress', 'import', join(home, 'none'), '--workspace', own.workspace_id),
    ).toContain('ENOENT')
  })
})

describe('parley retention', () => {
  test('show and set: counted first, changed only with --confirm, and recorded', patient, async () => {
    const kept = {
      messages_days: 'keep',
      operations_days: 'keep',
      recipients_days: 'keep',
      notes_days: 'keep',
    }
    const names = ['messages', 'files', 'operations', 'recipients', 'notes']
    const nothing = Object.fromEntries(names.map((name) => [`clears_${name}`, 0]))
    expect(await json('retention', 'show')).toEqual(kept)
    const wanted = { ...kept, messages_days: 90, recipients_days: 30 }
    const set = ['retention', 'set', '--messages', '90', '--recipients', '30']
    expect(await json(...set)).toEqual({ ...wanted, changed: false, ...nothing })
    expect(await json('retention', 'show')).toEqual(kept)
    expect(await json(...set, '--confirm')).toEqual({ ...wanted, changed: true, ...nothing })
    expect(await json('retention', 'set', '--messages', 'keep', '--confirm')).toMatchObject({
      messages_days: 'keep',
      recipients_days: 30,
    })
    expect(await json('retention', 'show')).toEqual({ ...kept, recipients_days: 30 })
    const changes = await runJson<{ action: string }[]>(service, ['audit', 'list'])
    expect(changes.filter(({ action }) => action === 'retention.changed')).toHaveLength(2)
    const own_ = ['--workspace', own.workspace_id]
    expect(await refused('retention', 'set', '--recipients', '7', ...own_)).toContain('from 30 to 3650')
    const { code, stderr } = await runVerb(service, ['retention', 'set', '--notes', 'never', ...own_])
    expect([code, stderr]).toEqual([2, expect.stringContaining('or keep')])
  })
})

describe('parley person', () => {
  test('find and show', patient, async () => {
    const { workspace_id } = own
    const account_id = await service.account(workspace_id)
    await service.chat({ account_id, workspace_id, id: '4711', name: 'Ines García' })
    const found = await json<{ id: string }[]>('person', 'find', 'garcia')
    expect(found).toEqual([
      {
        id: expect.any(String),
        platform: 'sandbox',
        platform_id: '4711',
        name: 'Ines García',
        names: ['username:person_4711'],
        suppressed: false,
      },
    ])
    expect(await json('person', 'find', '@person_4711')).toEqual(found)
    expect(await json('person', 'find', 'nobody')).toEqual([])
    const id = found[0]?.id ?? ''
    const shown = { id, platform_id: '4711', chats: [{ account_id, chat_id: 'platform:chat:4711' }] }
    expect(await json('person', 'show', id)).toMatchObject(shown)
    const file = join(home, 'person.zip')
    const { bytes } = await json<{ bytes: number }>('person', 'export', id, file)
    const archive = await readFile(file)
    expect(archive.length).toBe(bytes)
    expect(String(readZip(archive).get('messages.html'))).toContain('hello')
    const again = await refused('person', 'export', id, file, '--workspace', workspace_id)
    expect(again).toContain('An existing file is never overwritten.')
    expect(await readFile(file)).toEqual(archive)
    const none = join(home, 'none.zip')
    expect(await refused('person', 'export', 'nobody', none, '--workspace', workspace_id)).toContain(
      'no person',
    )
    await expect(readFile(none)).rejects.toThrow('ENOENT')
    expect(await refused('person', 'show', 'nobody', '--workspace', workspace_id)).toBe(
      'There is no person "nobody". `parley person find NAME --workspace ID` finds people.\n',
    )
  })
})
