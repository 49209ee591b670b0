/** Tests of the edits themselves: one that no longer fits must not look like a guard that no test notices. */
import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { expect, test } from 'vitest'
import { repository } from '../faults/markers.ts'
import { mutants } from './mutants.ts'
import { listDefinitions, patchDefinition } from './sql-functions.ts'

const schema = readFileSync(join(repository, 'src', 'db', 'schema.sql'), 'utf8')

test('every edit of a function fits its present definition, and changes it', () => {
  const definitions = listDefinitions(schema)
  const edits = mutants.flatMap(({ functions = [] }) => functions)
  expect(edits.length).toBeGreaterThan(20)
  for (const edit of edits) {
    const [definition = '', ...others] = definitions.get(edit.function) ?? []
    expect(others, edit.function).toEqual([])
    expect(patchDefinition(definition, edit)).not.toBe(definition)
  }
})

test('an edit that does not fit is refused with a sentence', () => {
  const edit = { function: 'f', text: 'and b', replace: '' }
  expect(() => patchDefinition('select a', edit)).toThrow('the function f has "and b" 0 times')
  expect(() => patchDefinition('select a and b and b', edit)).toThrow('the function f has "and b" 2 times')
})

test('every test that a mutant names is in its file', () => {
  const sources = new Map<string, string>()
  const gone = mutants.flatMap(({ file, test: named, still }) => {
    const source = sources.get(file) ?? withImports(file)
    sources.set(file, source)
    const titles = titlesIn(source)
    return [named, ...(still ? [still] : [])]
      .filter((name) => !titles.some((title) => title.test(name)))
      .map((name) => `${file}: ${name}`)
  })
  expect(gone).toEqual([])
})

/** A test's file, and the files of tests that it imports: suites of adapters have their titles there. */
function withImports(file: string): string {
  const source = readFileSync(join(repository, file), 'utf8')
  const beside = [...source.matchAll(/from '(\.{1,2}\/[^']+)'/g)]
    .map(([, path = '']) => join(dirname(file), path))
    .filter((path) => /(^|\/)conformance/.test(path))
  return [source, ...beside.map(withImports)].join('\n')
}

/** What the end of a test's name must match: a text of the source, whose values may be anything. */
function titlesIn(source: string): RegExp[] {
  // A test for each of a list may have no title but the word.
  const oneEach = source.includes("('%s'") ? '( [a-z_]+)?' : ''
  const texts = source.matchAll(/'((?:[^'\\\n]|\\.)+)'|"((?:[^"\\\n]|\\.)+)"|`((?:[^`\\]|\\.)+)`/g)
  return [...new Set([...texts].map(([, one, other, template]) => one ?? other ?? template ?? ''))]
    .map((text) => text.replace(/\\(.)/g, '$1').split(/\$\{[^}]*\}|\$[a-z_]+|%[sdij#]/))
    .filter((parts) => parts.join('').length >= 3)
    .map((parts) => new RegExp(`(^| )${parts.map(escaped).join('.*')}${oneEach}$`, 's'))
}

const escaped = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&')
