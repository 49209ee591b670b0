/** Runs what docs/webhooks.md shows, unchanged. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { blockedPorts } from '../src/capabilities/webhooks/url-rules.ts'
import { newSecret, signatureHeaders } from '../src/lib/webhook-signatures.ts'

const page = readFileSync(join(import.meta.dirname, '..', 'docs', 'webhooks.md'), 'utf8')
const directory = mkdtempSync(join(tmpdir(), 'parley-page-'))
afterAll(() => rmSync(directory, { recursive: true, force: true }))

function codeIn(language: string): string {
  const [, code] = new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (!code) throw new Error(`The page shows no ${language}.`)
  return code
}

interface Case {
  readonly secret: string
  readonly headers: Record<string, string>
  readonly body: string
  readonly expected: boolean
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]))
}

const cases: readonly Case[] = ['{"text":"plain"}', '{"text":"Grüße 😀 漢字"}'].flatMap((body) => {
  const [secret, previous] = [newSecret(), newSecret()]
  const headers = lowerCase(signatureHeaders({ id: 'evt_1', timestamp: 1, body }, [secret, previous]))
  return [
    { secret, headers, body, expected: true },
    { secret: previous, headers, body, expected: true },
    { secret: newSecret(), headers, body, expected: false },
    { secret, headers, body: `${body} `, expected: false },
    { secret, headers: {}, body, expected: false },
  ]
})

test('the TypeScript verifies signed deliveries, and nothing else', async () => {
  const file = join(directory, 'verify.ts')
  writeFileSync(file, codeIn('ts'))
  const { isOurs } = await import(file)
  for (const { secret, headers, body, expected } of cases) {
    expect(isOurs(secret, headers, Buffer.from(body))).toBe(expected)
  }
})

const python = ['python3', 'python'].find((name) => {
  try {
    return execFileSync(name, ['--version'], { stdio: 'pipe' }).length > 0
  } catch {
    return false
  }
})

test.runIf(python)('the Python verifies signed deliveries, and nothing else', () => {
  const file = join(directory, 'verify.py')
  const run =
    'import json, sys\nprint(json.dumps([is_ours(c["secret"], c["headers"], c["body"].encode()) for c in json.load(sys.stdin)]))'
  writeFileSync(file, `${codeIn('python')}\n\n${run}\n`)
  const printed = execFileSync(python ?? '', [file], { input: JSON.stringify(cases) })
  expect(JSON.parse(printed.toString())).toEqual(cases.map(({ expected }) => expected))
})

test('it lists every refused port', () => {
  const [, listed = ''] = /Refused ports: (.*?)\n\n/s.exec(page) ?? []
  const named = [...listed.matchAll(/(\d+)(?:–(\d+))?/g)].flatMap(([, from, to = from]) =>
    Array.from({ length: Number(to) - Number(from) + 1 }, (_, n) => Number(from) + n),
  )
  expect(new Set(named)).toEqual(blockedPorts)
})
