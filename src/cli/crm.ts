/** The verbs of the CRM: stages, columns with their options, and the suppression list. */
import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Command, Option } from 'commander'
import {
  addOption,
  type ColumnType,
  columnTypes,
  createColumn,
  deleteColumn,
  deleteOption,
  listColumns,
  updateColumn,
  updateOption,
} from '../capabilities/columns/columns.ts'
import {
  createStage,
  deleteStage,
  listStages,
  type NewStage,
  updateStage,
} from '../capabilities/pipeline/pipeline.ts'
import {
  addSuppression,
  exportSuppressions,
  type ImportReport,
  importSuppressions,
  listSuppressions,
  removeSuppression,
} from '../capabilities/suppressions/suppressions.ts'
import { decodeCsv } from '../lib/csv.ts'
import { Refusal } from '../lib/errors.ts'
import { Noted, Plain } from './output.ts'
import { commandOf, list, place } from './verbs.ts'
import { workspaceVerb } from './workspace-verb.ts'

export function addCrmVerbs(program: Command): void {
  addStages(commandOf(program, 'stage'))
  const column = commandOf(program, 'column')
  addColumns(column)
  addOptions(column.command('option').description('the options of a select column'))
  addSuppressions(commandOf(program, 'suppress'))
}

interface StageOptions extends NewStage {
  readonly place?: number
}

function addStages(stage: Command): void {
  workspaceVerb<StageOptions>(
    stage,
    'create',
    'add a stage at the end',
    (app, actor, { workspace_id, options: { key, label, color, terminal = false, hidden = false } }) =>
      createStage(app, actor, { workspace_id, key, label, color, terminal, hidden }),
  )
    .requiredOption('--key <key>', 'key for the API, such as follow_up; it never changes')
    .requiredOption('--label <label>', 'name shown to people')
    .option('--color <color>', 'a name such as blue, or #3366ff')
    .option('--terminal', 'mark it as a final stage')
    .option('--hidden', 'hide it: no chat can be moved to it')
  workspaceVerb<Partial<StageOptions>>(
    stage,
    'update <key>',
    'rename, recolour, hide, show or move a stage',
    (app, actor, { workspace_id, options: { label, color, terminal, hidden, place } }, key = '') =>
      updateStage(app, actor, { workspace_id, key, label, color, terminal, hidden, place }),
  )
    .option('--label <label>', 'new name')
    .option('--color <color>', 'a name such as blue, or #3366ff')
    .option('--terminal', 'mark it as a final stage')
    .option('--no-terminal', 'mark it as not final')
    .option('--hidden', 'hide it: no chat can be moved to it')
    .option('--no-hidden', 'show it: chats can be moved to it again')
    .option('--place <n>', 'position among the stages, from 1', place)
  workspaceVerb(stage, 'list', 'list the stages in order', (app, _, { workspace_id }) =>
    listStages(app.db, workspace_id),
  )
  workspaceVerb(
    stage,
    'delete <key>',
    'delete a stage; its chats return to new, each with an event',
    (app, actor, { workspace_id }, key = '') => deleteStage(app, actor, { workspace_id, key }),
  )
}

interface ColumnOptions {
  readonly name: string
  readonly type: ColumnType
  readonly options?: readonly string[]
  readonly place?: number
}

function addColumns(column: Command): void {
  workspaceVerb<ColumnOptions>(
    column,
    'create',
    'add a column at the end',
    (app, actor, { workspace_id, options: { name, type, options = [] } }) =>
      createColumn(app, actor, { workspace_id, name, type, options: options.map((value) => ({ value })) }),
  )
    .requiredOption('--name <name>', 'name shown to people')
    .addOption(new Option('--type <type>', 'type of its values').choices(columnTypes).makeOptionMandatory())
    .option('--options <values>', 'comma-separated options', list)
  workspaceVerb<Partial<ColumnOptions>>(
    column,
    'update <id>',
    'rename or move a column; its type stays',
    (app, actor, { workspace_id, options: { name, place } }, id = '') =>
      updateColumn(app, actor, { workspace_id, id, name, place }),
  )
    .option('--name <name>', 'new name')
    .option('--place <n>', 'position among the columns, from 1', place)
  workspaceVerb(column, 'list', 'list the columns in order with their options', (app, _, { workspace_id }) =>
    listColumns(app.db, workspace_id),
  )
  workspaceVerb(
    column,
    'delete <id>',
    'delete a column with all its values',
    (app, actor, { workspace_id }, id = '') => deleteColumn(app, actor, { workspace_id, id }),
  )
}

interface OptionOptions {
  readonly name?: string
  readonly color?: string
  readonly place?: number
}

