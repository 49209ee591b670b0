/** The verbs of the CRM: stages, columns with their options, and the suppression list. */
import { createReadStream } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { basename } from 'node:path'
import { type Command, Option } from 'commander'
import type { App } from '../app.ts'
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
import { createStage, deleteStage, listStages, updateStage } from '../capabilities/pipeline/pipeline.ts'
import {
  addSuppression,
  exportSuppressions,
  type ImportReport,
  importSuppressions,
  listSuppressions,
  removeSuppression,
} from '../capabilities/suppressions/suppressions.ts'
import { requireWorkspace } from '../capabilities/workspaces/workspaces.ts'
import { Refusal } from '../lib/errors.ts'
import { Plain } from './output.ts'
import { list, noun, place, verb } from './verbs.ts'

interface InWorkspace {
  readonly workspace: string
}

export function addCrmVerbs(program: Command): void {
  addStages(noun(program, 'stage', 'the stages that chats move through'))
  const column = noun(program, 'column', 'the columns of a workspace')
  addColumns(column)
  addOptions(noun(column, 'option', 'the options of a select column'))
  addSuppressions(noun(program, 'suppress', 'whom a workspace never writes to first'))
}

async function workspaceOf(app: App, { workspace }: InWorkspace): Promise<string> {
  return (await requireWorkspace(app.db, workspace)).id
}

interface StageOptions extends InWorkspace {
  readonly key: string
  readonly label: string
  readonly terminal?: boolean
  readonly hidden?: boolean
  readonly place?: number
}

function addStages(stage: Command): void {
  verb<StageOptions>(stage, 'create', 'add a stage at the end', async (app, actor, options) => {
    const workspace_id = await workspaceOf(app, options)
    const { key, label, terminal = false, hidden = false } = options
    return createStage(app, actor, { workspace_id, key, label, terminal, hidden })
  })
    .requiredOption('--workspace <id>')
    .requiredOption('--key <key>', 'what the API calls it; it never changes')
    .requiredOption('--label <label>', 'what people call it')
    .option('--terminal', 'nothing comes after it')
    .option('--hidden', 'no chat can be moved to it')
  verb<Partial<StageOptions> & InWorkspace>(
    stage,
    'update <key>',
    'rename it, hide or show it, put it elsewhere',
    async (app, actor, options, key = '') => {
      const workspace_id = await workspaceOf(app, options)
      const { label, terminal, hidden, place } = options
      return updateStage(app, actor, { workspace_id, key, label, terminal, hidden, place })
    },
  )
    .requiredOption('--workspace <id>')
    .option('--label <label>')
    .option('--terminal')
    .option('--no-terminal')
    .option('--hidden')
    .option('--no-hidden')
    .option('--place <n>', 'its place among the stages, from 1 on', place)
  verb<InWorkspace>(stage, 'list', 'the stages in order', async (app, _, options) =>
    listStages(app.db, await workspaceOf(app, options)),
  ).requiredOption('--workspace <id>')
  verb<InWorkspace>(
    stage,
    'delete <key>',
    'its chats go back to new, each with its event',
    async (app, actor, options, key = '') =>
      deleteStage(app, actor, { workspace_id: await workspaceOf(app, options), key }),
  ).requiredOption('--workspace <id>')
}

interface ColumnOptions extends InWorkspace {
  readonly name: string
  readonly type: ColumnType
  readonly options?: readonly string[]
  readonly place?: number
}

function addColumns(column: Command): void {
  verb<ColumnOptions>(column, 'create', 'add a column at the end', async (app, actor, options) => {
    const workspace_id = await workspaceOf(app, options)
    const { name, type, options: values = [] } = options
    return createColumn(app, actor, { workspace_id, name, type, options: values.map((value) => ({ value })) })
  })
    .requiredOption('--workspace <id>')
    .requiredOption('--name <name>')
    .addOption(new Option('--type <type>').choices(columnTypes).makeOptionMandatory())
    .option('--options <values>', 'what can be chosen, separated by commas', list)
  verb<Partial<ColumnOptions> & InWorkspace>(
    column,
    'update <id>',
    'rename it, put it elsewhere; its type stays',
    async (app, actor, options, id = '') => {
      const workspace_id = await workspaceOf(app, options)
      return updateColumn(app, actor, { workspace_id, id, name: options.name, place: options.place })
    },
  )
    .requiredOption('--workspace <id>')
    .option('--name <name>')
    .option('--place <n>', 'its place among the columns, from 1 on', place)
  verb<InWorkspace>(column, 'list', 'the columns in order, with their options', async (app, _, options) =>
    listColumns(app.db, await workspaceOf(app, options)),
  ).requiredOption('--workspace <id>')
  verb<InWorkspace>(column, 'delete <id>', 'with every value in it', async (app, actor, options, id = '') =>
    deleteColumn(app, actor, { workspace_id: await workspaceOf(app, options), id }),
  ).requiredOption('--workspace <id>')
}

