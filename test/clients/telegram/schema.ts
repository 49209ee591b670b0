/** The schema of Telegram's API as mtcute ships it: foreign clients get this layer in place of their own, older one. */
import { createRequire } from 'node:module'

export interface Argument {
  readonly name: string
  readonly type: string
  readonly typeModifiers?: { readonly predicate?: string; readonly isVector?: boolean }
}

export interface Entry extends Pick<Argument, 'typeModifiers'> {
  readonly kind: 'class' | 'method'
  readonly name: string
  readonly id: number
  readonly type: string
  readonly generics?: readonly { readonly name: string; readonly type: string }[]
  readonly arguments: readonly Argument[]
}

const schema = createRequire(import.meta.url)('@mtcute/core/tl/api-schema.json') as {
  readonly e: readonly Entry[]
  readonly l: number
}

export const entries = schema.e
export const layer = schema.l

/** Whether a value is to be written for it: flags say the same to the other side. */
export function isGiven({ typeModifiers }: Argument, value: unknown): boolean {
  return typeModifiers?.predicate === undefined || (value !== undefined && value !== false && value !== null)
}

/** The bit of `flags`, or undefined if the argument does not depend on these flags. */
export function bitOf({ typeModifiers }: Argument, flags: string): number | undefined {
  const [name, bit] = typeModifiers?.predicate?.split('.') ?? []
  return name === flags ? Number(bit) : undefined
}

/** In TL's own language, as gramjs reads it. mtcute calls an id that fits a JavaScript number `int53`. */
export function schemaText(): string {
  const classes = entries.filter(({ kind }) => kind === 'class')
  const methods = entries.filter(({ kind }) => kind === 'method')
  return [...classes.map(lineOf), '---functions---', ...methods.map(lineOf)].join('\n')
}

function lineOf(entry: Entry): string {
  const generics = (entry.generics ?? []).map(({ name, type }) => `{${name}:${type}}`)
  const args = entry.arguments.map((each) => `${each.name}:${typeOf(each)}`)
  const head = `${entry.name}#${entry.id.toString(16).padStart(8, '0')}`
  return `${[head, ...generics, ...args].join(' ')} = ${typeOf(entry)};`
}

function typeOf({ type, typeModifiers }: Pick<Argument, 'type' | 'typeModifiers'>): string {
  const one = type === 'int53' ? 'long' : type
  const many = typeModifiers?.isVector ? `Vector<${one}>` : one
  return typeModifiers?.predicate === undefined ? many : `${typeModifiers.predicate}?${many}`
}
