/** The verbs of campaigns as an operator types them. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { addSuppression } from '../src/capabilities/suppressions/suppressions.ts'
import { sql } from '../src/db/sql.ts'
import { patient, runJson, runRefused, run as runVerb } from './harness/operator.ts'
import { openService, type Service, type Tenant } from './harness/service.ts'

let service: Service
let own: Tenant
let account_id: string
let home: string

beforeAll(async () => {
  service = await openService()
  own = await service.tenant('Own')
  account_id = await service.account(own.workspace_id)
  await service.allow(own)
  home = await mkdtemp(join(tmpdir(), 'parley-campaigns-'))
})
afterAll(async () => {
  await service.close()
  await rm(home, { recursive: true, force: true })
})

const run = (...args: readonly string[]) => runVerb(service, args)
const json = <T = Record<string, unknown>>(...args: readonly string[]) => runJson<T>(service, args)
const refused = (...args: readonly string[]) => runRefused(service, args)

async function audited(): Promise<string[]> {
  const rows = await service.app.db.rows<{ action: string }>(sql`
    select action from audit where workspace_id = ${own.workspace_id} and actor like 'cli:%' order by seq`)
  return rows.map(({ action }) => action)
}

/** How each line of `verify` begins. */
const verdictsOf = (text: string) =>
  text
    .trim()
    .split('\n')
    .map((line) => line.split(' ')[0] ?? '')

async function create(): Promise<readonly string[]> {
  const file = join(home, 'people.csv')
  const lines = [
    'Name,Username,phone,notes',
    'Ada,@ada_l,,x',
    'Bo,,+49 170 1234567,',
    'Zed,,,',
    'Cy,no,,',
    'Ada,ADA_L,,',
    'Dee,dee_stop,,',
    `${'x'.repeat(201)},@ex_long,,`,
    'Nu\0l,@nu_ll,,',
  ]
  await writeFile(file, lines.join('\n'))
  return [
    ...[
      'campaign',
      'create',
      '--workspace',
      own.workspace_id,
      '--user',
      own.user_id,
      '--account',
      account_id,
    ],
    ...['--text', 'Hi {{name|there}}', '--name', 'From a file', '--contacts', file],
  ]
}

describe('parley campaign', () => {
  test('create from a file respects gates, reports skipped lines, and is audited', patient, async () => {
    const command = await create()
    expect(await refused(...command)).toContain('The feature "extended" is switched off')
    await service.open('extended')
    const { workspace_id } = own
    await addSuppression(service.app, 'system', { workspace_id, username: 'dee_stop' })
    const report = await json<{ campaign_id: string; recipients: number }>(...command)
    expect(report).toMatchObject({
      status: 'queued',
      recipients: 2,
      warnings: [],
      skipped: [
        { line: 4, reason: 'The row has no username, no phone.' },
        { line: 5, reason: expect.stringContaining('"no" is not a username') },
        { line: 6, reason: 'Duplicate of line 2.' },
        { line: 7, reason: 'The person is on the suppression list.' },
        { line: 8, reason: expect.stringContaining('has more than 200 characters') },
        { line: 9, reason: expect.stringContaining('a character that is not allowed') },
      ],
    })
    expect(await audited()).toEqual(['campaign.created'])
    const { campaign_id } = report
    const [listed] = await json<object[]>('campaign', 'list', '--workspace', own.workspace_id)
    expect(listed).toMatchObject({
      id: campaign_id,
      name: 'From a file',
      status: 'queued',
      recipients: 2,
      open: 2,
      created_by: expect.stringMatching(/./),
    })
    const { stdout } = await run('campaign', 'show', campaign_id)
    const { name } = await service.app.db.one<{ name: string }>(sql`
      update users set name = 'Mara Maker' where id = ${own.user_id} returning name`)
    expect(await json('campaign', 'show', campaign_id)).toMatchObject({ created_by: name })
    expect((await run('campaign', 'list')).stdout).toContain(name)
    expect(stdout).toContain('Ada: queued, 0 sent. No account of this campaign is ready.')
    const forecast = await json<{ load: object[] }>('campaign', 'forecast', campaign_id)
    expect(forecast.load).toMatchObject([{ account_id, messages: 2, total: 2 }])
    const verified = await run('verify', 'campaign', campaign_id)
    expect([verified.code, verified.stderr]).toEqual([0, ''])
    expect(verdictsOf(verified.stdout)).toEqual(['ok', 'ok', 'ok', 'ok', 'ok'])
    await service.app.db.run(sql`update campaign_accounts set queued = 5 where campaign_id = ${campaign_id}`)
    const failed = await run('verify', 'campaign', campaign_id)
    expect([failed.code, failed.stderr]).toEqual([1, 'FAILED: totals.\n'])
    expect(failed.stdout).toMatch(/^FAILED {2}totals +This check fails/m)
    expect(verdictsOf(failed.stdout).toSorted()).toEqual(['FAILED', 'ok', 'ok', 'ok', 'ok'])
    const document = await run('verify', 'campaign', campaign_id, '--json')
    expect([document.code, JSON.parse(document.stdout).ok]).toEqual([1, false])
    await service.app.db.run(sql`
      update campaign_accounts set queued = case account_id when '' then 2 else 0 end where campaign_id = ${campaign_id}`)
  })

  test('pause, resume and cancel any campaign, each change audited once', patient, async () => {
    const chat_id = await service.chat({ account_id, workspace_id: own.workspace_id })
    const step = { branch: 'no_reply', wait_hours: 1, variants: ['x'] }
    const answer = await service.post('/campaigns', {
      key: own.key,
      headers: { 'idempotency-key': 'cli' },
      body: { message_text: 'Hi', recipients: [{ account_id, chat_id }], steps: [step] },
    })
    const { id } = answer.body.campaign as { id: string }
    const before = (await audited()).length
    expect(await json('campaign', 'pause', id)).toEqual({ id, status: 'paused', changed: true })
    expect(await json('campaign', 'pause', id)).toEqual({ id, status: 'paused', changed: false })
    expect(await json('campaign', 'resume', id)).toEqual({ id, status: 'queued', changed: true })
    expect(await json('campaign', 'cancel', id)).toEqual({ id, status: 'cancelled', changed: true })
    expect((await audited()).slice(before)).toEqual([
      'campaign.paused',
      'campaign.resumed',
      'campaign.cancelled',
    ])
    expect(await refused('campaign', 'resume', id)).toContain('not paused')
    expect(await refused('campaign', 'show', 'nothing')).toContain(
      '`parley campaign list` lists the campaigns.',
    )
  })

  test('workspace update --window and account set --cold-per-day', patient, async () => {
    const window = (text: string) => ['workspace', 'update', own.workspace_id, '--window', text]
    expect(await json(...window('MON-fri 9:00-18:00'))).toMatchObject({
      sending_window: 'mon-fri 09:00-18:00',
    })
    expect(await json(...window('none'))).toMatchObject({ sending_window: null })
    expect(await refused(...window('whenever'))).toContain('is not a sending window')
    const cold = (value: string) => ['account', 'set', account_id, '--cold-per-day', value]
    expect(await json(...cold('5'))).toMatchObject({ id: account_id, cold_per_day: 5 })
    expect(await json(...cold('none'))).toMatchObject({ cold_per_day: null })
    const wrong = await run(...cold('-1'))
    expect(wrong.code).toBe(2)
    expect((await audited()).slice(-4)).toEqual([
      'workspace.updated',
      'workspace.updated',
      'account.limited',
      'account.limited',
    ])
  })
})
