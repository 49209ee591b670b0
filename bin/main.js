// Runs the command line on this Node. Compiled code is kept beside the dependencies, which whoever may change the program may
// change as well: every start but the first is half a second shorter. Where nothing can be written, nothing is kept.
import { existsSync } from 'node:fs'
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'
import { setFlagsFromString } from 'node:v8'

// On a machine with much memory V8 lets 100 to 200 MB of garbage lie before it collects, and several processes on one machine
// take them several times. What lives is about 50 MB, so collecting sooner costs little. The other half of this, the space for
// young objects (`--max-semi-space-size`), is set where Node is started.
setFlagsFromString('--heap-growing-percent=40')

enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/parley', import.meta.url)))

// Imported after that, and from JavaScript: the first TypeScript file that is not kept loads the compiler. The archive of
// `npm pack` has the same files without their types.
const isCheckout = existsSync(new URL('../src/main.ts', import.meta.url))
await import(isCheckout ? '../src/main.ts' : '../src/main.js')
