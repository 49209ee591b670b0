/** Forms of whole pages: the request and its key are kept until the outcome is known, and nothing is started twice. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { FakeDatabase } from './harness/fake-database.ts'

const place = { user_id: 'user', workspace_id: 'workspace', form: 'campaign' }

const database = new FakeDatabase()
/** The key of each request, and whether the browser's store had it by then. */
const asked: { key: string; body: unknown; stored: boolean }[] = []
/** What each request is answered with. */
let answers: (() => unknown)[]

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)
// biome-ignore lint/suspicious/noExplicitAny: see above.
let web: any

beforeAll(async () => {
  // Another file of this process may have opened its own database.
  vi.resetModules()
  vi.stubGlobal('indexedDB', database.factory)
  vi.stubGlobal('BroadcastChannel', undefined)
  web = {
    ...(await load('../web/src/outbox.ts')),
    ...(await load('../web/src/form-draft.ts')),
    ...(await load('../web/src/start-form.ts')),
    ...(await load('../web/src/api.ts')),
  }
})
beforeEach(() => {
  vi.useFakeTimers({ toFake: ['setTimeout'] })
  asked.length = 0
  answers = []
})
afterEach(async () => {
  vi.useRealTimers()
  database.full = false
  await web.clearOutbox()
})
afterAll(() => void vi.unstubAllGlobals())

const lost = () => {
  throw new web.Refused(0, { code: 'unreachable', error: 'Lost.' })
}
const refused = (status: number, code: string) => () => {
  throw new web.Refused(status, { code, error: 'A sentence.' })
}
const created = () => ({ id: 'made' })

const ask = async (body: unknown, key: string) => {
  const stored = await web.readForm(place)
  asked.push({ key, body, stored: stored?.starting?.key === key })
  return answers.shift()?.()
}
const run = async (draft: unknown, resumed = false) => {
  let unsure = false
  const onUnsure = () => {
    unsure = true
  }
  const result = web.runForm(draft, web.endForm, { ask, onWait: () => {}, resumed, onUnsure })
  const outcome = result.then(
    (answer: unknown) => ({ answer }),
    (error: { code: string }) => ({ code: error.code, ...(unsure && { unsure }) }),
  )
  let isDone = false
  void outcome.then(() => {
    isDone = true
  })
  while (!isDone) await vi.advanceTimersByTimeAsync(1_000)
  return outcome
}

test('a changed form has its own key', () => {
  const draft = web.newForm(place, 'Hello')
  expect(web.changeForm(draft, 'Hello!').key).not.toBe(draft.key)
})

test('the request is stored before it leaves, repeated with its key until the outcome is known, and then gone', async () => {
  answers = [lost, refused(503, 'outcome_ambiguous'), refused(409, 'operation_in_progress'), created]
  const draft = web.newForm(place, 'Once')
  expect(await run(await web.beginForm(draft, { n: 1 }))).toEqual({ answer: { id: 'made' } })
  expect(asked).toEqual(Array.from({ length: 4 }, () => ({ key: draft.key, body: { n: 1 }, stored: true })))
  expect(database.keysOf('forms')).toEqual([])
})

test('a second tab that starts the same form repeats the request of the first', async () => {
  const draft = web.newForm(place, 'Once')
  await web.beginForm(draft, { n: 1 })
  // Its audience has changed meanwhile.
  const second = await web.beginForm({ ...draft, key: 'another' }, { n: 2 })
  expect(second.starting).toMatchObject({ key: draft.key, body: { n: 1 } })
})

test('a request under way stays when another tab saves what it had typed, and when both start at once', async () => {
  answers = [created]
  const draft = web.newForm(place, 'Once')
  const [one, two] = await Promise.all([
    web.beginForm(draft, { n: 1 }),
    web.beginForm(web.changeForm(draft, 'Twice'), { n: 2 }),
  ])
  expect(two.starting).toEqual(one.starting)
  await web.saveForm(web.changeForm(draft, 'Typed before it knew'))
  expect(await web.readForm(place)).toMatchObject({ key: draft.key, starting: { key: draft.key } })
  expect(await run(one)).toEqual({ answer: { id: 'made' } })
  expect(asked).toEqual([{ key: draft.key, body: { n: 1 }, stored: true }])
  expect(database.keysOf('forms')).toEqual([])
})

test('on a full disk the request is sent all the same, repeated with its key, and the page knows that it is not kept', async () => {
  await web.saveForm(web.newForm(place, 'Before'))
  database.full = true
  answers = [lost, created]
  const draft = web.newForm(place, 'Once')
  expect(await run(await web.beginForm(draft, {}))).toEqual({ answer: { id: 'made' } })
  expect(asked.map(({ key }) => key)).toEqual([draft.key, draft.key])
  expect(web.isStored()).toBe(false)
})

test('a tab that waited for its turn does not repeat what another has finished', async () => {
  answers = [created, created]
  const begun = await web.beginForm(web.newForm(place, 'Once'), {})
  expect(await run(begun)).toEqual({ answer: { id: 'made' } })
  expect(await run(begun)).toEqual({ answer: undefined })
  expect(asked).toHaveLength(1)
})

test('after a refusal the user goes on writing, with a new key', async () => {
  answers = [refused(409, 'account_not_ready')]
  const draft = web.newForm(place, 'Kept')
  expect(await run(await web.beginForm(draft, {}))).toEqual({ code: 'account_not_ready' })
  const kept = await web.readForm(place)
  expect(kept).toMatchObject({ value: 'Kept', starting: null })
  expect(kept.key).not.toBe(draft.key)
})

test('a repeat refused before the service looks the key up keeps its key, because the first attempt may have succeeded', async () => {
  for (const [resumed, given] of [
    [false, [lost, refused(503, 'feature_disabled')]],
    [true, [refused(403, 'missing_role')]],
  ] as const) {
    answers = [...given]
    const draft = web.newForm(place, 'Kept')
    const begun = await web.beginForm(draft, {})
    expect(await run(begun, resumed)).toMatchObject({ unsure: true })
    expect(await web.readForm(place)).toMatchObject({ value: 'Kept', starting: null, key: draft.key })
  }
  // The first attempt of all, and what the service finds after it has looked the key up, prove that nothing was created.
  for (const given of [[refused(503, 'feature_disabled')], [lost, refused(409, 'account_not_ready')]]) {
    answers = given
    const draft = web.newForm(place, 'Kept')
    const outcome = await run(await web.beginForm(draft, {}))
    expect(outcome).not.toHaveProperty('unsure')
    expect((await web.readForm(place)).key).not.toBe(draft.key)
  }
})

test('sign-out leaves no form behind, and another user finds none', async () => {
  await web.beginForm(web.newForm(place, 'Mine'), {})
  expect(await web.readForm({ ...place, user_id: 'another' })).toBeUndefined()
  await web.clearOutbox()
  expect(database.keysOf('forms')).toEqual([])
  await web.beginForm(web.newForm(place, 'Mine'), {})
  await web.forgetOthers('another')
  expect(database.keysOf('forms')).toEqual([])
})
