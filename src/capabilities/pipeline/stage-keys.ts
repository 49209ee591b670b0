/** Keys of stages, by which the API names them. A key never changes. */
import { ApiError } from '../../lib/errors.ts'

const keyMax = 64

export function requireStageKey(key: string): void {
  if (/^[a-z0-9][a-z0-9_-]{0,63}$/.test(key)) return
  throw new ApiError('invalid_request', {
    detail:
      'A stage needs a key of 1 to 64 lower-case letters, digits, dashes and underscores, such as in-talks.',
  })
}

/** A key that no stage has yet, made of the Latin letters and digits of the label: `In talks` becomes `in-talks`. */
export function freeStageKey(label: string, taken: readonly string[]): string {
  const words = label
    .normalize('NFKD')
    .replaceAll(/\p{M}/gu, '')
    .toLowerCase()
    .match(/[a-z0-9]+/g) ?? ['stage']
  const base = words.join('-').slice(0, keyMax - 4)
  for (let n = 1; ; n++) {
    const key = n === 1 ? base : `${base}-${n}`
    if (!taken.includes(key)) return key
  }
}