function addOptions(option: Command): void {
  workspaceVerb<OptionOptions>(
    option,
    'add <column> <value>',
    'add an option at the end, or restore a deleted one',
    (app, actor, { workspace_id, options: { color } }, column_id = '', value = '') =>
      addOption(app, actor, { workspace_id, column_id, value, color }),
  ).option('--color <color>', 'a name such as blue, or #3366ff')
  workspaceVerb<OptionOptions>(
    option,
    'update <column> <value>',
    'rename an option and the values that use it, recolour or move it',
    (app, actor, { workspace_id, options: { name, color, place } }, column_id = '', value = '') =>
      updateOption(app, actor, { workspace_id, column_id, value, name, color, place }),
  )
    .option('--name <value>', 'new name')
    .option('--color <color>', 'a name such as blue, or #3366ff')
    .option('--place <n>', 'position among the options, from 1', place)
  workspaceVerb(
    option,
    'delete <column> <value>',
    'delete an option; values that use it stay readable, but it can no longer be set',
    (app, actor, { workspace_id }, column_id = '', value = '') =>
      deleteOption(app, actor, { workspace_id, column_id, value }),
  )
}

interface IdentityOptions {
  readonly username?: string
  readonly phone?: string
  readonly platformId?: string
}

const importBytesMax = 64 * 1_048_576

function addSuppressions(suppress: Command): void {
  for (const [name, description, act] of [
    ['add', 'add a person: Parley never writes to them first', addSuppression],
    ['remove', 'remove a person from the list; prints whom that releases', removeAndNote],
  ] as const) {
    workspaceVerb<IdentityOptions>(
      suppress,
      name,
      description,
      (app, actor, { workspace_id, options: { username, phone, platformId: platform_id } }) =>
        act(app, actor, { workspace_id, username, phone, platform_id }),
    )
      .option('--username <name>', 'username on the platform, with or without @')
      .option('--phone <number>', 'phone number with the country code, such as +4930123456')
      .option('--platform-id <id>', 'id of the person on the platform, such as 1001')
  }
  workspaceVerb(suppress, 'list', 'show the whole list', (app, _, { workspace_id }) =>
    listSuppressions(app.db, workspace_id),
  )
  workspaceVerb(
    suppress,
    'import <file>',
    'add the rows of a CSV file; prints which were skipped and why',
    async (app, actor, { workspace_id }, file = '') => {
      const bytes = () => readBytes(file)
      const report = await importSuppressions(app, actor, { workspace_id, file: basename(file), bytes })
      return new Plain(readable(report), () => ({ ...report }))
    },
  )
  workspaceVerb(
    suppress,
    'export [file]',
    'write the list as CSV',
    async (app, _, { workspace_id }, file) => {
      const text = exportSuppressions(app.db, workspace_id)
      if (!file) return new Plain(text, async () => ({ csv: await joined(text) }))
      return { file, bytes: await writeText(file, text) }
    },
  )
}

/** Says whom the removal releases, and who is still on the list by another entry. */
async function removeAndNote(...given: Parameters<typeof removeSuppression>): Promise<Noted | object> {
  const removed = await removeSuppression(...given)
  if (!removed.removed) return removed
  const sentences = removed.people.map(({ platform_id, names, until, released }) => {
    const who = [...names.map((name) => writtenOf(name)), `platform id ${platform_id}`].join(', ')
    const gone = until === null ? '' : ` (the name has not been theirs since ${until.slice(0, 10)})`
    return `${released ? 'Released' : 'Still on the list by another entry'}: ${who}${gone}.`
  })
  return new Noted(removed, sentences.join('\n') || 'Parley knows nobody under this name.')
}

/** As people write it: @ada_l, +49170555. */
function writtenOf(name: string): string {
  return name.replace(/^username:/, '@').replace(/^phone:/, '+')
}

async function joined(text: AsyncIterable<string>): Promise<string> {
  let whole = ''
  for await (const piece of text) whole += piece
  return whole
}

/** For people: one line per row that added nothing. */
function* readable({ added, skipped_count, skipped }: ImportReport): Generator<string> {
  yield `added    ${added}\nskipped  ${skipped_count}\n`
  for (const { line, reason } of skipped) yield `  line ${line}: ${reason}\n`
  const unnamed = skipped_count - skipped.length
  if (unnamed > 0) yield `  and ${unnamed} more\n`
}

/** Yields the file's text in pieces. Refuses a file that cannot be read. */
export function readText(file: string): AsyncGenerator<string> {
  return decodeCsv(readBytes(file))
}

async function* readBytes(file: string): AsyncGenerator<Buffer> {
  let size = 0
  try {
    for await (const bytes of createReadStream(file, { highWaterMark: 256 * 1024 })) {
      size += bytes.length
      if (size > importBytesMax) throw new Refusal(`${file} is larger than 64 MiB. Nothing was imported.`)
      yield bytes
    }
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (error instanceof Refusal || !/^E[A-Z]+$/.test(code ?? '')) throw error
    throw new Refusal(`${file} cannot be read: ${code}.`)
  }
}

/** Returns how many bytes were written. */
async function writeText(file: string, text: AsyncIterable<string>): Promise<number> {
  let size = 0
  const bytes = async function* () {
    for await (const piece of text) {
      size += Buffer.byteLength(piece)
      yield piece
    }
  }
  await writeFile(file, bytes(), { mode: 0o600 }).catch((error) => {
    throw /^E[A-Z]+$/.test(error.code ?? '')
      ? new Refusal(`${file} cannot be written: ${error.code}.`)
      : error
  })
  return size
}
