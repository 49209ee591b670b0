/** The twenty steps that every foreign client takes at the data centre, in this order. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Ask } from '../../platform/sandbox-fixture.ts'
import { type Device, type ForeignClient, type Place, Refused, type TlObject } from './device.ts'

export interface Stage extends Place {
  readonly ask: Ask
  readonly client: ForeignClient
  /** One of its own for each client. */
  readonly account: {
    readonly account_id: string
    readonly name: string
    readonly phone: string
    readonly password: string
  }
}

const stepMsMax = 60_000
const chats = 25

interface Scene extends Stage {
  readonly device: Device
  readonly mara: { readonly person_id: number; readonly username: string }
  /** Devices to close at the end. */
  readonly opened: Device[]
  /** What a step leaves for the next ones. */
  readonly left: Record<string, unknown>
}

type Step = readonly [name: string, take: (scene: Scene) => Promise<void>]

const steps: readonly Step[] = [
  ['key exchange', exchangeKeys],
  ['a wrong code is refused', enterWrongCode],
  ['login with a code, then the password is asked for', enterCode],
  ['the password', enterPassword],
  ['send', sendText],
  ['a repeated random id is the same message', repeatRandomId],
  ['history', readHistory],
  ['dialogs over three pages', readDialogs],
  ['edit', editText],
  ['delete', deleteText],
  ['reading what a person wrote', readTheirs],
  ['a person reads what we wrote', readOurs],
  ['file up', uploadFile],
  ['file down', downloadFile],
  ['a pushed message', takeMessage],
  ['a pushed edit and deletion', takeEdit],
  ['difference after a cut', catchUp],
  ['a second device logs in', openSecond],
  ['the second device gets what the first one sends', shareUpdates],
  ['logout ends one device', logOut],
]

/** Returns how many steps passed; the first that fails ends the walk. */
export async function takeSteps(stage: Stage): Promise<{ passed: number; of: number; failed?: unknown }> {
  const { ask, client, account } = stage
  await ask('addAccount', account)
  const username = `mara_${account.account_id}`
  const { person_id } = (await ask('addPerson', { name: 'Mara Lind', username })) as { person_id: number }
  const device = await client.open(stage)
  const scene: Scene = { ...stage, device, mara: { person_id, username }, opened: [device], left: {} }
  let passed = 0
  try {
    for (const [name, take] of steps) {
      const late = AbortSignal.timeout(stepMsMax)
      const { promise, reject } = Promise.withResolvers<never>()
      late.addEventListener('abort', () => reject(new Error('No answer.')))
      await Promise.race([take(scene), promise]).catch((error) => {
        throw new Error(`${client.name}, step ${passed + 1}, ${name}`, { cause: error })
      })
      passed++
    }
    return { passed, of: steps.length }
  } catch (failed) {
    return { passed, of: steps.length, failed }
  } finally {
    for (const each of scene.opened) await each.close()
  }
}

/** The value at a path of an answer. */
function at(value: unknown, ...path: readonly (string | number)[]): unknown {
  return path.reduce<unknown>((inner, part) => (inner as Record<string, unknown> | undefined)?.[part], value)
}

function listAt(value: unknown, ...path: readonly (string | number)[]): TlObject[] {
  return (at(value, ...path) ?? []) as TlObject[]
}

async function refusalOf(call: Promise<unknown>): Promise<string> {
  const error = await call.then(
    () => new Error('It was accepted.'),
    (thrown: unknown) => thrown,
  )
  if (error instanceof Refused) return error.message
  throw error
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let n = 0; n < 600 && !holds(); n++) await sleep(50)
  assert.ok(holds(), what)
}

async function exchangeKeys({ device }: Scene): Promise<void> {
  assert.equal(at(await device.call('help.getConfig'), 'this_dc'), 2)
  assert.match(await refusalOf(device.call('updates.getState')), /AUTH_KEY_UNREGISTERED/)
}

function sendCode(device: Device, phone_number: string): Promise<unknown> {
  const settings = { _: 'codeSettings' }
  return device.call('auth.sendCode', { phone_number, api_id: 1, api_hash: '0'.repeat(32), settings })
}

