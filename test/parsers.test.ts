/**
 * Parsers of untrusted text take time proportional to its length. Eight times the text may cost sixteen times as
 * much; a parser that backtracks costs sixty-four times as much.
 */
import type { IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { looksLikeKey } from '../src/access/keys.ts'
import { findProblem } from '../src/capabilities/columns/value-rules.ts'
import { readBefore } from '../src/capabilities/messages/message-pages.ts'
import { excerptOf } from '../src/capabilities/search/excerpt.ts'
import { parseQuery } from '../src/capabilities/search/query-words.ts'
import { toEntry } from '../src/capabilities/suppressions/entries.ts'
import { isOptOut } from '../src/capabilities/suppressions/opt-out.ts'
import { hideSecrets } from '../src/http/base.ts'
import { readBody } from '../src/http/body.ts'
import { findForeignHost, findIndirect } from '../src/http/direct.ts'
import { parseHead, parseMediaType, parseParameters } from '../src/http/form-head.ts'
import { isForm } from '../src/http/multipart.ts'
import { readIdempotencyKey } from '../src/ledger/idempotency.ts'
import { parseCsv } from '../src/lib/csv.ts'
import { readCursor } from '../src/lib/cursor.ts'
import { isUuid } from '../src/lib/ids.ts'
import { Secrets } from '../src/lib/secrets.ts'
import { chatId, parseTime } from '../src/lib/shapes.ts'
import { parseJson, quote, toWellFormed } from '../src/lib/text.ts'
import { phraseOf, prefixPhrases, tokenise } from '../src/lib/tokens.ts'
import { parseIdentifier, phoneDigits } from '../src/rules/identifier.ts'

const secrets = new Secrets('a secret for tests that is long enough')
const scope = { workspace_id: '0199a1f0-0000-7000-8000-000000000001', operation: 'list_chats', filters: {} }
const raw = (headers: Record<string, string>, url = '/') => ({ headers, url }) as unknown as IncomingMessage
const sender = { source: 'test', onEnd: () => {} }
const words = ['stop', 'keine nachrichten mehr']
const phrase = phraseOf('needle', { prefix: true })

type Parser = (text: string) => unknown
const parsers: Readonly<Record<string, Parser>> = {
  'the headers of a part': (text) => parseHead(Buffer.from(text, 'latin1')),
  'a header of a part': (text) => parseHead(Buffer.from(`Content-Disposition: ${text}`, 'latin1')),
  'the name of a file': (text) =>
    parseHead(Buffer.from(`Content-Disposition: form-data; name=a; filename*=utf-8''${text}`, 'latin1')),
  'the parameters of a media type': (text) => parseParameters(`multipart/form-data;${text}`),
  'a media type': parseMediaType,
  'whether it is a form': (text) => isForm(raw({ 'content-type': text })),
  'a content type': (text) => readBody(raw({ 'content-type': text }), { method: 'POST', body: {} }, sender),
  'a body where none is taken': (text) =>
    readBody(Object.assign(Readable.from([Buffer.from(text)]), raw({})), { method: 'POST' }, sender),
  'a path for the log': hideSecrets,
  'whose host it is': (text) => findForeignHost(raw({ host: text })),
  'a way through proxies': (text) => findIndirect(raw({ [text]: '' }, `/${text}`)),
  'an identifier': parseIdentifier,
  'a phone number': phoneDigits,
  'a suppression': (text) => toEntry('phone', text),
  'a time': parseTime,
  'a place in a history': readBefore,
  'a cursor': (text) => readCursor(secrets, scope, text),
  'a chat id': (text) => chatId.safeParse(text),
  'a uuid': isUuid,
  'an idempotency key': (text) => readIdempotencyKey([text]),
  'an API key': looksLikeKey,
  'words of a text': tokenise,
  'words of a prefix': prefixPhrases,
  'a query': parseQuery,
  'an excerpt': (text) => excerptOf(text, [phrase]),
  'an opt-out': (text) => isOptOut(words, text),
  'an address in a column': (text) => findProblem('url', [text], []),
  'a number in a column': (text) => findProblem('number', [text], []),
  'a quoted name': quote,
  'sound text': toWellFormed,
  'a JSON body': (text) => parseJson(Buffer.from(text)),
  'a JSON string': (text) => parseJson(Buffer.from(JSON.stringify({ text }))),
  'a table': async (text) => {
    for await (const rows of parseCsv([text])) {
      for (const row of rows) if (row.line < 0) throw new Error('There is no such line.')
    }
  },
}

/** Texts that make backtracking parsers slow: long runs of one thing, with an end that does not match. */
const texts: Readonly<Record<string, (length: number) => string>> = {
  spaces: (n) => `a:${' '.repeat(n)}\r`,
  'spaces alone': (n) => ' '.repeat(n),
  'spaces and an end': (n) => `${' '.repeat(n)}x`,
  'tabs and spaces': (n) => `a${' \t'.repeat(n / 2)}\u00e9`,
  digits: (n) => `+${'1'.repeat(n)}x`,
  'digits and spaces': (n) => `${'1 '.repeat(n / 2)}x`,
  zeros: (n) => `2026-01-01T00:00:00.${'0'.repeat(n)}x`,
  brackets: (n) => '('.repeat(n),
  'brackets with a zero': (n) => '( 0'.repeat(n / 3),
  braces: (n) => '{"a":'.repeat(n / 5),
  lists: (n) => `[${'[],'.repeat(n / 3)}`,
  properties: (n) => `{${Array.from({ length: n / 8 }, (_, at) => `"a${at}":1`).join(',')}`,
  quotes: (n) => `"${'\\"'.repeat(n / 2)}`,
  'open quotes': (n) => '"'.repeat(n | 1),
  backslashes: (n) => '\\'.repeat(n),
  semicolons: (n) => ';'.repeat(n),
  parameters: (n) => `${'; a'.repeat(n / 3)}=`,
  'a parameter': (n) => `; a=${'"\\'.repeat(n / 2)}`,
  'percent signs': (n) => '%4'.repeat(n / 2),
  letters: (n) => `${'a'.repeat(n)}!`,
  dots: (n) => `${'a.'.repeat(n / 2)}me!`,
  slashes: (n) => `https://${'/'.repeat(n)}`,
  hyphens: (n) => `${'-'.repeat(n)}a`,
  commas: (n) => ','.repeat(n),
  lines: (n) => '\r\n'.repeat(n / 2),
  'half lines': (n) => '\n\r'.repeat(n / 2),
  accents: (n) => `a${'\u0301'.repeat(n)}`,
  'Hangul syllables': (n) => '\u1100\u1161'.repeat(n / 2),
  Thai: (n) => '\u0e01\u0e33'.repeat(n / 2),
  emoji: (n) => '\u{1f469}\u200d'.repeat(n / 3),
  words: (n) => 'needle in hay '.repeat(n / 14),
}

const shortest = 2_000
const growthMax = 16

/** The CPU time of one call, in microseconds. The result does not matter, not even a refusal. */
async function costOf(parser: Parser, text: string, times: number): Promise<number> {
  const begun = process.cpuUsage()
  for (let n = 0; n < times; n++) {
    try {
      await parser(text)
    } catch {
      // Refusing costs as well.
    }
  }
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / times
}

async function medianOf(measure: () => Promise<number>): Promise<number> {
  const costs = [await measure(), await measure(), await measure()]
  return costs.toSorted((a, b) => a - b)[1] ?? 0
}

/** How much more eight times the text costs. Below a tenth of a millisecond there was no backtracking worth measuring. */
async function growthOf(parser: Parser, make: (length: number) => string): Promise<number> {
  const [short, long] = [make(shortest), make(shortest * 8)]
  // There is no need to measure eight times that.
  if ((await costOf(parser, short, 1)) > 500_000) return Number.POSITIVE_INFINITY
  const once = await costOf(parser, long, 3)
  if (once < 100) return 0
  const times = Math.max(1, Math.min(50, Math.ceil(5_000 / once)))
  const longCost = await medianOf(() => costOf(parser, long, times))
  const shortCost = await medianOf(() => costOf(parser, short, times * 8))
  return longCost / Math.max(shortCost, 10)
}

describe.each(Object.entries(parsers))('%s', (_, parser) => {
  test('takes time proportional to the length, for any text', async () => {
    const slow: string[] = []
    for (const [name, make] of Object.entries(texts)) {
      let growth = await growthOf(parser, make)
      // Other load disturbs one measurement or two; backtracking is slow each time.
      for (let again = 0; again < 5 && growth > growthMax; again++) growth = await growthOf(parser, make)
      if (growth > growthMax) slow.push(`${name}: ${growth.toFixed(0)} times`)
    }
    expect(slow).toEqual([])
  })
})
