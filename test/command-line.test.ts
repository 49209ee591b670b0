/** The help of every verb, walked as a tree, and what a start tells the person in front of it. */
import type { Command } from 'commander'
import { describe, expect, test } from 'vitest'
import { makeProgram } from '../src/cli/program.ts'
import { verbs } from '../src/cli/verb-list.ts'

const parts = {
  routes: [],
  people: { workspaceRoutes: [], ownRoutes: [] },
  operations: [],
  loops: [],
  platforms: [],
  migrations: [],
}
const program = makeProgram(parts, verbs)

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
