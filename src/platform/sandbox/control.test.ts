import { describe, expect, test } from 'vitest'
import { askWorld, otherSide } from '../../../test/platform/sandbox-fixture.ts'
import { ApiError } from '../../lib/errors.ts'
import { controlOperations } from './control.ts'
import { openWorld } from './world.ts'

const account_id = 'acc_one'

function setScene() {
  const world = openWorld({ data_dir: null })
  world.addAccount({ account_id, name: 'Sales desk' })
  const ask = askWorld(world)
  return { world, ask, others: otherSide(ask) }
}

describe.each(
  controlOperations.map((operation) => [`${operation.method} ${operation.path}`, operation] as const),
)('%s', (_, operation) => {
  test('has examples that its own schemas accept', () => {
    const { request, response } = operation.example
    expect((operation.body ?? operation.query)?.safeParse(request).error).toBeUndefined()
    expect(operation.response.safeParse(response).error).toBeUndefined()
  })

  test('400 for an unknown field', async () => {
    if (!operation.body) return
    const body = { ...Object(operation.example.request), surprise: true }
    const { params } = operation.example
    const error = await operation
      .handle(openWorld({ data_dir: null }), { params, body })
      .catch((thrown) => thrown)
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({ code: 'invalid_request', message: expect.stringContaining('surprise') })
  })
})

test('404 for an unknown account, person or message, and creates nothing', async () => {
  const { world, ask } = setScene()
  const { person_id } = world.addPerson({ name: 'Mara' })
  const before = world.counts()
  const missing: [string, object][] = [
    ['writeMessage', { account_id: 'acc_nobody', person_id, text: 'hi' }],
    ['writeMessage', { account_id, person_id: 77, text: 'hi' }],
    ['writeMessage', { account_id, person_id, chat_id: -9, text: 'hi' }],
    ['addGroup', { account_id: 'acc_nobody', name: 'Team' }],
    ['readMessages', { account_id, person_id }],
    ['editMessage', { account_id, person_id, message_id: 5, text: 'hi' }],
    ['deleteMessage', { account_id, person_id, message_id: 5 }],
  ]
  for (const [name, input] of missing) {
    await expect(ask(name, input), name).rejects.toMatchObject({ code: 'not_found' })
  }
  expect(world.counts()).toEqual(before)
})

test("400 for editing another person's message", async () => {
  const { world, ask } = setScene()
  const { person_id } = world.addPerson({ name: 'Mara' })
  const message_id = world.seedMessage({
    account_id,
    chat_id: person_id,
    person_id: null,
    text: 'ours',
    at: new Date(0),
  })
  const edit = { account_id, person_id, message_id, text: 'theirs' }
  await expect(ask('editMessage', edit)).rejects.toMatchObject({ code: 'invalid_request' })
})

test('200 for a whole chat: write, edit, read, delete, with message ids as numbers or strings', async () => {
  const { world, ask, others } = setScene()
  const person_id = await others.addPerson({ name: 'Mara', username: 'mara_lind' })
  const at = '2026-01-05T10:00:00+01:00'
  const written = await ask('writeMessage', { account_id, person_id, text: 'Hi', at })
  expect(written).toEqual({ message_id: 1 })
  await ask('editMessage', { account_id, person_id, message_id: '1', text: 'Hello' })
  const box = world.requireAccount(account_id).boxes.get(person_id)
  expect(box?.posts[0]).toMatchObject({ text: 'Hello', at: '2026-01-05T09:00:00.000Z' })
  expect(await ask('readMessages', { account_id, person_id })).toEqual({ up_to_message_id: 0 })
  await ask('deleteMessage', { account_id, person_id, message_id: 1 })
  expect(box?.posts).toEqual([])
})

test('200 lets members write in a group, and no one else', async () => {
  const { ask, others } = setScene()
  const member = await others.addPerson({ name: 'Mara' })
  const stranger = await others.addPerson({ name: 'Igor' })
  const chat_id = await others.addGroup({ account_id, name: 'Team', members: [member] })
  await ask('writeMessage', { account_id, person_id: member, chat_id, text: 'hi' })
  const strange = ask('writeMessage', { account_id, person_id: stranger, chat_id, text: 'hi' })
  await expect(strange).rejects.toMatchObject({ code: 'invalid_request' })
})

test('200 reads the journal after a number, and counts the faults it clears', async () => {
  const { ask } = setScene()
  expect(await ask('readJournal', { after: '0' })).toEqual({ entries: [] })
  await expect(ask('readJournal', { after: '-1' })).rejects.toMatchObject({ code: 'invalid_request' })
  await ask('addFault', { on: 'send', fault: 'refuse' })
  expect(await ask('clearFaults', {})).toEqual({ cleared: 1 })
})
