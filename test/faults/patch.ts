/**
 * For `node --import test/faults/patch.ts src/main.ts …`: changes snippets of our own sources as they are loaded, so
 * that crash points and deliberate bugs are patches of the shipped code and the product needs no switch for them.
 *
 *   TEST_PATCH='[{"file":"src/worker/execute.ts","find":"await journal(","replace":"process.kill(…); await journal("}]'
 *
 * `find` must occur exactly once in what the file is at that moment: patches of one file are applied in order. If
 * not, the process ends with 97 and a sentence: a patch that no longer fits must never look like a test that passed.
 */
import { registerHooks } from 'node:module'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

export interface Patch {
  /** From the root of the repository, with forward slashes. */
  readonly file: string
  readonly find: string
  readonly replace: string
}

export const misfit = 97
/** What is written to standard error when a file has been changed. */
export const patchedLine = (file: string) => `patched ${file}\n`

/** The environment that makes a `parley` process load its sources changed. */
export function patchEnv(patches: readonly Patch[]): Record<string, string> {
  if (patches.length === 0) return {}
  return {
    NODE_OPTIONS: `--import ${pathToFileURL(import.meta.filename).href}`,
    TEST_PATCH: JSON.stringify(patches),
  }
}

const root = pathToFileURL(join(import.meta.dirname, '..', '..', '/')).href

function install(patches: readonly Patch[]): void {
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      const wanted = patches.filter(({ file }) => url === `${root}${file}`)
      if (wanted.length === 0) return loaded
      return { ...loaded, source: wanted.reduce(apply, textOf(loaded.source)) }
    },
  })
}

function apply(text: string, { file, find, replace }: Patch): string {
  const parts = text.split(find)
  if (parts.length !== 2) {
    const times = parts.length === 1 ? 'does not occur' : `occurs ${parts.length - 1} times`
    process.stderr.write(`The patch does not fit: ${JSON.stringify(find)} ${times} in ${file}.\n`)
    process.exit(misfit)
  }
  process.stderr.write(patchedLine(file))
  return parts.join(replace)
}

function textOf(source: unknown): string {
  if (typeof source === 'string') return source
  if (source instanceof Uint8Array) return Buffer.from(source).toString('utf8')
  throw new Error('The source of a file that is to be changed was not loaded.')
}

if (process.env.TEST_PATCH) install(JSON.parse(process.env.TEST_PATCH))
