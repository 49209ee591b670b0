/** The structure itself: floors, no circles, slices entered by their public module, tables written by their owner. */
import { spawnSync } from 'node:child_process'
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
  ['rules'],
]

/** The folder that writes a table. Any other may join it in a read. */
const owners: Readonly<Record<string, string>> = {
  manual_clock: 'db',
  simulated_time: 'db',
  schema_migrations: 'db',
  stored_keys: 'db',
  secret_use: 'db',
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
  login_numbers: 'capabilities/accounts',
  account_hosts: 'ledger',
  chats: 'capabilities/chats',
  account_sync: 'capabilities/history',
  chat_sync: 'capabilities/history',
  history_questions: 'capabilities/history',
  messages: 'capabilities/messages',
  notes: 'capabilities/notes',
  note_answers: 'capabilities/notes',
  media_files: 'capabilities/media',
  media_chunks: 'capabilities/media',
  deleted_messages: 'capabilities/messages',
  contacts: 'capabilities/contacts',
  campaign_people: 'capabilities/campaigns',
  people: 'capabilities/people',
  people_backfill: 'capabilities/people',
  person_names: 'capabilities/people',
  erased_chats: 'capabilities/people',
  tombstones: 'capabilities/people',
  erasures: 'capabilities/erasing',
  search_segments: 'capabilities/search',
  search_lists: 'capabilities/search',
  search_ranks: 'capabilities/search',
  search_pending: 'capabilities/search',
  search_stale: 'capabilities/search',
  search_forgetting: 'capabilities/search',
  columns: 'capabilities/columns',
  column_options: 'capabilities/columns',
  column_values: 'capabilities/columns',
  suppressions: 'capabilities/suppressions',
  saved_replies: 'capabilities/saved-replies',
  message_counts: 'capabilities/messages',
  campaigns: 'capabilities/campaigns',
  campaign_steps: 'capabilities/campaigns',
  campaign_recipients: 'capabilities/campaigns',
  hand_messages: 'capabilities/campaigns',
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
  retention: 'capabilities/retention',
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
  // Leaving a workspace ends assignments, keys, sessions and logins, and stops webhooks; so does being disabled.
  account_logins: ['capabilities/users'],
  webhooks: ['capabilities/users'],
  chats: ['capabilities/users'],
  keys: ['capabilities/users'],
  sessions: ['capabilities/users'],
  // Whatever stores contacts teaches names, and so do look-ups of the release before.
  person_names: ['capabilities/campaigns', 'capabilities/contacts'],
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

/** A folder with a public module: other folders import only this file of it. */
const publicModules: Readonly<Record<string, string>> = {
  'capabilities/search/index/': 'capabilities/search/index/search-index.ts',
  'capabilities/campaigns/running/': 'capabilities/campaigns/running/running.ts',
}

/** The lists at the top read each slice's own list; another slice may continue the file of an operation. */
const lists: Readonly<Record<string, RegExp>> = {
  'lists/routes.ts': /^export const routes\b/m,
  'lists/dashboard-routes.ts': /^export const (workspaceRoutes|ownRoutes)\b/m,
  'lists/operations.ts': /^export const operations\b/m,
  'lists/loops.ts': /^export (const|function) loops\b/m,
  'lists/sealed-columns.ts': /^export const sealedColumns\b/m,
}

test("other slices import only a slice's public module, and the lists only its lists", () => {
  const wrong = imports.filter(({ from, to }) => {
    if (!to.startsWith('capabilities/') || folderOf(from) === folderOf(to)) return false
    const [, slice, file] = to.split('/')
    const text = texts.get(to) ?? ''
    const listed =
      lists[from]?.test(text) ||
      (from.startsWith('capabilities/') && lists['lists/operations.ts']?.test(text))
    return file !== `${slice}.ts` && !listed && !Object.values(publicModules).includes(to)
  })
  expect(wrong).toEqual([])
})

test('a folder with a public module is entered by it', () => {
  for (const [folder, entrance] of Object.entries(publicModules)) {
    expect(texts.has(entrance)).toBe(true)
    const entering = imports.filter(
      ({ from, to }) =>
        to.startsWith(folder) && !from.startsWith(folder) && !lists[from]?.test(texts.get(to) ?? ''),
    )
    expect(entering.length).toBeGreaterThan(0)
    expect(entering.filter(({ to }) => to !== entrance)).toEqual([])
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

/**
 * Whether SQL asks who has a name: it reads `person_names`, or compares contacts by a username or phone number in the list's
 * form. What an account's address book shows is no such question, nor is the spelling of a name that a caller gave.
 */
function joinsNames(text: string): boolean {
  const aliases = [
    ...text.matchAll(/\b(?:from|join|update|into)\s+(?:public\.)?contacts\b(?:\s+as)?\s+(\w+)?/g),
  ].map(([, alias]) => alias ?? '')
  const column = `(?:(?:${['contacts', ...aliases.filter(Boolean)].join('|')})\\.)?(?:username|phone)\\b`
  const folded = new RegExp(`\\b(?:lower|phone_digits|listedPhone)\\((?:sql\`)?${column}`)
  const compared = new RegExp(
    `\\b(?:${['contacts', ...aliases.filter(Boolean)].join('|')})\\.(?:username|phone)\\s*(?:=|<>|in\\b|like\\b|ilike\\b)`,
  )
  return /\bperson_names\b/.test(text) || (aliases.length > 0 && (folded.test(text) || compared.test(text)))
}

test('only people joins names: others ask its functions', () => {
  const wrong = files.filter(
    (file) => !file.startsWith('capabilities/people/') && joinsNames(texts.get(file) ?? ''),
  )
  expect(wrong).toEqual([])
  const functions = [
    ...schema.matchAll(
      /FUNCTION public\.([a-z_]+)\((?:(?!FUNCTION)[^$])*\$function\$([\s\S]*?)\$function\$/g,
    ),
  ]
  const joining = functions.filter(([, , body = '']) => joinsNames(body)).map(([, name]) => name)
  expect(joining.toSorted()).toEqual([
    ...['is_listed', 'knows_names', 'learn_names', 'names_of', 'people_named', 'unread_contacts_named'],
  ])
})

test.each([
  'select from given s join contacts c on lower(c.username) = s.value',
  'select from contacts where phone_digits(phone) = any($1)',
  'select from contacts as other, r where other.username = r.username',
  'select from contacts k where listedPhone(sql`k.phone`) = any($1)',
  'select from person_names n where n.value = $1',
])('a join of names is found: %s', (text) => {
  expect(joinsNames(text)).toBe(true)
})

test.each([
  'select c.name, c.username, c.phone from contacts c where c.account_id = $1',
  'select lower(r.username) from campaign_recipients r left join contacts person on person.provider_id = r.chat_id',
  "select phone_digits(overlay(value placing '0' from 1 for 0)) from given",
])('what joins no names passes: %s', (text) => {
  expect(joinsNames(text)).toBe(false)
})

test('every table has an owner', () => {
  const tables = [...schema.matchAll(/^create (?:unlogged )?table ([a-z_]+)/gm)].map((match) => match[1])
  expect(tables.filter((table) => !owners[table ?? ''])).toEqual([])
})

/** What every send or update writes. */
const hot = ['account_hosts', 'campaign_recipients', 'chats', 'events', 'messages', 'operations', 'outbox']

test('a new migration locks one hot table, so that it waits for one at a time on a busy instance', () => {
  const locks: Record<string, object> = JSON.parse(
    readFileSync(join(root, 'db', 'migration-locks.json'), 'utf8'),
  )
  const several = Object.entries(locks).filter(
    ([name, tables]) => name >= '0046' && hot.filter((table) => table in tables).length > 1,
  )
  expect(several.map(([name]) => name)).toEqual([])
})

test('capabilities refuse with an ApiError, which HTTP, MCP and the command line can answer', () => {
  const wrong = files
    .filter((file) => file.startsWith('capabilities/'))
    .filter((file) => /^import [^'"]*\bRefusal\b[^'"]*['"][./]+lib\/errors\.ts/m.test(texts.get(file) ?? ''))
  expect(wrong).toEqual([])
})

test('rules are for browsers too: they import only each other', () => {
  const rules = files.filter((file) => file.startsWith('rules/'))
  expect(rules.length).toBeGreaterThan(2)
  const wrong = rules.flatMap((file) =>
    [...(texts.get(file) ?? '').matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)]
      .map((match) => match[1] ?? '')
      .filter((to) => !/^\.\/[\w-]+\.ts$/.test(to))
      .map((to) => `${file} imports ${to}`),
  )
  expect(wrong).toEqual([])
})

/** A door is a prefix of addresses, and to submit is to make the one call on the platform (`docs/glossary.md`). */
test('two words mean one thing each: only what answers requests has doors, and no row of the ledger is submitted', () => {
  const doors = files.filter(
    (file) => /\bdoors?\b/i.test(texts.get(file) ?? '') && !/^(http|access)\//.test(file),
  )
  expect(doors).toEqual([])
  const submitted = files.filter((file) => /\bsubmits? (a|the) (ledger )?row/i.test(texts.get(file) ?? ''))
  expect(submitted).toEqual([])
})

test('only http knows Fastify', () => {
  const wrong = files.filter(
    (file) => /from '(@scalar\/)?fastify/.test(texts.get(file) ?? '') && folderOf(file) !== 'http',
  )
  expect(wrong).toEqual([])
})

test('only Telegram knows mtcute', () => {
  const knowing = files.filter((file) =>
    /from ['"](@mtcute\/|@fuman\/|long['"])|import\(['"](@mtcute|@fuman)\//.test(texts.get(file) ?? ''),
  )
  expect(knowing.length).toBeGreaterThan(0)
  const shared = 'platform/mtcute-crypto.ts'
  const wrong = knowing.filter((file) => file !== shared && !file.startsWith('platform/telegram/'))
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

/** The dashboard, from the top down. A page is a folder of `pages`, and knows no other page. */
const webFloors = ['main.tsx', 'frame', 'pages', 'ui', 'data']
const webRoot = join(import.meta.dirname, '..', 'web', 'src')
const webTexts = new Map(
  globSync('**/*.{ts,tsx}', { cwd: webRoot })
    .filter((file) => !file.endsWith('.test.ts'))
    .map((file) => [file, readFileSync(join(webRoot, file), 'utf8')] as const),
)
/** Also what is loaded on demand. */
const webNames = [...webTexts].flatMap(([from, text]) =>
  [...text.matchAll(/(?:from|import)\s*\(?\s*['"]([^'"]+)['"]/g)].map((match) => ({
    from,
    to: match[1] ?? '',
  })),
)
const webImports: readonly Import[] = webNames
  .filter(({ to }) => /^\..*\.tsx?$/.test(to))
  .map(({ from, to }) => ({ from, to: normalize(join(dirname(from), to)) }))
const ofDashboard = webImports.filter(({ to }) => !to.startsWith('..'))

test("the dashboard's imports are found", () => {
  expect(ofDashboard.length).toBeGreaterThan(500)
  expect(ofDashboard.filter(({ to }) => !webTexts.has(to))).toEqual([])
})

test('the dashboard imports, of the service, only its rules', () => {
  const outside = webImports.filter(({ to }) => to.startsWith('..'))
  expect(outside.length).toBeGreaterThan(10)
  expect(outside.filter(({ to }) => !/^\.\.\/\.\.\/src\/rules\/[\w-]+\.ts$/.test(to))).toEqual([])
  expect(webNames.filter(({ to }) => to.startsWith('node:'))).toEqual([])
})

test('its imports run downwards, and none from page to page', () => {
  const floor = (file: string) => webFloors.indexOf(file.split('/')[0] ?? '')
  expect([...webTexts.keys()].filter((file) => floor(file) < 0)).toEqual([])
  expect(ofDashboard.filter(({ from, to }) => floor(to) < floor(from))).toEqual([])
  const pageOf = (file: string) => file.split('/').slice(0, 2).join('/')
  const between = ofDashboard.filter(
    ({ from, to }) => from.startsWith('pages/') && to.startsWith('pages/') && pageOf(from) !== pageOf(to),
  )
  expect(between).toEqual([])
  expect([...webTexts.keys()].filter((file) => /^pages\/[^/]+$/.test(file))).toEqual([])
})

test('no file and no folder of the dashboard imports itself indirectly', () => {
  const next = Map.groupBy(ofDashboard, ({ from }) => from)
  expect(circlesIn([...next.keys()], (file) => (next.get(file) ?? []).map(({ to }) => to))).toEqual([])
  const folders = Map.groupBy(
    ofDashboard
      .map(({ from, to }) => ({ from: dirname(from), to: dirname(to) }))
      .filter(({ from, to }) => from !== to),
    ({ from }) => from,
  )
  expect(folders.size).toBeGreaterThan(15)
  const nextFolder = (folder: string) => (folders.get(folder) ?? []).map(({ to }) => to)
  expect(circlesIn([...folders.keys()], nextFolder)).toEqual([])
})

test('the dashboard is built again when any of its files or a rule changes', () => {
  const build = join(webRoot, '..', 'build.ts')
  const { stdout, status } = spawnSync(process.execPath, [build, '--inputs'], { encoding: 'utf8' })
  expect(status).toBe(0)
  const inputs = new Set(stdout.split('\n'))
  const rules = files.filter((file) => file.startsWith('rules/')).map((file) => join(root, file))
  const needed = [...rules, ...[...webTexts.keys()].map((file) => join(webRoot, file))]
  expect(needed.filter((file) => !inputs.has(file))).toEqual([])
})

test('only the list of keys writes the key of a query, so that a mark finds it', () => {
  const written = /queryKey: *\[|queryKey: *\n\s*\[/
  expect(webTexts.get('data/keys.ts')).toContain('export const keys')
  expect([...webTexts].filter(([, text]) => written.test(text)).map(([file]) => file)).toEqual([])
})
