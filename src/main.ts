/**
 * Hands everything there is to the command line. Compiled code is kept beside the dependencies, which whoever may change
 * the program may change as well: every start but the first is half a second shorter. Where nothing can be written, nothing
 * is kept.
 */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'parley'))

// Imported after that, because what is imported by a statement is compiled before.
const { runProgram } = await import('./cli/program.ts')
const { verbs } = await import('./cli/verb-list.ts')

await runProgram(async () => (await import('./parts.ts')).parts, verbs)
