/**
 * Markers: comments in the shipped source that name a place for the fault tests, so that code can move between files
 * and lines without any test knowing.
 *
 *   // crash point 5a: the journal is written, nothing is submitted      a place, with a sentence on what holds there
 *   where id = ${id} -- guard: token of a release                        a line that keeps a promise
 *   const submitMsMax = 10_000 // limit: from boundary to call           a constant that tests make smaller
 *
 * A marker at the end of a line marks that line. On its own line it marks the next line that is not a comment. In SQL a
 * marked line is never the last of its template: what follows on the same line would be part of the comment.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

export interface Marker {
  /** As `crash point 5a` or `guard: token of a release`. */
  readonly name: string
  /** From the root of the repository, with forward slashes. */
  readonly file: string
  /** Both count from 0: the marker's own line, and the line that it marks. */
  readonly at: number
  readonly marks: number
}

export const repository = join(import.meta.dirname, '..', '..')

const marker =
  /(?:\/\/|--) (crash point \d+[a-z]?(?=: \S)|(?:guard|limit): [a-z][a-z0-9_]*(?: [a-z0-9_]+)*(?=$))/
const attempt = /(?:\/\/|--)\s*(?:crash point\b|(?:guard|limit):)/i
const comment = /^\s*(?:\/\/|--)/

export function listMarkers(file: string, text: string): Marker[] {
  const lines = text.split('\n')
  return lines.flatMap((line, at) => {
    const name = marker.exec(line)?.[1]
    if (name === undefined) return []
    let marks = at
    while (comment.test(lines[marks] ?? '')) marks++
    return [{ name, file, at, marks }]
  })
}

/** Lines that look like a marker but are not one. */
export function listMalformed(text: string): string[] {
  return text.split('\n').filter((line) => attempt.test(line) && !marker.test(line))
}

/** The shipped sources by path, those of the dashboard among them, and the data centre that judges one of them. */
export function readSources(): Map<string, string> {
  const files = globSync('{src,web/src,test/platform/mtproto}/**/*.{ts,tsx}', { cwd: repository }).filter(
    (file) => !file.endsWith('.test.ts'),
  )
  return new Map(files.map((file) => [file, readFileSync(join(repository, file), 'utf8')]))
}
