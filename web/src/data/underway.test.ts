/** Messages and forms under way: the request and its key are kept until the outcome is known, and nothing is done twice. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { FakeDatabase, FakeStorage } from '../../../test/harness/fake-database.ts'
import { until } from '../../../test/harness/process.ts'

const user = { user_id: 'user', workspace_id: 'workspace' }
const place = { ...user, kind: 'chat', of: 'acc_a platform:chat:42' }
const page = { ...user, kind: 'form', of: 'campaign' }

interface SentRequest {
  readonly key: string | null
  readonly text: string
  /** Whether the browser's store had the key when the request left. */
  readonly stored: boolean
}

const navigatorOfNode = navigator
const database = new FakeDatabase()
const storage = new FakeStorage()
const sent: SentRequest[] = []
/** What each message is answered with; undefined: its answer is lost. */
let answers: (Response | Promise<Response> | undefined)[]
/** The key of each form's request, and whether the browser's store had it by then. */
const asked: { key: string; body: unknown; stored: boolean }[] = []
let formAnswers: (() => unknown)[]
/** What listens to the page. */
const listening = new Set<string>()

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)
// biome-ignore lint/suspicious/noExplicitAny: see above.
let web: any

beforeAll(async () => {
  // Another file of this process may have opened its own database.
  vi.resetModules()
  vi.stubGlobal('indexedDB', database.factory)
  vi.stubGlobal('localStorage', storage)
  vi.stubGlobal('BroadcastChannel', undefined)
  vi.stubGlobal('addEventListener', (name: string) => listening.add(name))
  vi.stubGlobal('removeEventListener', (name: string) => listening.delete(name))
  vi.stubGlobal('fetch', async (url: string, init: RequestInit) => {
    if (!url.endsWith('/messages') || init.method !== 'POST') return new Response('{}')
    return answer(new Headers(init.headers).get('idempotency-key'), JSON.parse(String(init.body)).text)
  })
  vi.stubGlobal('XMLHttpRequest', FormRequest)
  web = {
    ...(await load('./browser-store.ts')),
    ...(await load('./kept.ts')),
    ...(await load('./records.ts')),
    ...(await load('./underway.ts')),
    ...(await load('./sending.ts')),
    ...(await load('./use-start-form.ts')),
    ...(await load('./api.ts')),
  }
})
beforeEach(() => {
  sent.length = 0
  asked.length = 0
  answers = []
  formAnswers = []
})
afterEach(() => {
  vi.useRealTimers()
  vi.stubGlobal('navigator', navigatorOfNode)
  database.release()
  database.full = false
  storage.full = false
  return web.forgetAll()
})
afterAll(() => void vi.unstubAllGlobals())