interface OptionOptions extends InWorkspace {
  readonly name?: string
  readonly color?: string
  readonly place?: number
}

function addOptions(option: Command): void {
  verb<OptionOptions>(
    option,
    'add <column> <value>',
    'at the end; one that was deleted comes back',
    async (app, actor, options, column_id = '', value = '') =>
      addOption(app, actor, {
        workspace_id: await workspaceOf(app, options),
        column_id,
        value,
        color: options.color,
      }),
  )
    .requiredOption('--workspace <id>')
    .option('--color <color>', 'a name such as blue, or #3366ff')
  verb<OptionOptions>(
    option,
    'update <column> <value>',
    'rename it together with the values that have it, recolour it, put it elsewhere',
    async (app, actor, options, column_id = '', value = '') => {
      const workspace_id = await workspaceOf(app, options)
      const { name, color, place } = options
      return updateOption(app, actor, { workspace_id, column_id, value, name, color, place })
    },
  )
    .requiredOption('--workspace <id>')
    .option('--name <value>', 'its new name')
    .option('--color <color>', 'a name such as blue, or #3366ff')
    .option('--place <n>', 'its place among the options, from 1 on', place)
  verb<InWorkspace>(
    option,
    'delete <column> <value>',
    'values that have it stay readable; it can no longer be set',
    async (app, actor, options, column_id = '', value = '') =>
      deleteOption(app, actor, { workspace_id: await workspaceOf(app, options), column_id, value }),
  ).requiredOption('--workspace <id>')
}

interface IdentityOptions extends InWorkspace {
  readonly username?: string
  readonly phone?: string
  readonly platformId?: string
}

const importBytesMax = 64 * 1_048_576

function addSuppressions(suppress: Command): void {
  for (const [name, description, act] of [
    ['add', 'never write to this person first', addSuppression],
    ['remove', 'take this person off the list', removeSuppression],
  ] as const) {
    verb<IdentityOptions>(suppress, name, description, async (app, actor, options) => {
      const { username, phone, platformId: platform_id } = options
      return act(app, actor, { workspace_id: await workspaceOf(app, options), username, phone, platform_id })
    })
      .requiredOption('--workspace <id>')
      .option('--username <name>')
      .option('--phone <number>', "with the country's code")
      .option('--platform-id <id>', "the person's number on the platform")
  }
  verb<InWorkspace>(suppress, 'list', 'the whole list', async (app, _, options) =>
    listSuppressions(app.db, await workspaceOf(app, options)),
  ).requiredOption('--workspace <id>')
  verb<InWorkspace>(
    suppress,
    'import <file>',
    'add the rows of a CSV file; says which were skipped and why',
    async (app, actor, options, file = '') => {
      const workspace_id = await workspaceOf(app, options)
      const text = readText(file)
      const report = await importSuppressions(app, actor, { workspace_id, file: basename(file), text })
      return new Plain(readable(report), () => ({ ...report }))
    },
  ).requiredOption('--workspace <id>')
  verb<InWorkspace>(suppress, 'export [file]', 'the list as CSV', async (app, _, options, file) => {
    const text = exportSuppressions(app.db, await workspaceOf(app, options))
    if (!file) return new Plain(text, async () => ({ csv: await joined(text) }))
    return { file, bytes: await writeText(file, text) }
  }).requiredOption('--workspace <id>')
}

async function joined(text: AsyncIterable<string>): Promise<string> {
  let whole = ''
  for await (const piece of text) whole += piece
  return whole
}

/** For people: a line for each row that added nothing. */
function* readable({ added, skipped }: ImportReport): Generator<string> {
  yield `added    ${added}\nskipped  ${skipped.length}\n`
  for (const { line, reason } of skipped) yield `  line ${line}: ${reason}\n`
}

/** As it is read; whatever is wrong with the file is a refusal. */
async function* readText(file: string): AsyncGenerator<string> {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
  let size = 0
  try {
    for await (const bytes of createReadStream(file)) {
      size += bytes.length
      if (size > importBytesMax) throw new Refusal(`${file} is larger than 64 MiB. Nothing was imported.`)
      yield decoder.decode(bytes, { stream: true })
    }
    yield decoder.decode()
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'ERR_ENCODING_INVALID_ENCODED_DATA') throw new Refusal(`${file} is not UTF-8.`)
    if (error instanceof Refusal || !/^E[A-Z]+$/.test(code ?? '')) throw error
    throw new Refusal(`${file} cannot be read: ${code}.`)
  }
}

/** Answers how many bytes it has become. */
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
