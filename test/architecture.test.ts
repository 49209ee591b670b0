/** The structure itself: floors, no circles, slices entered by their public module, tables written by their owner. */
import { globSync, readFileSync } from 'node:fs'
import { dirname, join, normalize } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..', 'src')

/** From the top down. A file may import from its own folder and from the floors below its own. */
const floors: readonly (readonly string[])[] = [
  ['main.ts'],
  ['parts.ts'],
  ['cli'],
  ['http', 'worker'],
  ['mcp'],
  ['lists', 'openapi'],
  ['capabilities'],
  ['access'],
  ['ledger'],
  ['events'],
  ['long-list.ts'],
  ['route.ts', 'loop.ts'],
  ['app.ts'],
  ['operation.ts'],
  ['contract.ts'],
  ['mark.ts'],
  ['platform', 'db', 'config.ts'],
  ['lib'],
]

/** The folder that writes a table. Any other may join it in a read. */
const owners: Readonly<Record<string, string>> = {
  manual_clock: 'db',
  simulated_time: 'db',
  schema_migrations: 'db',
  workspaces: 'capabilities/workspaces',
  stages: 'capabilities/pipeline',
  setup_links: 'capabilities/users',
  users: 'capabilities/users',
  memberships: 'capabilities/users',
  identities: 'capabilities/users',
  sessions: 'access',
  keys: 'capabilities/keys',
  gates: 'capabilities/gates',
  allowlists: 'capabilities/gates',
  settings: 'capabilities/gates',
  audit: 'capabilities/audit',
  workers: 'ledger',
  request_log: 'access',
  event_waits: 'capabilities/events',
  accounts: 'capabilities/accounts',
  platform_sessions: 'capabilities/accounts',
  platform_peers: 'capabilities/accounts',
  account_logins: 'capabilities/accounts',
  account_hosts: 'ledger',
  chats: 'capabilities/chats',
  account_sync: 'capabilities/history',
  chat_sync: 'capabilities/history',
  history_questions: 'capabilities/history',
  messages: 'capabilities/messages',
  notes: 'capabilities/notes',
  media_files: 'capabilities/media',
  media_chunks: 'capabilities/media',
  deleted_messages: 'capabilities/messages',
  contacts: 'capabilities/contacts',
  search_segments: 'capabilities/search',
  search_lists: 'capabilities/search',
  search_ranks: 'capabilities/search',
  search_pending: 'capabilities/search',
  search_stale: 'capabilities/search',
  columns: 'capabilities/columns',
  column_options: 'capabilities/columns',
  column_values: 'capabilities/columns',
  suppressions: 'capabilities/suppressions',
  saved_replies: 'capabilities/saved-replies',
  message_counts: 'capabilities/messages',
  campaigns: 'capabilities/campaigns',
  campaign_steps: 'capabilities/campaigns',
  campaign_recipients: 'capabilities/campaigns',
  campaign_counts: 'capabilities/campaigns',
  campaign_accounts: 'capabilities/campaigns',
  operations: 'ledger',
  account_days: 'ledger',
  account_strikes: 'ledger',
  file_chunks: 'ledger',
  stored_bytes: 'ledger',
  instance: 'ledger',
  outbox: 'events',
  events: 'events',
  event_sequences: 'events',
  webhooks: 'capabilities/webhooks',
  webhook_deliveries: 'capabilities/webhooks',
  webhook_attempts: 'capabilities/webhooks',
  approvals: 'capabilities/approvals',
  alerts: 'capabilities/alerts',
  alert_posts: 'capabilities/alerts',
  toy_reminders: 'capabilities/toy',
}

/** Rows that belong to another slice by their nature: the head of the audit chain is a setting. */
const exceptions: Readonly<Record<string, readonly string[]>> = { settings: ['capabilities/audit'] }

/** Which other slices' rows fire a trigger that writes a table: the table's owner is responsible for it. */
const triggeredBy: Readonly<Record<string, readonly string[]>> = {
  // Records which accounts were READY before one leaves that state in a new run of the server.
  account_hosts: ['capabilities/accounts'],
  instance: ['capabilities/accounts'],
  // A suppressed person gets nothing more.
  campaign_recipients: ['capabilities/suppressions'],
  // Leaving a workspace ends assignments and revokes keys, being disabled ends sessions.
  chats: ['capabilities/users'],
  keys: ['capabilities/users'],
  sessions: ['capabilities/users'],
  // A file goes with its message, or when an edit replaces it.
  media_files: ['capabilities/messages'],
  search_pending: ['capabilities/messages'],
  // Everything that decides what a caller may do raises the version that every process compares.
  settings: ['capabilities/accounts', 'capabilities/keys', 'capabilities/users', 'capabilities/workspaces'],
}

const ours = globSync('**/*.ts', { cwd: root }).filter((file) => !file.endsWith('.test.ts'))

/** The toy slice obeys the same rules, as if it were one of ours. Its main is a list, as ours is. */
const toy = join(import.meta.dirname, 'toy')
const toys = globSync('*.ts', { cwd: toy }).filter((file) => !/^main|\.test/.test(file))

