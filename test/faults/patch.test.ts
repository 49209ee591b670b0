/** Tests of the patches of the fault tests: they change what they name, or end the process. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runParley } from '../harness/process.ts'
import { listMalformed, listMarkers, readSources, repository } from './markers.ts'
import { applyPatches, misfit, type Patch, patchEnv, patchedLine, placePatches } from './patch.ts'

/** A constant of a module that the verbs of a service load. */
const constant = 'limit: from boundary to call'

function help(...patches: readonly Patch[]) {
  return runParley(['start', '--help'], patchEnv(patches))
}

test('changes nothing without a patch', async () => {
  const { code, stdout, stderr } = await help()
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain('Usage: parley')
})

test('replaces a line, still strips types, and reports it', async () => {
  const { code, stdout, stderr } = await help(
    { marker: constant, replace: 'const submitMsMax: number = 7 as number' },
    { marker: constant, insert: "process.stderr.write('it is ' + submitMsMax + '\\n')" },
  )
  expect([code, stderr]).toEqual([0, `${patchedLine(constant).repeat(2)}it is 7\n`])
  expect(stdout).toContain('Usage: parley')
})

test('a patch can end the process at its marker', async () => {
  const { code, stdout } = await help({ marker: constant, insert: "process.kill(process.pid, 'SIGKILL')" })
  expect([code, stdout]).toEqual([null, ''])
})

test('an unknown marker ends the process with a sentence', async () => {
  const { code, stderr } = await help({ marker: 'guard: of nothing', replace: '' })
  expect(code).toBe(misfit)
  expect(stderr).toBe('The patch does not fit: the marker "guard: of nothing" does not occur in src/.\n')
})

const source = [
  '// crash point 1: nothing is done',
  '// guard: first',
  'first()',
  'second() // guard: second',
  'sql`select 1 -- guard: third_clause',
  '  from nothing`',
].join('\n')

test('a marker on its own line marks the next statement, and one at the end of a line marks that line', () => {
  expect(listMarkers('src/a.ts', source).map(({ name, at, marks }) => [name, at, marks])).toEqual([
    ['crash point 1', 0, 2],
    ['guard: first', 1, 2],
    ['guard: second', 3, 3],
    ['guard: third_clause', 4, 4],
  ])
  const patched = applyPatches(source, [
    { marker: 'crash point 1', insert: 'die()' },
    { marker: 'crash point 1', insert: 'really()' },
    { marker: 'guard: first', replace: '' },
    { marker: 'guard: second', insert: 'after()' },
    { marker: 'guard: third_clause', replace: 'sql`select 2' },
  ])
  expect(patched.split('\n')).toEqual([
    '// crash point 1: nothing is done',
    'die()',
    'really()',
    '// guard: first',
    '',
    'second() // guard: second',
    'after()',
    'sql`select 2',
    '  from nothing`',
  ])
})

test('refuses a marker that occurs twice', () => {
  const sources = new Map([
    ['src/a.ts', source],
    ['src/b.ts', 'third() // guard: second'],
  ])
  expect(placePatches(sources, [{ marker: 'guard: second', replace: '' }])).toBe(
    'The patch does not fit: the marker "guard: second" occurs 2 times (src/a.ts, src/b.ts).',
  )
})

test.each([
  '// crash point 5a',
  '// crash point x: words',
  '-- guard: Token',
  '//guard: token',
  "-- guard: x`)'",
])('%s is malformed', (line) => {
  expect(listMalformed(`const a = 1 ${line}\n`)).toHaveLength(1)
})

test('every marker in the shipped source is well-formed, occurs once, and is used by a test; every marker of a test exists', () => {
  const sources = readSources()
  expect([...sources.values()].flatMap(listMalformed)).toEqual([])
  const names = [...sources].flatMap(([file, text]) => listMarkers(file, text)).map(({ name }) => name)
  expect(names.toSorted()).toEqual([...new Set(names)].toSorted())
  const used = globSync('test/**/*.ts', { cwd: repository, exclude: ['test/faults/patch.test.ts'] })
    .map((file) => readFileSync(join(repository, file), 'utf8'))
    .flatMap((text) => [...text.matchAll(/'((?:crash point \d+[a-z]?)|(?:guard|limit): [^'\n]+)'/g)])
    .map(([, name]) => name)
  expect([...new Set(used)].toSorted()).toEqual(names.toSorted())
})
