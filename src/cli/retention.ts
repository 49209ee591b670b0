/** How long workspaces keep texts, files and names. */
import { type Command, InvalidArgumentError } from 'commander'
import {
  daysMax,
  oldMax,
  previewRetention,
  type Retention,
  readRetention,
  setRetention,
} from '../capabilities/retention/retention.ts'
import { requireWorkspace } from '../capabilities/workspaces/workspaces.ts'
import { workspaceHelp } from './help.ts'
import { Noted } from './output.ts'
import { commandOf, verb } from './verbs.ts'

interface SetOptions {
  readonly workspace: string
  readonly messages?: Days
  readonly operations?: Days
  readonly recipients?: Days
  readonly notes?: Days
  readonly confirm?: boolean
}

/** No null for what is kept: commander would make it an empty text. */
type Days = number | 'keep'

export function addRetentionVerbs(program: Command): void {
  const retention = commandOf(program, 'retention')
  verb<{ workspace: string }>(
    retention,
    'show',
    'show for how many days texts, files and names are kept',
    async ({ db }, _, options) => {
      const { id } = await requireWorkspace(db, options.workspace)
      return shown(await readRetention(db, id))
    },
  ).requiredOption('--workspace <id>', workspaceHelp)
  verb<SetOptions>(
    retention,
    'set',
    'count what a change would clear, and with --confirm change it: what is older is cleared from then on, without end',
    async (app, actor, { workspace, confirm = false, ...given }) => {
      const { id } = await requireWorkspace(app.db, workspace)
      const present = await readRetention(app.db, id)
      const asked = Object.entries({
        messages_days: given.messages,
        operations_days: given.operations,
        recipients_days: given.recipients,
        notes_days: given.notes,
      }).flatMap(([name, days]) => (days === undefined ? [] : [[name, days === 'keep' ? null : days]]))
      const wanted: Retention = { ...present, ...Object.fromEntries(asked) }
      const clears = await previewRetention(app.db, { workspace_id: id, retention: wanted })
      if (confirm) await setRetention(app, actor, { workspace_id: id, retention: wanted })
      const facts = { ...shown(wanted), changed: confirm, ...prefixed(clears) }
      return new Noted(facts, confirm ? begun : nothingYet)
    },
  )
    .requiredOption('--workspace <id>', workspaceHelp)
    .option('--messages <days>', `texts and files of messages: days from 1 to ${daysMax}, or keep`, days)
    .option('--operations <days>', 'texts in operations, from their end: days, or keep', days)
    .option(
      '--recipients <days>',
      'names of recipients, from the end of their campaign: days from 30, or keep',
      days,
    )
    .option('--notes <days>', 'notes: days, or keep', days)
    .option('--confirm', 'change it, instead of only counting')
}

const nothingYet = `Nothing was changed. Run it again with --confirm to change it. Each is counted up to ${oldMax.toLocaleString('en')}.`
const begun = 'The service clears what is older, in the background. What was cleared cannot be brought back.'

function shown(retention: Retention): object {
  return Object.fromEntries(Object.entries(retention).map(([name, value]) => [name, value ?? 'keep']))
}

function prefixed(clears: object): object {
  return Object.fromEntries(Object.entries(clears).map(([name, value]) => [`clears_${name}`, value]))
}

function days(value: string): Days {
  if (value === 'keep') return value
  if (!/^\d{1,5}$/.test(value)) throw new InvalidArgumentError('Give a whole number of days, or keep.')
  return Number(value)
}
