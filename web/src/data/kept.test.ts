/** What is typed survives the end of the page, whatever the browser's store is doing, and belongs to its user alone. */
import { afterAll, afterEach, beforeEach, expect, test, vi } from 'vitest'
import { FakeDatabase, FakeStorage } from '../../../test/harness/fake-database.ts'
import { until } from '../../../test/harness/process.ts'

const place = { user_id: 'user', workspace_id: 'workspace', kind: 'note', of: 'acc_a platform:chat:42' }
const name = 'parley.kept user workspace note acc_a platform:chat:42'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)
// biome-ignore lint/suspicious/noExplicitAny: see above.
type Web = any

let database = new FakeDatabase()
let storage = new FakeStorage()

/** A new page of this browser. */
async function openPage(): Promise<Web> {
  vi.resetModules()
  return {
    ...(await load('./browser-store.ts')),
    ...(await load('./kept.ts')),
    ...(await load('./records.ts')),
    ...(await load('./journal.ts')),
    ...(await load('./underway.ts')),
  }
}

let web: Web
/** Shows the place, until the returned function is called. */
const show = (page: Web, empty: unknown = '', at: unknown = place) => {
  const keeper = page.keep(at, empty)
  return { keeper, hide: keeper.shown.subscribe(() => {}) }
}
const isLoaded = (keeper: Web) =>
  until('the store has answered', 30_000, () => keeper.shown.get().isLoaded || undefined)
const isSaved = (keeper: Web) => until('it is saved', 30_000, () => keeper.shown.get().isSaved || undefined)
const namesOf = (files: readonly File[]) => files.map(({ name }) => name)
const type = (keeper: Web, text: string) => keeper.change(() => text)
/** What a new page shows there. */
async function shown(): Promise<unknown> {
  const { keeper } = show(await openPage())
  await isLoaded(keeper)
  return keeper.shown.get().kept.value
}

beforeEach(async () => {
  database = new FakeDatabase()
  storage = new FakeStorage()
  useFakes()
  web = await openPage()
})
afterEach(() => {
  database.release()
  return web.forgetAll()
})
afterAll(() => void vi.unstubAllGlobals())

/** The stores of this browser. */
function useFakes(): void {
  vi.stubGlobal('indexedDB', database.factory)
  vi.stubGlobal('localStorage', storage)
  vi.stubGlobal('BroadcastChannel', undefined)
}

test('what is typed is stored, and an emptied field is gone', async () => {
  const { keeper } = show(web)
  await isLoaded(keeper)
  type(keeper, 'Hello')
  await isSaved(keeper)
  expect(await shown()).toBe('Hello')
  type(keeper, '')
  await isSaved(keeper)
  expect(database.keysOf('kept')).toEqual([])
})

test('a read opens its own store, and only for reading; a save opens nothing else', async () => {
  const { keeper } = show(web)
  await isLoaded(keeper)
  database.begun.length = 0
  type(keeper, 'Hello')
  await isSaved(keeper)
  await web.readKept(place, '')
  expect(database.begun).toEqual([
    { names: ['kept'], mode: 'readwrite' },
    { names: ['kept'], mode: 'readonly' },
  ])
})

test('what is typed at the end of the page is there at the next, while another tab holds the store', async () => {
  const { keeper } = show(web)
  await isLoaded(keeper)
  type(keeper, 'Hel')
  await isSaved(keeper)
  database.hold('kept')
  type(keeper, 'Hello')
  web.keepAll()
  expect(storage.getItem(name)).toContain('Hello')
  // The next page shows it before the store answers.
  const next = await openPage()
  const { keeper: later } = show(next)
  expect(later.shown.get().kept.value).toBe('Hello')
  database.release()
  await isLoaded(later)
  expect(later.shown.get().kept.value).toBe('Hello')
  await until('the store has it', 30_000, () => storage.getItem(name) === null || undefined)
  expect(await shown()).toBe('Hello')
})

test('what the store has is no longer in the journal', async () => {
  const { keeper } = show(web)
  await isLoaded(keeper)
  type(keeper, 'Hello')
  web.keepAll()
  expect(storage.length).toBe(1)
  await isSaved(keeper)
  expect(storage.length).toBe(0)
})