const texts = new Map([
  ...ours.map((file) => [file, readFileSync(join(root, file), 'utf8')] as const),
  ...toys.map((file) => {
    const text = readFileSync(join(toy, file), 'utf8').replaceAll("'../../src/", "'../../")
    return [`capabilities/toy/${file}`, text] as const
  }),
])
const files = [...texts.keys()]

interface Import {
  readonly from: string
  readonly to: string
}

const imports: readonly Import[] = files.flatMap((from) =>
  [...(texts.get(from) ?? '').matchAll(/^(?:import|export) [^'"]*?['"](\.{1,2}\/[^'"]+)['"]/gm)].map(
    (match) => ({
      from,
      to: normalize(join(dirname(from), match[1] ?? '')),
    }),
  ),
)

/** The folder that owns a file: its top folder, one deeper below capabilities and platform. */
function folderOf(file: string): string {
  const parts = file.split('/')
  const deep = parts[0] === 'capabilities' || (parts[0] === 'platform' && parts.length > 2)
  return parts.slice(0, deep ? 2 : 1).join('/')
}

function floorOf(file: string): number {
  const floor = floors.findIndex((folders) => folders.includes(file.split('/')[0] ?? ''))
  if (floor < 0) throw new Error(`${file} is on no floor.`)
  return floor
}

test('the imports are found', () => {
  expect(imports.length).toBeGreaterThan(100)
  expect(imports.filter(({ to }) => to.endsWith('.ts') && !texts.has(to))).toEqual([])
})

test('imports run downwards', () => {
  const wrong = imports.filter(
    ({ from, to }) =>
      folderOf(from) !== folderOf(to) &&
      // Between slices, and from an adapter to the port, see below.
      from.split('/')[0] !== to.split('/')[0] &&
      floorOf(to) <= floorOf(from),
  )
  expect(wrong).toEqual([])
})

/** A folder with one door: other folders import only this file of it. */
const doors: Readonly<Record<string, string>> = {
  'capabilities/search/index/': 'capabilities/search/index/search-index.ts',
  'capabilities/campaigns/running/': 'capabilities/campaigns/running/running.ts',
}

/** The lists at the top read each slice's own list; another slice may continue the file of an operation. */
const lists: Readonly<Record<string, RegExp>> = {
  'lists/routes.ts': /^export const routes\b/m,
  'lists/dashboard-routes.ts': /^export const (workspaceRoutes|ownRoutes)\b/m,
  'lists/operations.ts': /^export const operations\b/m,
  'lists/loops.ts': /^export (const|function) loops\b/m,
}

test("other slices import only a slice's public module, and the lists only its lists", () => {
  const wrong = imports.filter(({ from, to }) => {
    if (!to.startsWith('capabilities/') || folderOf(from) === folderOf(to)) return false
    const [, slice, file] = to.split('/')
    const text = texts.get(to) ?? ''
    const listed =
      lists[from]?.test(text) ||
      (from.startsWith('capabilities/') && lists['lists/operations.ts']?.test(text))
    return file !== `${slice}.ts` && !listed && !Object.values(doors).includes(to)
  })
  expect(wrong).toEqual([])
})

test('a folder with a door is entered by it', () => {
  for (const [folder, door] of Object.entries(doors)) {
    expect(texts.has(door)).toBe(true)
    const entering = imports.filter(
      ({ from, to }) =>
        to.startsWith(folder) && !from.startsWith(folder) && !lists[from]?.test(texts.get(to) ?? ''),
    )
    expect(entering.length).toBeGreaterThan(0)
    expect(entering.filter(({ to }) => to !== door)).toEqual([])
  }
})

test('no file imports itself indirectly', () => {
  const next = Map.groupBy(imports, ({ from }) => from)
  expect(circlesIn(files, (file) => (next.get(file) ?? []).map(({ to }) => to))).toEqual([])
})

function circlesIn(all: readonly string[], next: (one: string) => readonly string[]): string[][] {
  const done = new Set<string>()
  const circles: string[][] = []
  const visit = (one: string, path: readonly string[]): void => {
    if (path.includes(one)) circles.push([...path.slice(path.indexOf(one)), one])
    if (path.includes(one) || done.has(one)) return
    for (const to of next(one)) visit(to, [...path, one])
    done.add(one)
  }
  for (const one of all) visit(one, [])
  return circles
}

/** A slice, or a room of one. */
function roomOf(file: string): string {
  return file.startsWith('capabilities/') ? dirname(file) : folderOf(file)
}

test('no slice, and no room of one, imports itself indirectly', () => {
  const next = new Map<string, Set<string>>()
  for (const { from, to } of imports) {
    if (roomOf(from) !== roomOf(to))
      next.set(roomOf(from), (next.get(roomOf(from)) ?? new Set()).add(roomOf(to)))
  }
  expect(next.size).toBeGreaterThan(20)
  expect(circlesIn([...next.keys()], (room) => [...(next.get(room) ?? [])])).toEqual([])
})

const writes = /\b(?:insert into|update|delete from|truncate)\s+(?:only\s+)?([a-z_]+)\b(?!\s*\()/g

test('only its owner writes a table', () => {
  const wrong = files.flatMap((file) =>
    [...(texts.get(file) ?? '').matchAll(/sql`[^`]*`/g)].flatMap(([statement]) =>
      [...statement.replaceAll(/\bfor (no key )?update\b|\bdo update\b/g, '').matchAll(writes)]
        .map((match) => match[1] ?? '')
        .filter((table) => !isWriter(folderOf(file), table))
        .map((table) => `${file} writes ${table}`),
    ),
  )
  expect(wrong).toEqual([])
})

function isWriter(folder: string, table: string): boolean {
  const owner = owners[table]
  return owner !== undefined && (folder === owner || (exceptions[table] ?? []).includes(folder))
}

const schema = readFileSync(join(root, 'db', 'schema.sql'), 'utf8')

test("a trigger writes another slice's table only where its owner lists it", () => {
  const bodies = new Map(
    [
      ...schema.matchAll(
        /FUNCTION public\.([a-z_]+)\((?:(?!FUNCTION)[^$])*\$function\$([\s\S]*?)\$function\$/g,
      ),
    ].map(([, name = '', body = '']) => [name, body.toLowerCase()] as const),
  )
  const writtenBy = (name: string, seen: readonly string[] = []): string[] => {
    const body = (bodies.get(name) ?? '').replaceAll(/\bfor (no key )?update\b|\bdo update\b|--.*/g, '')
    const called = [...bodies.keys()].filter((one) => body.includes(`${one}(`) && !seen.includes(one))
    const own = [...body.matchAll(writes)].map((match) => match[1] ?? '')
    return [
      ...own.filter((table) => owners[table]),
      ...called.flatMap((one) => writtenBy(one, [...seen, name])),
    ]
  }
  const found = new Map<string, Set<string>>()
  const triggers = [...schema.matchAll(/^CREATE TRIGGER .* ON public\.([a-z_]+) .*FUNCTION ([a-z_]+)\(/gm)]
  expect(triggers.length).toBeGreaterThan(20)
  for (const [, table = '', name = ''] of triggers) {
    for (const written of writtenBy(name)) {
      const from = owners[table] ?? ''
      if (owners[written] !== from) found.set(written, (found.get(written) ?? new Set()).add(from))
    }
  }
  const listed = Object.fromEntries([...found].map(([table, slices]) => [table, [...slices].sort()]))
  expect(listed).toEqual(triggeredBy)
})

test('every table has an owner', () => {
  const tables = [...schema.matchAll(/^create (?:unlogged )?table ([a-z_]+)/gm)].map((match) => match[1])
  expect(tables.filter((table) => !owners[table ?? ''])).toEqual([])
})

test('capabilities refuse with an ApiError, which HTTP, MCP and the command line can answer', () => {
  const wrong = files
    .filter((file) => file.startsWith('capabilities/'))
    .filter((file) => /^import [^'"]*\bRefusal\b[^'"]*['"][./]+lib\/errors\.ts/m.test(texts.get(file) ?? ''))
  expect(wrong).toEqual([])
})

test('only http knows Fastify', () => {
  const wrong = files.filter(
    (file) => /from '(@scalar\/)?fastify/.test(texts.get(file) ?? '') && folderOf(file) !== 'http',
  )
  expect(wrong).toEqual([])
})

test('only Telegram and the data centre of its tests know mtcute', () => {
  const knowing = files.filter((file) => /['"](@mtcute|@fuman|long)\b/.test(texts.get(file) ?? ''))
  expect(knowing.length).toBeGreaterThan(0)
  const shared = 'platform/mtcute-crypto.ts'
  const wrong = knowing.filter(
    (file) => file !== shared && !/^platform\/(telegram|sandbox\/mtproto)\//.test(file),
  )
  expect(wrong).toEqual([])
})

test('only the list of platforms, and the verbs of a platform itself, know a platform by name', () => {
  const platforms = new Set(
    files.filter((file) => /^platform\/[^/]+\//.test(file)).map((file) => file.split('/')[1] ?? ''),
  )
  expect(platforms.size).toBeGreaterThan(0)
  const wrong = [...platforms].flatMap((name) => {
    const isOutside = (file: string) =>
      !file.startsWith(`platform/${name}/`) && ![`cli/${name}.ts`, 'cli/platforms.ts'].includes(file)
    const entered = imports.filter(({ from, to }) => isOutside(from) && to.startsWith(`platform/${name}/`))
    // Examples of routes may show any platform.
    const named = files.filter(
      (file) =>
        isOutside(file) &&
        !/\/(routes|dashboard-routes)\.ts$/.test(file) &&
        texts.get(file)?.includes(`'${name}'`),
    )
    return [...entered, ...named]
  })
  expect(wrong).toEqual([])
})