async function signIn(device: Device, phone_number: string, phone_code: string): Promise<string> {
  const phone_code_hash = at(await sendCode(device, phone_number), 'phone_code_hash')
  return refusalOf(device.call('auth.signIn', { phone_number, phone_code_hash, phone_code }))
}

async function enterWrongCode({ device, account }: Scene): Promise<void> {
  assert.match(await signIn(device, account.phone, '54321'), /PHONE_CODE_INVALID/)
}

async function enterCode({ device, account }: Scene): Promise<void> {
  assert.match(await signIn(device, account.phone, '12345'), /SESSION_PASSWORD_NEEDED/)
}

async function checkPassword(device: Device, secret: string): Promise<unknown> {
  const question = (await device.call('account.getPassword')) as TlObject
  return device.call('auth.checkPassword', { password: await device.prove(question, secret) })
}

async function enterPassword({ device, account }: Scene): Promise<void> {
  assert.match(await refusalOf(checkPassword(device, 'wrong')), /PASSWORD_HASH_INVALID/)
  assert.equal(at(await checkPassword(device, account.password), 'user', 'first_name'), account.name)
  assert.equal(at(await device.call('updates.getState'), '_'), 'updates.state')
}

async function findMara({ device, mara }: Scene, from = device): Promise<TlObject> {
  const { username } = mara
  const user = listAt(await from.call('contacts.resolveUsername', { username }), 'users').find(
    ({ id }) => String(id) === String(mara.person_id),
  )
  return { _: 'inputPeerUser', user_id: String(mara.person_id), access_hash: at(user, 'access_hash') }
}

async function sendText(scene: Scene): Promise<void> {
  const peer = await findMara(scene)
  const sent = await scene.device.call('messages.sendMessage', { peer, message: 'Hello', random_id: '7001' })
  assert.equal(at(sent, '_'), 'updateShortSentMessage')
  Object.assign(scene.left, { peer, sent: at(sent, 'id') })
}

async function repeatRandomId({ device, left, ask, account }: Scene): Promise<void> {
  const again = { peer: left.peer, message: 'Hello', random_id: '7001' }
  assert.equal(at(await device.call('messages.sendMessage', again), 'id'), left.sent)
  const { entries } = (await ask('readJournal', { after: 0 })) as { entries: { account_id: string }[] }
  assert.equal(entries.filter(({ account_id }) => account_id === account.account_id).length, 1)
}

const whole = { offset_id: 0, offset_date: 0, add_offset: 0, limit: 10, max_id: 0, min_id: 0, hash: '0' }

async function textsOf({ device, left }: Scene): Promise<unknown[]> {
  const found = await device.call('messages.getHistory', { peer: left.peer, ...whole })
  return listAt(found, 'messages').map(({ message }) => message)
}

async function readHistory(scene: Scene): Promise<void> {
  const { ask, account, mara } = scene
  const { account_id } = account
  await ask('writeMessage', { account_id, person_id: mara.person_id, text: 'Who is there?' })
  assert.deepEqual(await textsOf(scene), ['Who is there?', 'Hello'])
}

/** Chats with people, groups and channels, of which pages end with any kind. */
async function fillDialogs({ ask, account: { account_id } }: Scene): Promise<void> {
  for (let n = 1; n < chats; n++) {
    const at = new Date(Date.UTC(2026, 0, 1, 0, n)).toISOString()
    if (n % 3 === 0) {
      const title = `Channel ${n}`
      const { channel_id } = (await ask('addChannel', { title, account_ids: [account_id] })) as {
        channel_id: number
      }
      await ask('writeInChannel', { channel_id, person_id: 5_000_000_000 + n, text: title, at })
      continue
    }
    const { person_id } = (await ask('addPerson', { name: `Person ${n}` })) as { person_id: number }
    await ask('writeMessage', { account_id, person_id, text: `From ${n}`, at })
  }
}