/** What the page sends files with. */
class FormRequest {
  readonly upload = {}
  readonly #headers = new Headers()
  responseText = ''
  status = 0
  onload = () => {}
  onerror = () => {}
  open(): void {}
  setRequestHeader(name: string, value: string): void {
    this.#headers.set(name, value)
  }
  getAllResponseHeaders = () => ''
  send(form: FormData): void {
    const { name } = form.get('attachments') as File
    void answer(this.#headers.get('idempotency-key'), `${name}: ${form.get('text')}`)
      .then(async (response) => {
        this.status = response.status
        this.responseText = await response.text()
        this.onload()
      })
      .catch(() => this.onerror())
  }
}

async function answer(key: string | null, text: string): Promise<Response> {
  sent.push({ key, text, stored: database.keysOf('underway').some((each) => key?.startsWith(each)) })
  const given = answers.shift()
  if (!given) throw new TypeError('The connection was cut.')
  return given
}

const accepted = () => new Response('{"ok":true,"message_id":"7"}')
const refusal = (status: number, code: string, headers: Record<string, string> = {}) =>
  new Response(JSON.stringify({ code, error: 'A sentence.' }), { status, headers })
const write = (text: string, at = place) => web.changeKept(web.newKept(at, ''), { value: text })
const save = (kept: unknown) => web.saveKept(kept, '')
const readText = async () => (await web.readKept(place, ''))?.value
const isSettled = () => database.keysOf('underway').length === 0 || undefined

test('a changed draft has its own key, an unchanged one keeps it', async () => {
  const draft = write('Hello')
  const changed = web.changeKept(draft, { value: 'Hello!' })
  expect(changed.key).not.toBe(draft.key)
  expect(changed.draft).toBe(draft.draft)
  await save(changed)
  expect((await web.readKept(place, '')).key).toBe(changed.key)
})

test('the key is stored before the request, repeated until the outcome is known, and then gone', async () => {
  answers = [undefined, refusal(409, 'operation_in_progress', { 'retry-after': '1' }), accepted()]
  const draft = write('Once')
  await save(draft)
  await web.sendDraft(draft)
  await until('the outcome is known', 30_000, isSettled)
  expect(sent).toEqual(Array.from({ length: 3 }, () => ({ key: draft.key, text: 'Once', stored: true })))
  expect(await readText()).toBeUndefined()
})

test('on a full disk a message is sent all the same, and repeated with its key until the outcome is known', async () => {
  await save(write('Before'))
  database.full = true
  answers = [undefined, accepted()]
  const draft = write('Once')
  await web.sendDraft(draft)
  await until(
    'the outcome is known',
    30_000,
    async () => !(await web.isUnderway({ ...draft, part: 0 })) || undefined,
  )
  expect(sent.map(({ key }) => key)).toEqual([draft.key, draft.key])
  expect(web.isStored()).toBe(false)
})

test('an ambiguous message is not sent again, and its text does not return to the composer', async () => {
  answers = [refusal(503, 'outcome_ambiguous'), accepted()]
  await web.sendDraft(write('Perhaps'))
  await until('the outcome is known', 30_000, isSettled)
  expect(sent).toHaveLength(1)
  expect(await readText()).toBeUndefined()
})

test('after a refusal the text is back with a new key; if nothing was tried, or a lost attempt may have sent it, with the same', async () => {
  for (const [given, same] of [
    [[refusal(403, 'blocked_by_person')], false],
    [[refusal(503, 'session_unavailable')], true],
    [[undefined, refusal(403, 'missing_role')], true],
  ] as const) {
    answers = [...given]
    const draft = write('Back')
    await web.sendDraft(draft)
    await until('the outcome is known', 30_000, isSettled)
    const back = await web.readKept(place, '')
    expect([back.value, back.key === draft.key]).toEqual(['Back', same])
    await web.forgetAll()
  }
})

test('a text that was written meanwhile is not replaced by one that was refused', async () => {
  const entry = await web.beginMessage(write('Refused'))
  await save(write('Newer'))
  await web.endMessage(entry, { key: 'another' })
  expect(await readText()).toBe('Newer')
})

test('an edit within the last moments before Send does not come back after it, and one made after Send stays', async () => {
  const stored = write('Hello')
  await save(stored)
  // Typed after the last save.
  const edited = web.changeKept(stored, { value: 'Hello!' })
  await web.beginMessage(edited)
  expect(await readText()).toBeUndefined()
  await save(stored)
  // A tab that did not know of the send goes on writing.
  const after = web.changeKept(edited, { value: 'Hello! And' })
  await save(after)
  await web.beginMessage(edited)
  expect(await readText()).toBe('Hello! And')
})

test('a message sent at the end of the page goes out from any other page, and is sent once', async () => {
  database.hold('underway')
  const draft = write('On the way')
  void web.beginMessage(draft)
  const left = Array.from({ length: storage.length }, (_, at) => storage.key(at))
  expect(left).toEqual([`parley.underway ${draft.key}`])
  database.release()
  await until(
    'the store has it',
    30_000,
    async () => (await web.isUnderway({ ...draft, part: 0 })) || undefined,
  )
  await web.endMessage(await web.read('underway', draft.key))
  // The page ended before: the journal alone has it.
  const late = write('Only in the journal')
  storage.setItem(
    `parley.underway ${late.key}`,
    JSON.stringify({ ...late, body: late.value, at: new Date().toISOString() }),
  )
  answers = [accepted()]
  const stop = web.startOutbox('user')
  await until('it is sent', 30_000, () => sent.length > 0 || undefined)
  await until('the outcome is known', 30_000, isSettled)
  stop()
  expect(sent.map(({ text }) => text)).toEqual(['Only in the journal'])
  expect(storage.length).toBe(0)
})

test('a message that the page was left with leaves the composer of the next page before it is sent', async () => {
  const draft = write('Only in the journal')
  await save(draft)
  const keeper = web.keep(place, '')
  const hide = keeper.shown.subscribe(() => {})
  const textIs = (text: string) =>
    until(`the composer has "${text}"`, 30_000, () => {
      const { kept, isLoaded } = keeper.shown.get()
      return (isLoaded && kept.value === text) || undefined
    })
  await textIs('Only in the journal')
  storage.setItem(
    `parley.underway ${draft.key}`,
    JSON.stringify({ ...draft, body: draft.value, at: new Date().toISOString() }),
  )
  const held = Promise.withResolvers<Response>()
  answers = [held.promise]
  const stop = web.startOutbox('user')
  await textIs('')
  held.resolve(accepted())
  await until('the outcome is known', 30_000, isSettled)
  stop()
  hide()
  expect(sent.map(({ key }) => key)).toEqual([draft.key])
})

test('leaving the page warns only while something is under way', async () => {
  expect(listening.has('beforeunload')).toBe(false)
  const answer = Promise.withResolvers<Response>()
  answers = [answer.promise]
  await web.sendDraft(write('Slow'))
  await until('the warning is there', 30_000, () => listening.has('beforeunload') || undefined)
  answer.resolve(accepted())
  await until('the outcome is known', 30_000, isSettled)
  await until('the warning is gone', 30_000, () => !listening.has('beforeunload') || undefined)
})

const threeFiles = ['1.png', '2.png', '3.png'].map((name) => new File(['x'], name))
const writeFiles = () => web.changeKept(write('Three'), { files: threeFiles })
const namesOf = (record: { files: readonly File[] }) => record.files.map(({ name }) => name)

test('several files go one after the other, the first with the text, each with its own key; a lost answer repeats one', async () => {
  answers = [accepted(), undefined, accepted(), accepted()]
  const draft = writeFiles()
  await save(draft)
  await web.sendDraft(draft)
  await until('the outcome is known', 30_000, isSettled)
  const { key } = draft
  expect(sent).toEqual([
    { key, text: '1.png: Three', stored: true },
    { key: `${key}-1`, text: '2.png: ', stored: true },
    { key: `${key}-1`, text: '2.png: ', stored: true },
    { key: `${key}-2`, text: '3.png: ', stored: true },
  ])
  expect(await readText()).toBeUndefined()
})

test('a page that opens while files are being sent goes on with the next one, and repeats none that is over', async () => {
  const sending = await web.beginMessage(writeFiles())
  await web.advanceMessage(web.nextMessage(sending))
  // A tab that is behind changes nothing.
  expect((await web.advanceMessage({ ...sending, part: 0 })).part).toBe(1)
  expect(await web.isUnderway(sending)).toBe(false)
  answers = [accepted(), accepted()]
  const stop = web.startOutbox('user')
  await until('the outcome is known', 30_000, isSettled)
  stop()
  expect(sent.map(({ text }) => text)).toEqual(['2.png: ', '3.png: '])
})

test('a tab that waited while another one sent the first file goes on with the second', async () => {
  const held = Promise.withResolvers<Response>()
  answers = [held.promise, accepted(), accepted()]
  const draft = writeFiles()
  await web.sendDraft(draft)
  await until('the first is asked', 30_000, () => sent.length > 0 || undefined)
  const now = await web.read('underway', draft.key)
  // Its own request is answered once another tab has moved on.
  await web.advanceMessage(web.nextMessage(now))
  held.resolve(new Response('{"code":"rate_limited","error":"Later."}', { status: 429, headers: {} }))
  await until('the outcome is known', 30_000, isSettled)
  expect(sent.map(({ text }) => text)).toEqual(['1.png: Three', '2.png: ', '3.png: '])
})

test('what follows a file that is refused is not sent: it is back with it, also beside a newer text', async () => {
  for (const newer of [undefined, 'Newer']) {
    answers = [accepted(), refusal(415, 'unsupported_attachment')]
    const draft = writeFiles()
    await web.sendDraft(draft)
    if (newer !== undefined) await save(write(newer))
    await until('the outcome is known', 30_000, isSettled)
    expect(sent.splice(0)).toHaveLength(2)
    const back = await web.readKept(place, '')
    expect([back.value, namesOf(back)]).toEqual([newer ?? '', ['2.png', '3.png']])
    expect([draft.key, `${draft.key}-1`]).not.toContain(back.key)
    await web.forgetAll()
  }
})

test('what was not tried is back with the key that it would have had', async () => {
  answers = [accepted(), refusal(503, 'session_unavailable')]
  const draft = writeFiles()
  await web.sendDraft(draft)
  await until('the outcome is known', 30_000, isSettled)
  expect((await web.readKept(place, '')).key).toBe(`${draft.key}-1`)
})

const lost = () => {
  throw new web.Refused(0, { code: 'unreachable', error: 'Lost.' })
}
const refused = (status: number, code: string) => () => {
  throw new web.Refused(status, { code, error: 'A sentence.' })
}
const created = () => ({ id: 'made' })

interface Waiting {
  readonly because: string
}

const writeForm = (value: string) => web.changeKept(web.newKept(page, ''), { value })
const run = async (request: unknown, { resumed = false, onWait = (_: Waiting | null) => {} } = {}) => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  const ask = async (body: unknown, key: string) => {
    asked.push({ key, body, stored: (await web.readForm(page))?.key === key })
    return formAnswers.shift()?.()
  }
  const outcome = web.runForm(request, { ask, onWait, resumed })
  let isDone = false
  void outcome.then(() => {
    isDone = true
  })
  while (!isDone) await vi.advanceTimersByTimeAsync(1_000)
  vi.useRealTimers()
  return outcome
}

