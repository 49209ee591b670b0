/** Tests of the edits themselves: one that no longer fits must not look like a guard that no test notices. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
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
