/** The commands that README and the guides show, and whether a response matches the one they show. */
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..', '..')

export interface Block {
  readonly page: string
  /** The nearest second-level heading above it. */
  readonly section: string
  /** `sh` is typed; a block right after it without a language, or as `json`, is its output. */
  readonly language: string
  readonly text: string
}

export function readPage(page: string): string {
  return readFileSync(join(root, page), 'utf8')
}

export function blocksOf(page: string): readonly Block[] {
  return readPage(page)
    .split(/^## /m)
    .flatMap((part) => {
      const [section = ''] = part.split('\n')
      const found = [...part.matchAll(/^```(\w*)\n(.*?)^```$/gms)]
      return found.map(([, language = '', text = '']) => ({ page, section, language, text }))
    })
}

/** A continued line is one command, and so is a line with the here-document below it. */
export function commandsOf({ text }: Block): readonly string[] {
  return text.replaceAll(/\\\n\s*/g, '').match(/^[^\n]*<<'?(\w+)'?\n.*?\n\1$|^[^\n]+$/gms) ?? []
}

/** As a shell splits it, with these variables; the command itself is not run. */
export function wordsOf(command: string, env: Readonly<Record<string, string>> = {}): string[] {
  const { stdout } = spawnSync('sh', ['-c', `printf '%s\\0' ${command}`], {
    encoding: 'utf8',
    env: { ...process.env, ...env },
  })
  return stdout.split('\0').slice(0, -1)
}

const shapes: Readonly<Record<string, RegExp>> = {
  uuid: /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/,
  time: /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  account: /^acc_\w{20}$/,
  event: /^evt_[0-9a-f]{32}$/,
  key: /^svc_live_\w{6}$/,
  secret: /^whsec_./,
  number: /^\d+$/,
}

/** Compares ids and times by their shape, everything else exactly. */
function shapeOf(value: unknown): unknown {
  if (typeof value !== 'string') return value
  return Object.entries(shapes).find(([, shape]) => shape.test(value))?.[0] ?? value
}

/** `…` stands for anything else. */
function isShown(shown: unknown, real: unknown): boolean {
  if (shown === '…') return true
  if (Array.isArray(shown)) {
    if (!Array.isArray(real)) return false
    const items = shown.filter((item) => item !== '…')
    if (items.length < shown.length) return items.every((item) => real.some((each) => isShown(item, each)))
    return shown.length === real.length && shown.every((item, at) => isShown(item, real[at]))
  }
  if (typeof shown === 'object' && shown !== null) {
    if (typeof real !== 'object' || real === null) return false
    const { '…': more, ...named } = shown as Record<string, unknown>
    const found = real as Record<string, unknown>
    if (more === undefined && Object.keys(found).length !== Object.keys(named).length) return false
    return Object.entries(named).every(([name, value]) =>
      name === 'sequence' ? typeof found[name] === 'number' : isShown(value, found[name]),
    )
  }
  return shapeOf(shown) === shapeOf(real)
}

/** Lines such as headers: each shown line must occur, with any number or id at its end. */
function areLinesShown(shown: string, real: string): boolean {
  const plain = (text: string) =>
    text.split(/\r?\n/).map((line) => line.trim().replace(/(: | {2})(\d+|[0-9a-f-]{36})$/, '$1#'))
  const lines = plain(real)
  return plain(shown.trim()).every((line) => line === '…' || lines.includes(line))
}

export function isOutput({ language, text }: Block, real: string): boolean {
  if (language !== 'json') return areLinesShown(text, real)
  try {
    return isShown(JSON.parse(text), JSON.parse(real))
  } catch {
    return false
  }
}
