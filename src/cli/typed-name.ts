/** How a person runs the command line, for sentences that show a command. */
import { sep } from 'node:path'

/**
 * Installed with npm, `parley` is in PATH. In a checkout and in the image it is a file: `npx parley` would start npm first, which takes
 * six times as long, and outside of a checkout would run another package of that name.
 */
export const typedName = import.meta.dirname.split(sep).includes('node_modules') ? 'parley' : 'bin/parley.js'
