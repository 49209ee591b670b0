/**
 * What `npm pack` adds to a checkout, and `--undo` removes again: the lock file under the name that npm packs, and JavaScript in
 * place of the TypeScript of `src`, because Node strips no types below `node_modules`. Types become spaces, so lines and columns
 * of an error are those of the source.
 */
import { copyFileSync, existsSync, globSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { stripTypeScriptTypes } from 'node:module'
import { dirname, join } from 'node:path'

const root = import.meta.dirname
const lock = join(root, 'npm-shrinkwrap.json')
const sources = globSync('src/**/*.ts', { cwd: root, exclude: ['**/*.test.ts'] }).map((file) =>
  join(root, file),
)
const packedName = (source: string) => source.replace(/\.ts$/, '.js')

if (process.argv.includes('--undo')) {
  rmSync(lock, { force: true })
  for (const source of sources) rmSync(packedName(source), { force: true })
} else {
  // The warning says that the function is experimental. Node's own loader uses the same.
  process.removeAllListeners('warning')
  copyFileSync(join(root, 'package-lock.json'), lock)
  for (const source of sources) writeFileSync(packedName(source), javascriptOf(source))
}

/** Imports and threads name files of `src` relative to their own; these have another name in the archive. */
function javascriptOf(source: string): string {
  const text = stripTypeScriptTypes(readFileSync(source, 'utf8'))
  return text.replaceAll(/(?<=')(\.{1,2}\/[\w./-]+)\.ts(?=')/g, (named) => {
    if (!existsSync(join(dirname(source), named)))
      throw new Error(`${source} names ${named}, which does not exist.`)
    return packedName(named)
  })
}
