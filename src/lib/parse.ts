/** Parses input against a schema; an error is a sentence that names the place. */
import { z } from 'zod'
import { ApiError, type ErrorCode } from './errors.ts'
import { nearest } from './nearest.ts'
import { nameOf, quote, requireWellFormed } from './text.ts'

/** Throws where the schema refuses. `malformed` replaces the usual 400. */
export function parse<T>(schema: z.ZodType<T> | undefined, value: unknown, malformed?: ErrorCode): T {
  requireWellFormed(value)
  if (!schema) return undefined as T
  const given = upToFirstFault(schema, value) // guard: a long list is read up to its first fault
  const parsed = schema.safeParse(given, { reportInput: true })
  if (parsed.success) return parsed.data
  if (malformed) throw new ApiError(malformed)
  const { issues } = parsed.error
  // A misspelt property also counts as missing under its right name: reporting the misspelling helps more.
  const issue = issues.find(({ code }) => code === 'unrecognized_keys') ?? issues[0]
  throw new ApiError('invalid_request', issue && { detail: sentenceOf(issue, namesOf(schema)) })
}

/** All faults of a shorter list are found in a millisecond. */
const longItems = 100

/**
 * The schema finds every fault of every item, and a list of 5,000 odd objects has many: up to 150 ms for a refusal that names
 * one. So a long list ends with its first item that has a fault. If it has none, its items are checked twice, for 4 ms.
 */
function upToFirstFault(schema: z.ZodType, value: unknown): unknown {
  if (!(schema instanceof z.ZodObject) || typeof value !== 'object' || value === null) return value
  let cut: unknown = value
  for (const [name, items] of Object.entries(value)) {
    const list = listOf(schema.shape[name])
    if (!list || !Array.isArray(items) || items.length <= longItems) continue
    const at = items.findIndex((item) => !z.safeParse(list.element, item).success)
    if (at >= 0) cut = { ...(cut as object), [name]: items.slice(0, at + 1) }
  }
  return cut
}

function listOf(schema: unknown): z.ZodArray | undefined {
  if (schema instanceof z.ZodOptional || schema instanceof z.ZodDefault) return listOf(schema.unwrap())
  return schema instanceof z.ZodArray ? schema : undefined
}

/** Parses a query string. Refuses a parameter that the schema does not know, even without a schema. */
export function parseQuery<T>(schema: z.ZodType<T> | undefined, value: Readonly<Record<string, unknown>>): T {
  requireWellFormed(value)
  const known = namesOf(schema)
  const unknown = Object.keys(value).filter((name) => !known.includes(name))
  if (unknown.length > 0) {
    const detail = unknownSentence('query parameter', unknown, known)
    throw new ApiError('invalid_request', { detail })
  }
  return parse(schema, value)
}

/** The properties of an object. */
function namesOf(schema: z.ZodType | undefined): string[] {
  return Object.keys((schema as { shape?: object } | undefined)?.shape ?? {})
}

/** `known` are the top-level names, where most mistakes happen. */
function sentenceOf(issue: z.core.$ZodIssue, known: readonly string[]): string {
  const where = nameOf(issue.path)
  if (issue.code === 'unrecognized_keys') {
    return where
      ? unknownSentence('property', issue.keys, [], ` in ${where}`)
      : unknownSentence('property', issue.keys, known)
  }
  const what = problemOf(issue)
  return where ? `${where} ${what}.` : `The body ${what}.`
}

function unknownSentence(
  what: string,
  unknown: readonly string[],
  known: readonly string[],
  inside = '',
): string {
  const named = unknown.slice(0, 10).map((name) => ({ name: quote(name), meant: nearest(name, known) }))
  const [first] = named
  if (first && unknown.length === 1) {
    const question = first.meant ? ` Did you mean ${first.meant}?` : ''
    return `Unknown ${what}${inside}: ${first.name}.${question}`
  }
  const plural = what.endsWith('y') ? `${what.slice(0, -1)}ies` : `${what}s`
  const names = named.map(({ name, meant }) => (meant ? `${name} (did you mean ${meant}?)` : name))
  return `Unknown ${plural}${inside}: ${names.join(', ')}.`
}

/** Zod's own words are for programmers; ours continue the name of the property. A schema's own message stays. */
function problemOf(issue: z.core.$ZodIssue): string {
  if (!/^(Invalid|Too|Unrecognized)/.test(issue.message)) return issue.message
  switch (issue.code) {
    case 'invalid_type':
      return typeProblem(issue)
    case 'too_small':
      return issue.origin === 'string' || issue.origin === 'array'
        ? `must have at least ${issue.minimum} ${issue.origin === 'array' ? 'items' : 'characters'}`
        : `must be at least ${issue.minimum}`
    case 'too_big':
      return issue.origin === 'string' || issue.origin === 'array'
        ? `must have at most ${issue.maximum} ${issue.origin === 'array' ? 'items' : 'characters'}`
        : `must be at most ${issue.maximum}`
    case 'invalid_value':
      return `must be one of ${issue.values.slice(0, 20).map(String).join(', ')}`
    default:
      return 'is not valid'
  }
}

function typeProblem(issue: z.core.$ZodIssueInvalidType): string {
  if (issue.input === undefined) return 'is required'
  if (Array.isArray(issue.input) && issue.expected === 'string') return 'must be one string, given once'
  const expected = issue.expected === 'int' ? 'whole number' : issue.expected
  return `must be ${/^[aeiou]/.test(expected) ? 'an' : 'a'} ${expected}`
}