test('of journal and store the newer one counts', async () => {
  const older = web.changeKept(web.newKept(place, ''), { value: 'Older' })
  const newer = web.changeKept(older, { value: 'Newer' })
  await web.saveKept(newer, '')
  web.writeJournal('kept', web.idOf(place), older)
  expect(await shown()).toBe('Newer')
  expect(storage.length).toBe(0)
  web.writeJournal('kept', web.idOf(place), web.changeKept(newer, { value: 'Newest' }))
  expect(await shown()).toBe('Newest')
  // A tab that stores late does not replace what is newer.
  await web.saveKept(older, '')
  expect(await shown()).toBe('Newest')
})

test('a file stays where the store has it, when its text is in the journal', async () => {
  const file = new File(['x'], 'a.txt')
  const stored = web.changeKept(web.newKept(place, ''), { value: 'With', files: [file] })
  await web.saveKept(stored, '')
  web.writeJournal('kept', web.idOf(place), web.changeKept(stored, { value: 'With it' }))
  expect(storage.getItem(name)).not.toContain('file')
  const found = await (await openPage()).readKept(place, '')
  expect([found.value, found.files[0]?.name]).toEqual(['With it', 'a.txt'])
})

test('a full journal loses nothing that the store has', async () => {
  const { keeper } = show(web)
  await isLoaded(keeper)
  type(keeper, 'Hello')
  await isSaved(keeper)
  storage.full = true
  type(keeper, 'Hello again')
  expect(web.keepAll()).toBe('lost')
  await isSaved(keeper)
  expect(await shown()).toBe('Hello again')
})

test('a broken or foreign journal is ignored, and the store counts', async () => {
  await web.saveKept(web.changeKept(web.newKept(place, ''), { value: 'Mine' }), '')
  const later = { ...web.newKept(place, ''), count: Date.now() + 60_000 }
  for (const text of [
    '{',
    'null',
    '[]',
    JSON.stringify({ ...later, value: { script: 1 } }),
    JSON.stringify({ ...later, value: 'Theirs', user_id: 'another' }),
    JSON.stringify({ ...later, value: 'Text', count: 'high' }),
    JSON.stringify({ ...later, value: 'Text', count: Number.MAX_SAFE_INTEGER }),
    JSON.stringify({ ...later, value: 'Text', key: 7 }),
    JSON.stringify({ ...later, value: 'Text', begun_at: null }),
  ]) {
    storage.setItem(name, text)
    expect(await shown()).toBe('Mine')
  }
})

test('a browser without a store keeps what is typed in the journal', async () => {
  vi.stubGlobal('indexedDB', undefined)
  const page = await openPage()
  const { keeper, hide } = show(page)
  await isLoaded(keeper)
  type(keeper, 'Hello')
  hide()
  expect(page.keepAll()).toBe('kept')
  expect(await shown()).toBe('Hello')
})

test('what was typed before the store answered joins what it had', async () => {
  await web.saveKept(web.changeKept(web.newKept(place, ''), { value: 'Hello' }), '')
  database.hold('kept')
  const { keeper } = show(await openPage())
  type(keeper, ' again')
  database.release()
  await isLoaded(keeper)
  await isSaved(keeper)
  expect(await shown()).toBe('Hello again')
})

test('sign-out empties the journal, and what was typed is not written again', async () => {
  const { keeper } = show(web)
  await isLoaded(keeper)
  type(keeper, 'Secret')
  web.keepAll()
  type(keeper, 'Secret!')
  const forgetting = web.forgetAll()
  // The page is left while the store is being emptied.
  web.keepAll()
  await forgetting
  web.keepAll()
  expect([storage.length, database.keysOf('kept')]).toEqual([0, []])
  expect(keeper.shown.get().kept.value).toBe('')
})

test('another user who signs in finds nothing, and their own is kept', async () => {
  const own = { ...place, user_id: 'another' }
  for (const at of [place, own]) {
    const text = web.changeKept(web.newKept(at, ''), { value: 'Text' })
    await web.saveKept(text, '')
    web.writeJournal('kept', web.idOf(at), web.changeKept(text, { value: 'Text!' }))
    web.writeJournal('underway', text.key, { ...text, body: 'Text', at: '' })
  }
  storage.setItem('parley.kept broken', '{')
  await web.forgetOthers('another')
  expect(database.keysOf('kept')).toEqual([web.idOf(own)])
  const left = Array.from({ length: storage.length }, (_, at) => storage.key(at) ?? '')
  expect(left.filter((each) => each.startsWith('parley.kept'))).toEqual([`parley.kept ${web.idOf(own)}`])
  expect(left).toHaveLength(2)
})

