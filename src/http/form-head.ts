/** Reads the headers of a form's part strictly: refuses what it does not understand, never ignores it. */
import { ApiError, type ErrorCode } from '../lib/errors.ts'
import { isWellFormed, lengthOf, quote } from '../lib/text.ts'

const fileNameMax = 255

export interface Head {
  readonly name: string
  /** As the client wrote it: data, never a path. Undefined if the part is not a file. */
  readonly file_name: string | undefined
  readonly content_type: string | undefined
}

/**
 * Names and parameters are tokens. A value stays as bytes, one character each, until its encoding is known. No expression
 * here can backtrack, so the cost of a long text is linear (`test/parsers.test.ts`).
 */
const token = /^[!#$%&'*+.^_`|~\w-]+$/
const parameter = /[ \t]*;[ \t]*(?:([!#$%&'*+.^_`|~\w-]+)[ \t]*=[ \t]*(?:"((?:[^"\\]|\\.)*)"|([^ \t;"]*)))?/y
const mediaType = /^([!#$&^_.+\w-]{1,127}\/[!#$&^_.+\w-]{1,127})[ \t]*(?:;|$)/

export function parseHead(bytes: Buffer): Head {
  const headers = new Map<string, string>()
  for (const line of bytes.toString('latin1').split('\r\n')) {
    const colon = line.indexOf(':')
    const name = line.slice(0, Math.max(0, colon))
    const value = trimBlanks(line.slice(colon + 1))
    if (!token.test(name) || /[\r\n]/.test(value)) throw invalid('A header of a form part is malformed.')
    if (headers.has(name.toLowerCase()))
      throw invalid(`The header ${quote(name)} of a form part appears twice.`)
    headers.set(name.toLowerCase(), value)
  }
  const { name, file_name } = parseDisposition(headers.get('content-disposition') ?? '')
  const encoding = headers.get('content-transfer-encoding') ?? 'binary'
  if (!/^(binary|[78]bit)$/i.test(encoding)) {
    throw invalid(`${placeOf(name)} must be sent as it is, not in the encoding ${quote(encoding)}.`)
  }
  return { name, file_name, content_type: headers.get('content-type') }
}

/** Without surrounding spaces and tabs. */
function trimBlanks(text: string): string {
  let [start, end] = [0, text.length]
  while (start < end && ' \t'.includes(text.charAt(start))) start++
  while (end > start && ' \t'.includes(text.charAt(end - 1))) end--
  return text.slice(start, end)
}

function parseDisposition(value: string): Pick<Head, 'name' | 'file_name'> {
  const parameters = /^form-data[ \t]*(;|$)/i.test(value) ? parseParameters(value) : undefined
  const name = parameters?.get('name')
  if (!parameters || name === undefined) {
    throw invalid('A form part has no Content-Disposition with the name of its field.')
  }
  const field = decodeText(name, "A field's name")
  const plain = parameters.get('filename')
  const extended = parameters.get('filename*')
  if (plain === undefined && extended === undefined) return { name: field, file_name: undefined }
  const where = `The file name in ${placeOf(field)}`
  const file_name = decodeText(extended === undefined ? (plain ?? '') : decodePercent(extended, where), where)
  if (lengthOf(file_name) > fileNameMax) throw invalid(`${where} has more than ${fileNameMax} characters.`)
  return { name: field, file_name }
}

/** The parameters after the first `;`, or undefined if they are malformed. */
export function parseParameters(value: string): Map<string, string> | undefined {
  const parameters = new Map<string, string>()
  const first = value.indexOf(';')
  if (first < 0) return parameters
  parameter.lastIndex = first
  while (parameter.lastIndex < value.length) {
    const match = parameter.exec(value)
    if (!match) return undefined
    const [, name, quoted, bare] = match
    if (name === undefined) continue
    if (parameters.has(name.toLowerCase())) return undefined
    // A backslash before any other character stays, as in `C:\x`.
    parameters.set(name.toLowerCase(), quoted?.replaceAll(/\\(["\\])/g, '$1') ?? bare ?? '')
  }
  return parameters
}

/** The media type of a file without its parameters, in lower case. */
export function parseMediaType(value: string): string {
  const [, essence] = mediaType.exec(value) ?? []
  if (essence === undefined || !parseParameters(value)) {
    throw new ApiError('unsupported_attachment', {
      detail: `The media type ${quote(value)} of attachments is malformed.`,
    })
  }
  return essence.toLowerCase()
}

/** Decodes a string of bytes, one character each, into text. `where` begins the error sentence. */
export function decodeText(bytes: string | Buffer, where: string): string {
  let text: string
  try {
    const whole = typeof bytes === 'string' ? Buffer.from(bytes, 'latin1') : bytes
    text = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(whole)
  } catch {
    throw invalid(`${where} is not valid UTF-8.`, 'invalid_text')
  }
  if (!isWellFormed(text)) throw invalid(`${where} contains a NUL character.`, 'invalid_text')
  return text
}

/** `UTF-8''na%C3%AFve.txt`, the format of RFC 5987. */
function decodePercent(value: string, where: string): string {
  const [, encoded] = /^utf-8'[^']*'((?:[^%]|%[0-9a-f]{2})*)$/i.exec(value) ?? []
  if (encoded === undefined) throw invalid(`${where} is malformed: filename* must begin with UTF-8''.`)
  return encoded.replaceAll(/%(..)/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16)))
}

/** A known field by its name, any other in quotes. */
export function placeOf(name: string): string {
  return /^\w{1,60}$/.test(name) ? name : quote(name)
}

export function invalid(detail: string, code: ErrorCode = 'invalid_request'): ApiError {
  return new ApiError(code, { detail })
}
