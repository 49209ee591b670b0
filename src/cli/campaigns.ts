/** The campaign verbs: how an operator inspects campaigns and stops one. */
import type { Command } from 'commander'
import {
  controlAnyCampaign,
  createFromFile,
  type FromFileReport,
  listAllCampaigns,
  showCampaign,
  showForecast,
  verifyAnyCampaign,
} from '../capabilities/campaigns/campaigns.ts'
import { readText } from './crm.ts'
import { platformHelp, workspaceHelp } from './help.ts'
import { Failed, Plain, show } from './output.ts'
import { withProgress } from './progress.ts'
import { commandOf, verb, whole } from './verbs.ts'

export function addCampaignVerbs(program: Command): void {
  const campaign = commandOf(program, 'campaign')
  addReads(campaign)
  addControls(campaign)
  addCreate(campaign)
  addVerify(commandOf(program, 'verify'))
}

function addReads(campaign: Command): void {
  verb<{ workspace?: string }>(campaign, 'list', 'list the newest campaigns', (app, _, { workspace }) =>
    listAllCampaigns(app.db, workspace),
  ).option('--workspace <id>', workspaceHelp)
  verb(
    campaign,
    'show <id>',
    'show a campaign with its first 100 recipients',
    async (app, _, __, id = '') => {
      const shown = await showCampaign(app, id)
      return new Plain(readableCampaign(shown), () => shown)
    },
  )
  verb(
    campaign,
    'forecast <id>',
    'forecast when the messages of a campaign will be sent',
    async (app, _, __, id = '') => {
      const forecast = await withProgress('Forecasting the campaign', showForecast(app, id))
      return new Plain(readableForecast(forecast), () => forecast)
    },
  )
}

function addControls(campaign: Command): void {
  const controls = {
    pause: 'pause a campaign; only campaigns with steps',
    resume: 'resume a paused campaign',
    cancel: 'cancel a campaign permanently',
  } as const
  for (const control of ['pause', 'resume', 'cancel'] as const) {
    verb(campaign, `${control} <id>`, controls[control], (app, actor, _, id = '') =>
      controlAnyCampaign(app, actor, { id, control }),
    )
  }
}

interface CreateOptions {
  readonly workspace: string
  readonly user: string
  readonly account: string[]
  readonly text: string
  readonly contacts: string
  readonly name?: string
  readonly dailyQuota?: number
}

function addCreate(campaign: Command): void {
  verb<CreateOptions>(
    campaign,
    'create',
    'queue a message to the contacts of a CSV file; prints which rows were skipped and why',
    async (app, actor, options) => {
      const { workspace, user, account, text, contacts, name, dailyQuota } = options
      const wanted = {
        workspace_id: workspace,
        user_id: user,
        accounts: account,
        message_text: text,
        name,
        daily_quota_per_account: dailyQuota,
        text: readText(contacts),
      }
      const report = await withProgress('Creating the campaign', createFromFile(app, actor, wanted))
      return new Plain(readableReport(report), () => ({ ...report }))
    },
  )
    .requiredOption('--workspace <id>', workspaceHelp)
    .requiredOption('--user <id>', 'id of the owner (a UUID); campaign allowlists check this user')
    .requiredOption('--account <ids...>', 'ids of the accounts that share the contacts')
    .requiredOption('--text <text>', 'the message; placeholders are {{name}} and {{name|there}}')
    .requiredOption(
      '--contacts <file>',
      'a CSV file: its first line names the columns identifier, username, phone or platform_id, and name',
    )
    .option('--name <name>', 'name of the campaign')
    .option('--daily-quota <n>', 'campaign messages per account and day', whole)
}

function addVerify(verify: Command): void {
  verb<{ platform?: boolean }>(
    verify,
    'campaign <id>',
    'compare counts, messages and quotas with the ledger',
    async (app, _, { platform = false }, id = '') => {
      const verified = verifyAnyCampaign(app, { id, platform })
      const { ok, checks } = await withProgress('Verifying the campaign', verified)
      const lines = checks.map((check) => {
        const verdict = check.ok ? 'ok' : 'FAILED'
        return `${verdict.padEnd(8)}${check.name.padEnd(25)}${check.detail}\n`
      })
      const found = new Plain(lines, () => ({ ok, checks }))
      if (ok) return found
      const failed = checks.filter((check) => !check.ok)
      return new Failed(found, `FAILED: ${failed.map(({ name }) => name).join(', ')}.`)
    },
  ).option('--platform', platformHelp)
}

/** For people: one line per skipped row. */
function* readableReport({ campaign_id, recipients, warnings, skipped }: FromFileReport): Generator<string> {
  yield `campaign_id  ${campaign_id}\nrecipients   ${recipients}\n`
  if (warnings.length > 0) yield `warnings     ${warnings.join(', ')}\n`
  yield `skipped      ${skipped.length}\n`
  for (const { line, reason } of skipped) yield `  line ${line}: ${reason}\n`
}

interface ShownRecipient {
  readonly name: string | null
  readonly identifier: string | null
  readonly chat_id: string | null
  readonly status: string
  readonly step: number
  /** Why it gets no message now, or how it ended. */
  readonly sentence: string
}

function* readableCampaign(shown: Record<string, unknown>): Generator<string> {
  const { recipients, reporting: _, totals, message_text: __, ...facts } = shown
  for (const [name, value] of Object.entries(facts)) yield `${name.padEnd(25)}${show(value)}\n`
  const counted = Object.entries(totals as Record<string, number>).filter(([, count]) => count > 0)
  yield `${'recipients'.padEnd(25)}${counted.map(([status, count]) => `${count} ${status}`).join(', ')}\n`
  for (const one of recipients as ShownRecipient[]) {
    const who = one.name ?? one.identifier ?? one.chat_id
    yield `  ${show(who)}: ${one.status}, ${one.step} sent. ${show(one.sentence)}\n`
  }
}

function* readableForecast(forecast: Record<string, unknown>): Generator<string> {
  const { load, end } = forecast as {
    load: { account_id: string; day: string; messages: number; total: number }[]
    end: string | null
  }
  for (const { account_id, day, messages, total } of load) {
    yield `${day}  ${account_id}  ${messages} of this campaign, ${total} in all\n`
  }
  if (end !== null) yield `The last message is sent at ${show(new Date(end))}.\n`
  else if (load.length === 0) yield 'No message is scheduled.\n'
  else yield 'The campaign is longer than a forecast covers, so its end is unknown.\n'
}
