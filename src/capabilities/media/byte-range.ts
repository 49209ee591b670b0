/** The part of a file that a request asks for (RFC 9110, section 14). */

/** Both ends are included. */
export interface ByteRange {
  readonly start: number
  readonly end: number
}

/** Null: the whole file, also where the header is malformed or names several ranges. `none`: the file has no such bytes. */
export function findRange(header: string | undefined, size: number): ByteRange | null | 'none' {
  const [, first, last] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(header ?? '') ?? []
  if (first === undefined || last === undefined || first + last === '') return null
  if (first === '') {
    const count = Math.min(Number(last), size)
    return count === 0 ? 'none' : { start: size - count, end: size - 1 }
  }
  const start = Number(first)
  const end = last === '' ? size - 1 : Math.min(Number(last), size - 1)
  if (last !== '' && Number(last) < start) return null
  return start < size ? { start, end } : 'none'
}
