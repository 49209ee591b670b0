/** Passes all parts to the command line. */
import { runProgram } from './cli/program.ts'
import { verbs } from './cli/verb-list.ts'

await runProgram(async () => (await import('./parts.ts')).parts, verbs)
