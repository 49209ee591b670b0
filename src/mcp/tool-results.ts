/** The result of a call: one object, as structured content and as the same JSON in text, never longer than an agent can read. */
import type { CallToolResult } from '@modelcontextprotocol/server'
import { ApiError } from '../lib/errors.ts'
import { Json } from '../route.ts'

type Fields = Record<string, unknown>

export interface ToolResult extends CallToolResult {
  structuredContent: Fields
}

/** Bytes of both forms together, including their envelope. Agents have little context, and pay for all of it. */
const resultBytesMax = 100_000
const surroundingBytes = 500

export function resultOf(text: string): ToolResult {
  return { content: [{ type: 'text', text }], structuredContent: JSON.parse(text) }
}

/** The JSON of an answer. No route that a tool calls answers with a stream. */
export function textOf(body: unknown): string {
  return body instanceof Json ? body.text : JSON.stringify(body)
}

/** Returns a refusal as a result, so that an agent can read it. */
export function refusalOf(fields: Fields): ToolResult {
  return { ...resultOf(cutToFit(JSON.stringify({ ok: false, ...fields }))), isError: true }
}

export function fieldsOfError({ code, message, retry_after }: ApiError): Fields {
  return { code, error: message, ...(retry_after !== undefined && { retry_after }) }
}

/** Whether a JSON text fits: once as it is, and once more as a string inside JSON. */
export function fits(text: string): boolean {
  return Buffer.byteLength(text) + Buffer.byteLength(JSON.stringify(text)) + surroundingBytes < resultBytesMax
}

/** Halves the longest text or list until the answer fits, and sets `truncated`. */
export function cutToFit(text: string): string {
  if (fits(text)) return text
  const value: Fields = { ...JSON.parse(text), truncated: true }
  for (let shorter = JSON.stringify(value); ; shorter = JSON.stringify(value)) {
    if (fits(shorter)) return shorter
    halve(findLongest(value))
  }
}

/** A text of one character with its quotes: nothing shorter can be cut, so cutting ends. */
const shortestCut = 3

/** Where a cuttable value is, and how long it is as JSON. */
interface CuttableValue {
  readonly holder: Record<string | number, unknown>
  readonly key: string | number
  readonly length: number
}

/** The longest text or list, whichever is longer; inside a list of one, its item. */
function findLongest(root: unknown): CuttableValue {
  let longest: CuttableValue | undefined
  const visit = (holder: CuttableValue['holder'], key: string | number): void => {
    const value = holder[key]
    const cuttable = typeof value === 'string' || (Array.isArray(value) && value.length > 1)
    const length = cuttable ? JSON.stringify(value).length : 0
    if (length > (longest?.length ?? shortestCut)) longest = { holder, key, length }
    if (typeof value !== 'object' || value === null) return
    for (const name of Object.keys(value))
      visit(value as CuttableValue['holder'], Array.isArray(value) ? Number(name) : name)
  }
  visit({ root } as CuttableValue['holder'], 'root')
  if (!longest)
    throw new ApiError('internal', { cause: new Error('An answer without texts and lists is too long.') })
  return longest
}

function halve({ holder, key }: CuttableValue): void {
  const value = holder[key]
  if (Array.isArray(value)) {
    holder[key] = value.slice(0, Math.ceil(value.length / 2))
  } else {
    // Do not split a surrogate pair.
    holder[key] = String(value)
      .slice(0, String(value).length >> 1)
      .toWellFormed()
      .replace(/\uFFFD$/, '')
  }
}