test('a form’s request is stored before it leaves, repeated with its key until the outcome is known, and then gone', async () => {
  formAnswers = [lost, refused(503, 'outcome_ambiguous'), refused(409, 'operation_in_progress'), created]
  const draft = writeForm('Once')
  expect(await run(await web.beginForm(draft, { n: 1 }))).toEqual({ is: 'done', answer: { id: 'made' } })
  expect(asked).toEqual(Array.from({ length: 4 }, () => ({ key: draft.key, body: { n: 1 }, stored: true })))
  expect([database.keysOf('kept'), database.keysOf('underway')]).toEqual([[], []])
})

test('a request that waits says why: no network, no answer, or an answer that Parley has a problem', async () => {
  for (const [given, onLine, because] of [
    [lost, false, 'You are offline. It starts once you are back; it won’t start twice.'],
    [lost, true, 'The connection dropped. Trying again; it won’t start twice.'],
    [refused(503, 'store_unavailable'), true, 'Parley has a problem. Trying again; it won’t start twice.'],
  ] as const) {
    vi.stubGlobal('navigator', { onLine })
    formAnswers = [given, created]
    const said: unknown[] = []
    const onWait = (waiting: Waiting | null) => said.push(waiting?.because)
    await run(await web.beginForm(writeForm('Once'), {}), { onWait })
    expect(said).toEqual([because, undefined])
  }
})

