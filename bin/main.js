// Runs the command line on this Node. Compiled code is kept beside the dependencies, which whoever may change the program may
// change as well: every start but the first is half a second shorter. Where nothing can be written, nothing is kept.
import { enableCompileCache } from 'node:module'
import { fileURLToPath } from 'node:url'

enableCompileCache(fileURLToPath(new URL('../node_modules/.cache/parley', import.meta.url)))

// Imported after that, and from JavaScript: the first TypeScript file that is not kept loads the compiler.
await import('../src/main.ts')