test('what version 2 had is taken over: drafts, messages under way, forms and their requests', async () => {
  const chat = {
    user_id: 'user',
    workspace_id: 'workspace',
    account_id: 'acc_a',
    chat_id: 'platform:chat:42',
  }
  const form = { user_id: 'user', workspace_id: 'workspace', form: 'campaign' }
  const begun_at = '2026-01-01T00:00:00.000Z'
  const starting = { key: 'k3', body: { n: 1 }, at: begun_at }
  database = new FakeDatabase({
    version: 2,
    stores: {
      drafts: { a: { ...chat, text: 'Draft', file: null, key: 'k1', begun_at } },
      sending: { k2: { ...chat, text: 'Sent', file: null, key: 'k2', begun_at, sent_at: begun_at } },
      forms: {
        f: { ...form, value: { name: 'Spring' }, key: 'k3', starting: null },
        'f start': { ...form, starting },
      },
    },
  })
  useFakes()
  const page = await openPage()
  const at = { user_id: 'user', workspace_id: 'workspace' }
  const of = 'acc_a platform:chat:42'
  expect(await page.readKept({ ...at, kind: 'chat', of }, '')).toMatchObject({
    value: 'Draft',
    key: 'k1',
    begun_at,
  })
  expect(await page.listMessages('user')).toMatchObject([
    { ...at, of, body: 'Sent', key: 'k2', at: begun_at },
  ])
  const campaign = { ...at, kind: 'form', of: 'campaign' }
  expect(await page.readKept(campaign, {})).toMatchObject({ value: { name: 'Spring' }, key: 'k3' })
  expect(await page.readForm(campaign)).toMatchObject({ ...campaign, ...starting })
  expect(['drafts', 'sending', 'forms'].flatMap((store) => database.keysOf(store))).toEqual([])
})

test('two that show a place from the same moment on share what is typed there', async () => {
  // As two components that are rendered together: neither follows before both have asked.
  const [editor, target] = [web.keep(place, ''), web.keep(place, '')]
  for (const each of [editor, target]) each.shown.subscribe(() => {})
  await isLoaded(editor)
  type(editor, 'Hello there')
  await isSaved(editor)
  target.change(
    (text: string) => text,
    () => [new File(['x'], 'a.png')],
  )
  await isSaved(target)
  const { value, files } = editor.shown.get().kept
  expect([value, namesOf(files)]).toEqual(['Hello there', ['a.png']])
  expect(await shown()).toBe('Hello there')
})

test('a place that is left and opened again while it is being saved has one keeper', async () => {
  const { keeper: first, hide } = show(web)
  await isLoaded(first)
  hide()
  const { keeper: second } = show(web)
  expect(second).not.toBe(first)
  // What the first one still had to do ends now.
  await first.save()
  expect(web.keep(place, '')).toBe(second)
})

test('what is typed while an earlier text is being saved at the service is not removed with it', async () => {
  const { keeper: first, hide } = show(web)
  await isLoaded(first)
  type(first, 'Call her')
  await isSaved(first)
  const { kept: saved } = first.shown.get()
  // Closed while its request is under way, and opened again.
  hide()
  const { keeper: second } = show(web)
  await isLoaded(second)
  type(second, 'Call her on Monday')
  await isSaved(second)
  await first.discard(saved)
  expect(await shown()).toBe('Call her on Monday')
})

test('files that are attached before the store answered come after those it had', async () => {
  const [one, two] = [new File(['1'], '1.txt'), new File(['2'], '2.txt')]
  await web.saveKept(web.changeKept(web.newKept(place, ''), { files: [one] }), '')
  database.hold('kept')
  const { keeper } = show(await openPage())
  keeper.change(
    (text: string) => text,
    (before: readonly File[]) => [...before, two],
  )
  database.release()
  await isLoaded(keeper)
  await isSaved(keeper)
  expect(namesOf(keeper.shown.get().kept.files)).toEqual(['1.txt', '2.txt'])
})