async function readDialogs(scene: Scene): Promise<void> {
  await fillDialogs(scene)
  const seen: string[] = []
  let offset: Record<string, unknown> = {
    ...{ offset_date: 0, offset_id: 0, offset_peer: { _: 'inputPeerEmpty' } },
  }
  for (let page = 1; page <= 3; page++) {
    const wanted = { ...offset, exclude_pinned: page > 1, limit: 10, hash: '0', folder_id: 0 }
    const found = await scene.device.call('messages.getDialogs', wanted)
    assert.equal(at(found, 'count'), chats)
    const dialogs = listAt(found, 'dialogs')
    seen.push(...dialogs.map(({ peer }) => JSON.stringify(peer)))
    const last = dialogs.at(-1)
    const message = listAt(found, 'messages').find(
      ({ id, peer_id }) => id === last?.top_message && JSON.stringify(peer_id) === JSON.stringify(last?.peer),
    )
    offset = {
      offset_date: message?.date,
      offset_id: message?.id,
      offset_peer: inputOf(found, last?.peer as TlObject),
    }
  }
  assert.equal(new Set(seen).size, chats)
  assert.equal(seen.length, chats)
}

function inputOf(found: unknown, { _: kind, channel_id, user_id }: TlObject): TlObject {
  const id = channel_id ?? user_id
  const holders = listAt(found, kind === 'peerChannel' ? 'chats' : 'users')
  const access_hash = holders.find((each) => each.id === id)?.access_hash
  return kind === 'peerChannel'
    ? { _: 'inputPeerChannel', channel_id, access_hash }
    : { _: 'inputPeerUser', user_id, access_hash }
}

async function editText(scene: Scene): Promise<void> {
  const { device, left } = scene
  const edited = await device.call('messages.editMessage', {
    ...{ peer: left.peer, id: left.sent, message: 'Hello, Mara' },
  })
  assert.equal(at(edited, 'updates', 0, '_'), 'updateEditMessage')
  assert.deepEqual(await textsOf(scene), ['Who is there?', 'Hello, Mara'])
}

async function deleteText(scene: Scene): Promise<void> {
  const { device, left } = scene
  const removed = await device.call('messages.deleteMessages', { revoke: true, id: [left.sent] })
  assert.equal(at(removed, '_'), 'messages.affectedMessages')
  assert.deepEqual(await textsOf(scene), ['Who is there?'])
}

async function dialogOf({ device, left }: Scene): Promise<TlObject | undefined> {
  const peers = [{ _: 'inputDialogPeer', peer: left.peer }]
  return listAt(await device.call('messages.getPeerDialogs', { peers }), 'dialogs')[0]
}

async function readTheirs(scene: Scene): Promise<void> {
  const { device, left } = scene
  assert.equal((await dialogOf(scene))?.unread_count, 1)
  const read = await device.call('messages.readHistory', { peer: left.peer, max_id: 0 })
  assert.equal(at(read, '_'), 'messages.affectedMessages')
  assert.equal((await dialogOf(scene))?.unread_count, 0)
}

async function readOurs(scene: Scene): Promise<void> {
  const { device, left, ask, account, mara } = scene
  const sent = await device.call('messages.sendMessage', {
    peer: left.peer,
    message: 'Me',
    random_id: '7002',
  })
  await ask('readMessages', { account_id: account.account_id, person_id: mara.person_id })
  await until('the other side has read it', () =>
    device.updates.some((each) => each._ === 'updateReadHistoryOutbox' && each.max_id === at(sent, 'id')),
  )
  assert.equal((await dialogOf(scene))?.read_outbox_max_id, at(sent, 'id'))
}

const partBytes = 128 * 1024

async function uploadFile({ device, left, ask }: Scene): Promise<void> {
  const bytes = randomBytes(300_000)
  const parts = Math.ceil(bytes.length / partBytes)
  for (let n = 0; n < parts; n++) {
    const part = bytes.subarray(n * partBytes, (n + 1) * partBytes)
    const saved = await device.call('upload.saveFilePart', { file_id: '99', file_part: n, bytes: part })
    assert.equal(saved, true)
  }
  const file = { _: 'inputFile', id: '99', parts, name: 'a.bin', md5_checksum: '' }
  const named = { _: 'documentAttributeFilename', file_name: 'a.bin' }
  const media = {
    ...{ _: 'inputMediaUploadedDocument', file, mime_type: 'application/octet-stream', attributes: [named] },
  }
  const sent = await device.call('messages.sendMedia', {
    ...{ peer: left.peer, media, message: '', random_id: '7003' },
  })
  assert.equal(at(sent, 'updates', 0, 'random_id'), '7003')
  const { entries } = (await ask('readJournal', { after: 0 })) as {
    entries: { file_sha256: string | null }[]
  }
  assert.equal(entries.at(-1)?.file_sha256, createHash('sha256').update(bytes).digest('hex'))
}

