/**
 * For `node --import test/faults/patch.ts bin/main.js …`: changes our own sources at their markers (`markers.ts`) as
 * they are loaded, so that crash points and deliberate bugs are patches of the shipped code and the product needs no
 * switch for them.
 *
 *   TEST_PATCH='[{"marker":"crash point 5a","insert":"process.kill(…)"},{"marker":"guard: deadline","replace":""}]'
 *
 * A marker must occur exactly once in src/. Otherwise the process exits with 97 and a sentence: a patch that no longer
 * applies must never look like a test that passed.
 */
import { registerHooks } from 'node:module'
import { pathToFileURL } from 'node:url'
import { listMarkers, type Marker, readSources, repository } from './markers.ts'

export type Patch = {
  readonly marker: string
} & (
  | {
      /** Inserted after the marker's line. Several patches of one marker keep their order. */
      readonly insert: string
    }
  | {
      /** Replaces the marked line; an empty text removes it. */
      readonly replace: string
    }
)

export const misfit = 97
/** Written to standard error when a file with the marker has been patched. */
export const patchedLine = (name: string) => `patched ${name}\n`

/** The environment that makes a `parley` process load patched sources. */
export function patchEnv(patches: readonly Patch[]): Record<string, string> {
  if (patches.length === 0) return {}
  return {
    NODE_OPTIONS: `--import ${pathToFileURL(import.meta.filename).href}`,
    TEST_PATCH: JSON.stringify(patches),
  }
}

/** The file that each patch changes; a string says why one of them does not apply. */
export function placePatches(
  sources: ReadonlyMap<string, string>,
  patches: readonly Patch[],
): Map<string, Patch[]> | string {
  const markers = [...sources].flatMap(([file, text]) => listMarkers(file, text))
  const placed = new Map<string, Patch[]>()
  for (const patch of patches) {
    const [first, ...others] = markers.filter(({ name }) => name === patch.marker)
    const name = JSON.stringify(patch.marker)
    if (!first) return `The patch does not fit: the marker ${name} does not occur in src/.`
    if (others.length > 0) {
      const files = [first, ...others].map(({ file }) => file).join(', ')
      return `The patch does not fit: the marker ${name} occurs ${others.length + 1} times (${files}).`
    }
    placed.set(first.file, [...(placed.get(first.file) ?? []), patch])
  }
  return placed
}

/** The text of one file with its patches, all of which apply. */
export function applyPatches(text: string, patches: readonly Patch[]): string {
  const lines: string[][] = text.split('\n').map((line) => [line])
  const markers = new Map(listMarkers('', text).map((marker): [string, Marker] => [marker.name, marker]))
  for (const patch of patches) {
    const marker = markers.get(patch.marker)
    if (!marker) continue
    if ('insert' in patch) lines[marker.at]?.push(patch.insert)
    else lines[marker.marks]?.splice(0, 1, patch.replace)
  }
  return lines.flat().join('\n')
}

function install(patches: readonly Patch[]): void {
  const placed = placePatches(readSources(), patches)
  if (typeof placed === 'string') {
    process.stderr.write(`${placed}\n`)
    process.exit(misfit)
  }
  const root = pathToFileURL(`${repository}/`).href
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      const wanted = url.startsWith(root) ? placed.get(url.slice(root.length)) : undefined
      if (!wanted) return loaded
      for (const { marker } of wanted) process.stderr.write(patchedLine(marker))
      return { ...loaded, source: applyPatches(textOf(loaded.source), wanted) }
    },
  })
}

function textOf(source: unknown): string {
  if (typeof source === 'string') return source
  if (source instanceof Uint8Array) return Buffer.from(source).toString('utf8')
  throw new Error('The source of a file that is to be changed was not loaded.')
}

if (process.env.TEST_PATCH) install(JSON.parse(process.env.TEST_PATCH))