test('a second tab that starts the same form repeats the request of the first', async () => {
  const draft = writeForm('Once')
  await web.beginForm(draft, { n: 1 })
  // Its audience has changed meanwhile.
  expect(await web.beginForm({ ...draft, key: 'another' }, { n: 2 })).toMatchObject({
    key: draft.key,
    body: { n: 1 },
  })
})

test('a request under way stays when another tab saves what it had typed, and when both start at once', async () => {
  formAnswers = [created]
  const draft = writeForm('Once')
  const [one, two] = await Promise.all([
    web.beginForm(draft, { n: 1 }),
    web.beginForm(web.changeKept(draft, { value: 'Twice' }), { n: 2 }),
  ])
  expect(two).toEqual(one)
  await save(web.changeKept(draft, { value: 'Typed before it knew' }))
  expect(await web.readForm(page)).toMatchObject({ key: draft.key })
  expect(await run(one)).toMatchObject({ is: 'done' })
  expect(asked).toEqual([{ key: draft.key, body: { n: 1 }, stored: true }])
  expect([database.keysOf('kept'), database.keysOf('underway')]).toEqual([[], []])
})

test('on a full disk the request is sent all the same, repeated with its key, and the page knows that it is not kept', async () => {
  await save(writeForm('Before'))
  database.full = true
  formAnswers = [lost, created]
  const draft = writeForm('Once')
  expect(await run(await web.beginForm(draft, {}))).toMatchObject({ is: 'done' })
  expect(asked.map(({ key }) => key)).toEqual([draft.key, draft.key])
  expect(web.isStored()).toBe(false)
})

