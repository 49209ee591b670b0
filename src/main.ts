/**
 * Passes all parts to the command line. Keeps compiled code beside the dependencies, which need the same rights to change
 * as the program: every start but the first is half a second shorter. Keeps nothing where it cannot write.
 */
import { enableCompileCache } from 'node:module'
import { join } from 'node:path'

enableCompileCache(join(import.meta.dirname, '..', 'node_modules', '.cache', 'parley'))

// Imported dynamically, because static imports are compiled before this line.
const { runProgram } = await import('./cli/program.ts')
const { verbs } = await import('./cli/verb-list.ts')

await runProgram(async () => (await import('./parts.ts')).parts, verbs)
