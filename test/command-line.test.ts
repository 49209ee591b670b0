/** Every verb, walked as a tree: its help, and what it makes in a data directory without a Parley. */
import { existsSync } from 'node:fs'
import { mkdtemp, readdir, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { makeProgram } from '../src/cli/program.ts'
import { verbs } from '../src/cli/verb-list.ts'

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

  test('marks what is required, and says what can be chosen', () => {
    const help = command.helpInformation().replaceAll(/\s+/g, ' ')
    for (const option of command.options) {
      if (option.mandatory) expect(help).toContain(`${option.description} (required`)
      if (option.argChoices) expect(help).toContain(`one of ${option.argChoices.join(', ')}`)
    }
  })
})

test('the walk has seen the verbs that people ask for', () => {
  expect(leaves.length).toBeGreaterThan(40)
  const names = leaves.map(([path]) => path)
  for (const verb of ['audit list', 'audit verify', 'dispatch status', 'demo', 'key create', 'start']) {
    expect(names).toContain(`parley ${verb}`)
  }
})

test('a format is shown wherever a value has one', () => {
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

let home: string
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'parley-none-'))
})
afterEach(async () => {
  vi.unstubAllEnvs()
  await rm(home, { recursive: true, force: true })
})

/** A command ends its process. In this one it leaves listeners behind. */
async function run(...args: readonly string[]): Promise<void> {
  const events = ['exit', 'SIGINT', 'SIGTERM'] as const
  const before = events.map((event) => process.rawListeners(event))
  try {
    const program = await makeProgram(async () => parts, verbs, args)
    await program.parseAsync(args, { from: 'user' })
  } finally {
    for (const [at, event] of events.entries()) {
      const added = process.rawListeners(event).filter((each) => !before[at]?.includes(each))
      for (const each of added) process.removeListener(event, each as () => void)
    }
  }
}

test('a command without the PARLEY_SECRET of the service refuses, and makes no other secret', async () => {
  vi.stubEnv('PARLEY_SECRET', 'a secret for tests that is long enough')
  await run('gate', 'enable', 'rest', '--json', '--data-dir', home)
  vi.stubEnv('PARLEY_SECRET', undefined)
  for (const words of ['gate list', 'gate enable crm']) {
    await expect(run(...words.split(' '), '--json', '--data-dir', home)).rejects.toThrow(
      `There is no ${join(home, 'secret')}. Set PARLEY_SECRET`,
    )
  }
  expect(existsSync(join(home, 'secret'))).toBe(false)
})

describe('in a data directory without a Parley', () => {
  /** Verbs that are of use before the first start, that call the API, or that open the database in their own way. */
  const others =
    /^(start|serve|work|demo|sandbox|migrate|restore|generate|mcp|events|webhook .*|workspace create|gate (en|dis)able|dispatch off)$/
  const reading = leaves
    .map(([path, command]) => ({ verb: path.replace('parley ', ''), command }))
    .filter(({ verb }) => !others.test(verb))

  test('the verbs that need one are most of them', () => {
    expect(reading.length).toBeGreaterThan(35)
  })

  test.each(reading)('$verb refuses and makes nothing', async ({ verb, command }) => {
    const args = command.registeredArguments.map(() => '1')
    const options = command.options
      .filter(({ mandatory }) => mandatory)
      .flatMap(({ long, argChoices }) => [long ?? '', argChoices?.[0] ?? '1'])
    const missing = join(home, 'missing')
    for (const data_dir of [missing, home]) {
      const refused = run(...verb.split(' '), ...args, ...options, '--data-dir', data_dir)
      await expect(refused).rejects.toThrow(`There is no Parley in ${data_dir}.`)
    }
    expect([existsSync(missing), await readdir(home)]).toEqual([false, []])
  })
})