test('a tab that waited for its turn does not repeat what another has finished', async () => {
  formAnswers = [created, created]
  const begun = await web.beginForm(writeForm('Once'), {})
  expect(await run(begun)).toMatchObject({ is: 'done' })
  expect(await run(begun)).toEqual({ is: 'left' })
  expect(asked).toHaveLength(1)
})

test('after a refusal the user goes on writing, with a new key', async () => {
  formAnswers = [refused(409, 'account_not_ready')]
  const draft = writeForm('Kept')
  expect(await run(await web.beginForm(draft, {}))).toMatchObject({
    is: 'refused',
    error: { code: 'account_not_ready' },
  })
  const kept = await web.readKept(page, '')
  expect([kept.value, kept.key === draft.key]).toEqual(['Kept', false])
  expect(database.keysOf('underway')).toEqual([])
})

test('a repeat refused before the service looks the key up keeps its key, because the first attempt may have succeeded', async () => {
  for (const [resumed, given, unsure] of [
    [false, [lost, refused(503, 'feature_disabled')], true],
    [true, [refused(403, 'missing_role')], true],
    // The first attempt of all, and what the service finds after it has looked the key up, prove that nothing was created.
    [false, [refused(503, 'feature_disabled')], false],
    [false, [lost, refused(409, 'account_not_ready')], false],
  ] as const) {
    formAnswers = [...given]
    const draft = writeForm('Kept')
    expect(await run(await web.beginForm(draft, {}), { resumed })).toMatchObject({ is: 'refused', unsure })
    const kept = await web.readKept(page, '')
    expect([kept.value, kept.key === draft.key]).toEqual(['Kept', unsure])
    await web.forgetAll()
  }
})

test('sign-out leaves nothing behind, and another user finds nothing', async () => {
  const writeAll = async () => {
    await save(write('Mine'))
    await web.beginMessage(write('Sent', { ...place, of: 'acc_a platform:chat:43' }))
    await web.beginForm(writeForm('Mine'), {})
  }
  await writeAll()
  expect(await web.listMessages('another')).toEqual([])
  expect(await web.readKept({ ...place, user_id: 'another' }, '')).toBeUndefined()
  await web.forgetAll()
  expect([database.keysOf('kept'), database.keysOf('underway')]).toEqual([[], []])
  await writeAll()
  await web.forgetOthers('another')
  expect([database.keysOf('kept'), database.keysOf('underway')]).toEqual([[], []])
})
