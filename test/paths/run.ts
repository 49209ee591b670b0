/**
 * Finds paths in comments and documents that do not exist: a reader who follows one must find a file. `npm run check` runs it.
 * A path is right if a file of the repository has it, or ends with it: ARCHITECTURE.md writes `http/doors.ts`, a comment `doors.ts`.
 * Exit 1: it printed some.
 */
import { execFileSync } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { findMissing } from './named-paths.ts'

const root = join(import.meta.dirname, '..', '..')
// New files too, before they are added.
const listed = execFileSync('git', ['ls-files', '--cached', '--others', '--exclude-standard', '-z'], {
  cwd: root,
})
const files = listed
  .toString()
  .split('\0')
  .filter((file) => file !== '' && existsSync(join(root, file)))
const missing = findMissing(files, (file) => readFileSync(join(root, file), 'utf8'))
for (const { file, line, path } of missing)
  process.stdout.write(`${file}:${line} names ${path}, which does not exist.\n`)
process.exitCode = missing.length > 0 ? 1 : 0