async function downloadFile({ device, left, ask, account, mara }: Scene): Promise<void> {
  const data = randomBytes(10_000)
  await ask('writeMessage', {
    ...{ account_id: account.account_id, person_id: mara.person_id },
    file: { file_name: 'b.bin', media_type: 'application/octet-stream', data: data.toString('base64') },
  })
  const found = await device.call('messages.getHistory', { peer: left.peer, ...whole })
  const document = at(found, 'messages', 0, 'media', 'document') as TlObject
  const { id, access_hash, file_reference } = document
  const location = { _: 'inputDocumentFileLocation', id, access_hash, file_reference, thumb_size: '' }
  const parts: Uint8Array[] = []
  for (let offset = 0; offset < data.length; offset += 4096) {
    const part = await device.call('upload.getFile', { location, offset: String(offset), limit: 4096 })
    parts.push(at(part, 'bytes') as Uint8Array)
  }
  assert.ok(Buffer.concat(parts).equals(data))
}

async function takeMessage({ device, ask, account, mara, left }: Scene): Promise<void> {
  const { account_id } = account
  const written = await ask('writeMessage', { account_id, person_id: mara.person_id, text: 'News' })
  left.written = at(written, 'message_id')
  await until('the message is pushed', () =>
    device.updates.some((each) => each._ === 'updateNewMessage' && at(each, 'message', 'message') === 'News'),
  )
}

async function takeEdit({ device, ask, account, mara, left }: Scene): Promise<void> {
  const place = { account_id: account.account_id, person_id: mara.person_id, message_id: left.written }
  await ask('editMessage', { ...place, text: 'Old news' })
  await ask('deleteMessage', place)
  const isPushed = (kind: string) => device.updates.some(({ _ }) => _ === kind)
  await until('both are pushed', () => isPushed('updateEditMessage') && isPushed('updateDeleteMessages'))
}

async function catchUp({ device, ask, account, mara }: Scene): Promise<void> {
  const { pts, date, qts } = (await device.call('updates.getState')) as TlObject
  const { account_id } = account
  const { struck } = (await ask('addHostility', { case: 'cut', on: 'now', account_id })) as { struck: number }
  assert.ok(struck > 0)
  await ask('writeMessage', { account_id, person_id: mara.person_id, text: 'While you were away' })
  const missed = await device.call('updates.getDifference', { pts, date, qts })
  const texts = listAt(missed, 'new_messages').map(({ message }) => message)
  assert.deepEqual(texts, ['While you were away'])
}

async function openSecond(scene: Scene): Promise<void> {
  const { client, account, opened, left } = scene
  const second = await client.open(scene)
  opened.push(second)
  assert.match(await signIn(second, account.phone, '12345'), /SESSION_PASSWORD_NEEDED/)
  await checkPassword(second, account.password)
  await second.call('updates.getState')
  left.second = second
  // Telegram announces the code on the device that is already logged in.
  await until('the code comes from 777000', () =>
    scene.device.updates.some((each) => String(at(each, 'message', 'peer_id', 'user_id')) === '777000'),
  )
}

async function shareUpdates(scene: Scene): Promise<void> {
  const { device, left } = scene
  const second = left.second as Device
  await device.call('messages.sendMessage', { peer: left.peer, message: 'For both', random_id: '7004' })
  await until('the second device gets it', () =>
    second.updates.some((each) => at(each, 'message', 'message') === 'For both'),
  )
  assert.ok(!second.updates.some(({ _ }) => _ === 'updateMessageID'))
  const peer = await findMara(scene, second)
  await second.call('messages.sendMessage', { peer, message: 'From the second', random_id: '7005' })
  await until('the first device gets it', () =>
    device.updates.some((each) => at(each, 'message', 'message') === 'From the second'),
  )
}

async function logOut({ device, left }: Scene): Promise<void> {
  const second = left.second as Device
  assert.equal(at(await second.call('auth.logOut'), '_'), 'auth.loggedOut')
  assert.match(await refusalOf(second.call('updates.getState')), /AUTH_KEY_UNREGISTERED/)
  assert.equal(at(await device.call('updates.getState'), '_'), 'updates.state')
}
