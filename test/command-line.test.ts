/**
 * Every verb of the tree: its help, what it creates in a data directory without a Parley, and that it runs as a
 * process.
 */
import { existsSync } from 'node:fs'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { makeProgram } from '../src/cli/program.ts'
import { verbs } from '../src/cli/verb-list.ts'
import { copyDatabase, type TestDatabase } from './harness/database.ts'
import { runVerb } from './harness/operator.ts'
import { type Exit, runParley } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { testSecret } from './harness/worker.ts'

const parts = {
  routes: [],
  dashboard: { workspaceRoutes: [], ownRoutes: [] },
  operations: [],
  loops: [],
  platforms: [],
  migrations: [],
}
const everyWord = verbs.flatMap(({ words }) => Object.keys(words))
const program = await makeProgram(async () => parts, verbs, everyWord)

function walk(command: Command, path = command.name()): [path: string, command: Command][] {
  return [[path, command], ...command.commands.flatMap((below) => walk(below, `${path} ${below.name()}`))]
}

const all = walk(program)
const leaves = all.filter(([, command]) => command.commands.length === 0)

describe.each(all)('%s --help', (_, command) => {
  test('describes the verb, and every option and argument of it', () => {
    expect(command.description()).not.toBe('')
    expect(command.options.filter(({ description }) => !description).map(({ flags }) => flags)).toEqual([])
    expect(
      command.registeredArguments
        .filter(({ description }) => !description)
        .map((argument) => argument.name()),
    ).toEqual([])
  })

  test('marks what is required, and lists the choices', () => {
    const help = command.helpInformation().replaceAll(/\s+/g, ' ')
    for (const option of command.options) {
      if (option.mandatory) expect(help).toContain(`${option.description} (required`)
      if (option.argChoices) expect(help).toContain(`one of ${option.argChoices.join(', ')}`)
    }
  })
})

test('finds the verbs that people use', () => {
  expect(leaves.length).toBeGreaterThan(40)
  const names = leaves.map(([path]) => path)
  for (const verb of ['audit list', 'audit verify', 'dispatch status', 'demo', 'key create', 'start']) {
    expect(names).toContain(`parley ${verb}`)
  }
})

test('shows the format of every value that has one', () => {
  const formats: readonly [option: string, format: RegExp][] = [
    ['--workspace', /UUID/],
    ['--user', /UUID/],
    ['--scopes', /read,write,send,campaigns/],
    ['--expires', /2027-01-31/],
    ['--timezone', /Europe\/Berlin/],
    ['--port', /0 to 65535/],
    ['--admin-port', /0 to 65535/],
    ['--phone', /\+49/],
    ['--color', /#3366ff/],
  ]
  for (const [long, format] of formats) {
    const options = leaves.flatMap(([, { options }]) => options.filter((option) => option.long === long))
    expect([long, options.length > 0]).toEqual([long, true])
    for (const { description } of options) expect(description).toMatch(format)
  }
})

/** The words of a verb, with a value for every required argument and option. */
function commandLineOf(verb: string, command: Command): string[] {
  const args = command.registeredArguments.map(() => '1')
  const options = command.options
    .filter(({ mandatory }) => mandatory)
    .flatMap(({ long, argChoices }) => [long ?? '', argChoices?.[0] ?? '1'])
  return [...verb.split(' '), ...args, ...options]
}

const commands = leaves.map(([path, command]) => ({ verb: path.replace('parley ', ''), command }))

let home: string
beforeEach(async () => {
  home = await makeScratch('parley-none-')
})
afterEach(() => rm(home, { recursive: true, force: true }))

test('an argument that a verb does not take is not repeated', async () => {
  const { code, stdout, stderr } = await runVerb(['account', 'import', 'acc_one', 'canary\n. secret.'])
  expect([code, stdout]).toEqual([2, ''])
  expect(stderr.split('\n')[0]).toBe("error: too many arguments for 'import'. Expected 1 argument but got 2.")
  expect(stderr).not.toMatch(/canary|secret/)
})

test('a command without the PARLEY_SECRET of the service refuses, and makes no other secret', async () => {
  const here = ['--json', '--data-dir', home]
  const made = await runVerb(['gate', 'enable', 'rest', ...here], { PARLEY_SECRET: testSecret })
  expect([made.code, made.stderr]).toEqual([0, ''])
  for (const words of ['gate list', 'gate enable crm']) {
    const { code, stderr } = await runVerb([...words.split(' '), ...here])
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining(`The file ${join(home, 'secret')} is missing. Set PARLEY_SECRET`),
    ])
  }
  expect(existsSync(join(home, 'secret'))).toBe(false)
})

describe('in a data directory without a Parley', () => {
  /** Verbs that are useful before the first start, that call the API, or that open the database in their own way. */
  const others =
    /^(start|serve|work|demo|sandbox|migrate|doctor|restore|generate|mcp|events|webhook .*|telegram rehearse|workspace create|gate (en|dis)able|dispatch off)$/
  const reading = commands.filter(({ verb }) => !others.test(verb))

  test('most verbs need one', () => {
    expect(reading.length).toBeGreaterThan(35)
  })

  test.each(reading)('$verb refuses and creates nothing', async ({ verb, command }) => {
    const missing = join(home, 'missing')
    for (const data_dir of [missing, home]) {
      const { code, stderr } = await runVerb([...commandLineOf(verb, command), '--data-dir', data_dir])
      expect([code, stderr]).toEqual([1, expect.stringContaining(`There is no Parley in ${data_dir}.`)])
    }
    expect([existsSync(missing), await readdir(home)]).toEqual([false, []])
  })
})

describe('as a process of its own', () => {
  /** These run until they are stopped, write into the checkout, or print what they measure; each has its own tests of processes. */
  const others = /^(start|serve|work|sandbox|mcp|generate|doctor)$/
  let databases: { readonly spawned: TestDatabase; readonly here: TestDatabase }
  beforeAll(async () => {
    databases = { spawned: await copyDatabase(), here: await copyDatabase() }
  })
  afterAll(async () => {
    await databases.spawned.drop()
    await databases.here.drop()
  })

  /** Both databases get the same commands; ids and other random values are ignored. */
  const comparable = ({ code, stdout, stderr }: Exit) => ({
    code,
    stdout: stdout.replaceAll(/[0-9a-f]{8}-[0-9a-f-]{27}|\d{4}-\d\d-\d\d[ T][\d:.]+Z/g, 'HERE'),
    stderr,
  })

  test.each(commands.filter(({ verb }) => !others.test(verb)))(
    '$verb does the same as in this one',
    async ({ verb, command }) => {
      const args = [...commandLineOf(verb, command), '--data-dir', home]
      const env = ({ url }: TestDatabase) => ({
        DATABASE_URL: url,
        PARLEY_SECRET: testSecret,
        PARLEY_API_KEY: 'svc_live_nobody',
        PARLEY_BASE_URL: 'http://127.0.0.1:9',
      })
      const spawned = comparable(await runParley(args, env(databases.spawned)))
      expect(spawned).toEqual(comparable(await runVerb(args, env(databases.here))))
      expect(spawned.code === 0 ? spawned.stdout : spawned.stderr).toMatch(/\S/)
      expect(spawned.stderr).not.toContain('bug in Parley')
    },
  )
})
