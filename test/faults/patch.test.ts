/** The patches of the fault tests themselves: they change what they name, or end the process. */
import { expect, test } from 'vitest'
import { runParley } from '../harness/process.ts'
import { misfit, type Patch, patchEnv, patchedLine } from './patch.ts'

const version = { file: 'src/main.ts', find: "new Command('parley')", replace: "new Command('changed')" }

function help(...patches: readonly Patch[]) {
  return runParley(['--help'], patchEnv(patches))
}

test('without a patch nothing is changed', async () => {
  const { code, stdout, stderr } = await help()
  expect([code, stderr]).toEqual([0, ''])
  expect(stdout).toContain('Usage: parley')
})

test('a snippet is replaced, types are still stripped, and it is said', async () => {
  const typed = "const name: string = 'typed' as string\nconst program"
  const { code, stdout, stderr } = await help(
    { file: 'src/main.ts', find: 'const program', replace: typed },
    { ...version, replace: 'new Command(name)' },
  )
  expect([code, stderr]).toEqual([0, patchedLine('src/main.ts').repeat(2)])
  expect(stdout).toContain('Usage: typed')
})

test('a patch can end the process where it stands', async () => {
  const { code, stdout } = await help({
    file: 'src/cli/admin.ts',
    find: 'export function addAdminVerbs(',
    replace: "process.kill(process.pid, 'SIGKILL')\nexport function addAdminVerbs(",
  })
  expect([code, stdout]).toEqual([null, ''])
})

test.each([
  ['is not there', 'no such snippet', /does not occur in src\/main\.ts/],
  ['is there more than once', 'program', /occurs \d+ times in src\/main\.ts/],
])('a snippet that %s ends the process with a sentence', async (_, find, sentence) => {
  const { code, stderr } = await help({ file: 'src/main.ts', find, replace: '' })
  expect(code).toBe(misfit)
  expect(stderr).toMatch(sentence)
})
