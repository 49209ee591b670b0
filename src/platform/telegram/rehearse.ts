/**
 * A rehearsal with two accounts of the operator: twenty checks of what the product does at Telegram, with its own login, session and
 * stream of updates. The port has no edit and no deletion, so these are calls of the client below it. It keeps keys in memory only,
 * and in the end it deletes its messages and logs out what it logged in.
 */
import { createHash, randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { tl } from '@mtcute/core'
import type { ChatNumber } from '../../lib/shapes.ts'
import type { LoginStep, Sent, UploadedFile } from '../port.ts'
import type { Endpoint } from './client.ts'
import { accepted, CheckFailed, logInDevice, type RehearsalDevice, sentenceOf } from './rehearsal-device.ts'

type Asked = Extract<LoginStep, { kind: 'code' | 'password' }>

export interface RehearsalOptions {
  readonly endpoint: Endpoint
  /** International, with `+`. */
  readonly phones: readonly [first: string, second: string]
  /** A person answers. `whose`: which account logs in. */
  ask(whose: string, step: Asked): Promise<string>
  /** Called after each check. */
  progress(check: CheckReport): void
}

/** No text, no number and no key is in it. */
export interface CheckReport {
  readonly check: string
  readonly result: 'passed' | 'failed' | 'not_run'
  readonly seconds: number
  /** Null if it passed. */
  readonly why: string | null
}

export interface RehearsalReport {
  readonly passed: number
  readonly of: number
  /** The layer of Telegram's schema. */
  readonly layer: number
  readonly library: string
  readonly checks: readonly CheckReport[]
  /** What a person has to clean up. */
  readonly left_behind: readonly string[]
}

interface Check {
  readonly check: string
  run(scene: Rehearsal): Promise<void>
  /** Without it the following ones mean nothing. */
  readonly vital?: true
}

const fileBytes = 300 * 1024

export class Rehearsal {
  readonly #options: RehearsalOptions
  /** In every text, so that the rehearsal deletes nothing else. */
  readonly #nonce = randomBytes(6).toString('hex')
  readonly #devices: RehearsalDevice[] = []
  readonly #left: string[] = []
  #first: RehearsalDevice | undefined
  #second: RehearsalDevice | undefined
  #texts = 0
  /** Its messages may be in the chat. */
  #hasWritten = false
  #cleaned: Promise<void> | undefined
  /** The numbers of the two users, as each other's chats. */
  #chats: { readonly ofFirst: ChatNumber; readonly ofSecond: ChatNumber } | undefined
  #file: Buffer = Buffer.alloc(0)
  #received: string | undefined
  #latest: { readonly text: string; readonly random_id: string; readonly sent: Sent } | undefined

  constructor(options: RehearsalOptions) {
    this.#options = options
  }

  async run(): Promise<RehearsalReport> {
    const reports: CheckReport[] = []
    let isStopped = false
    for (const one of checks) {
      const report: CheckReport = isStopped ? notRun(one) : await this.#take(one)
      isStopped ||= report.result === 'failed' && one.vital === true // guard: a rehearsal stops without an account
      reports.push(report)
      this.#options.progress(report)
    }
    await this.cleanUp()
    const passed = reports.filter(({ result }) => result === 'passed').length
    return {
      passed,
      of: reports.length,
      layer: tl.LAYER,
      library: readLibrary(),
      checks: reports,
      left_behind: this.#left,
    }
  }

  async #take({ check, run }: Check): Promise<CheckReport> {
    const begun = performance.now()
    const seconds = () => Math.round((performance.now() - begun) / 100) / 10
    try {
      await run(this)
      return { check, result: 'passed', seconds: seconds(), why: null }
    } catch (error) {
      return { check, result: 'failed', seconds: seconds(), why: sentenceOf(error) }
    }
  }

  /** Once, also after an interruption: deletes its messages for both sides and logs out every device. Returns what is left. */
  async cleanUp(): Promise<readonly string[]> {
    this.#cleaned ??= this.#cleanUp()
    await this.#cleaned
    return this.#left
  }

  async #cleanUp(): Promise<void> {
    await this.#deleteAll().catch((error) => {
      this.#left.push(
        `Messages of the rehearsal may be left in the chat of the two accounts. ${sentenceOf(error)}`,
      )
    })
    for (const device of this.#devices) {
      await device.logOut().catch(async (error) => {
        await device.disconnect().catch(() => {})
        this.#left.push(
          `A login named "Parley" is left in the list of devices: end it there. ${sentenceOf(error)}`,
        )
      })
    }
  }

  /** In a private chat either side deletes for both. */
  async #deleteAll(): Promise<void> {
    const chats = this.#chats
    if (!chats || !this.#hasWritten) return
    await this.#deleteIn(this.first, chats.ofSecond).catch(() => this.#deleteIn(this.second, chats.ofFirst))
    this.#hasWritten = false
  }

  async #deleteIn(device: RehearsalDevice, chat_id: ChatNumber): Promise<void> {
    if (!device.isConnected) await device.connect()
    const messages = accepted(await device.session.history({ chat_id, before: null, limit: 100 }))
    const id = messages
      .filter(({ text }) => text.includes(this.#nonce)) // guard: only what the rehearsal wrote is deleted
      .map((message) => Number(message.id))
    if (id.length > 0) await device.session.call({ _: 'messages.deleteMessages', id, revoke: true })
  }

  get first(): RehearsalDevice {
    if (!this.#first) throw new CheckFailed('The first account is not logged in.')
    return this.#first
  }

  get second(): RehearsalDevice {
    if (!this.#second) throw new CheckFailed('The second account is not logged in.')
    return this.#second
  }

  get chats() {
    if (!this.#chats) throw new CheckFailed('The accounts do not know each other.')
    return this.#chats
  }

  async logIn(which: 0 | 1): Promise<void> {
    const { endpoint, phones, ask } = this.#options
    const phone = phones[which]
    const whose = which === 0 ? 'the first account' : 'the second account'
    let tries = 0
    const device = await logInDevice(endpoint, {
      phone,
      ask: async (step) => (step.kind === 'code' && testCodeOf(endpoint, phone, tries++)) || ask(whose, step),
    })
    this.#devices.push(device)
    if (which === 0) this.#first = device
    else this.#second = device
  }

  async find(): Promise<void> {
    const { phones } = this.#options
    const person = accepted(await this.first.session.resolve({ kind: 'phone', value: phones[1] }))
    const own = { ofFirst: this.first.session.self.id, ofSecond: this.second.session.self.id }
    if (person.id !== own.ofSecond) throw new CheckFailed('The number belongs to another user.')
    this.#chats = own as { ofFirst: ChatNumber; ofSecond: ChatNumber }
    accepted(await this.first.session.openChat(person.id))
  }

  #newText(): string {
    this.#hasWritten = true
    return `Parley rehearsal ${this.#nonce} ${++this.#texts}`
  }

  /** Sends a new text, and waits until the other side has it. */
  async exchange(from: 'first' | 'second', file: UploadedFile | null = null): Promise<void> {
    const [sender, receiver, chat_id] =
      from === 'first'
        ? ([this.first, this.second, this.chats.ofSecond] as const)
        : ([this.second, this.first, this.chats.ofFirst] as const)
    const mark = receiver.mark
    const text = this.#newText()
    const random_id = randomBytes(8).readBigInt64BE().toString()
    const sent = accepted(await sender.session.send({ chat_id, text, file, random_id }))
    const { message } = await receiver.next(mark, 'message', (update) => update.message.text === text)
    if (message.is_sender) throw new CheckFailed('The receiver shows the message as its own.')
    this.#latest = { text, random_id, sent }
    this.#received = message.id
  }

  get latest() {
    if (!this.#latest || this.#received === undefined) throw new CheckFailed('No message was sent.')
    return { ...this.#latest, received: this.#received }
  }

  async #countOf(device: RehearsalDevice, chat_id: ChatNumber, text: string): Promise<number> {
    const messages = accepted(await device.session.history({ chat_id, before: null, limit: 50 }))
    return messages.filter((message) => message.text === text).length
  }

  async compareHistory(): Promise<void> {
    const read = async (device: RehearsalDevice, chat_id: ChatNumber) => {
      const messages = accepted(await device.session.history({ chat_id, before: null, limit: 50 }))
      return messages.map(({ text }) => text).filter((text) => text.includes(this.#nonce))
    }
    const ours = await read(this.first, this.chats.ofSecond)
    const theirs = await read(this.second, this.chats.ofFirst)
    if (ours.length < 2 || ours.join('\n') !== theirs.join('\n'))
      throw new CheckFailed(`One side shows ${ours.length} messages, the other ${theirs.length}, or others.`)
  }

  async listChats(): Promise<void> {
    const { chats } = accepted(await this.first.session.chats({ after: null, limit: 100 }))
    const own = chats.find(({ chat }) => chat.id === this.chats.ofSecond)
    if (own?.last?.text !== this.latest.text)
      throw new CheckFailed('The first page of chats does not show the latest message.')
  }

  async edit(): Promise<void> {
    await this.exchange('first')
    const mark = this.second.mark
    const text = `${this.latest.text} edited`
    const peer = this.first.session.peers.findInput(this.chats.ofSecond)
    if (!peer) throw new CheckFailed('The first account does not know the second.')
    const id = Number(this.latest.sent.message_id)
    this.first.session.feed(
      await this.first.session.call({ _: 'messages.editMessage', peer, id, message: text }),
    )
    const { message } = await this.second.next(mark, 'edited', (update) => update.message.text === text)
    if (message.id !== this.latest.received) throw new CheckFailed('Another message was edited.')
  }

  async read(): Promise<void> {
    await this.exchange('first')
    const mark = this.first.mark
    accepted(await this.second.session.setReadState(this.chats.ofFirst, false))
    const upTo = BigInt(this.latest.sent.message_id)
    await this.first.next(mark, 'read_by_them', (update) => BigInt(update.up_to_message_id) >= upTo)
  }

  async markUnread(): Promise<void> {
    const { unread_count } = accepted(await this.second.session.setReadState(this.chats.ofFirst, true))
    if (unread_count < 1) throw new CheckFailed('The chat is not unread.')
    accepted(await this.second.session.setReadState(this.chats.ofFirst, false))
  }

  async sendFile(): Promise<void> {
    this.#file = randomBytes(fileBytes)
    const file = { file_name: 'rehearsal.bin', media_type: 'application/octet-stream', size: fileBytes }
    const bytes = this.#file
    const chunks = (async function* () {
      yield bytes
    })()
    await this.exchange('first', accepted(await this.first.session.upload({ ...file, chunks })))
  }

  async download(): Promise<void> {
    const place = { chat_id: this.chats.ofFirst, message_id: this.latest.received, index: 0 }
    const hash = createHash('sha256')
    for await (const chunk of accepted(await this.second.session.download(place)).chunks)
      hash.update(accepted(chunk))
    const wanted = createHash('sha256').update(this.#file).digest('hex')
    if (hash.digest('hex') !== wanted) throw new CheckFailed('The bytes are not those that were sent.')
  }

  /** Telegram may answer with the first message, or with an error; a second message is what must not be. */
  async repeat(): Promise<void> {
    await this.exchange('first')
    const { text, random_id } = this.latest
    const outcome = await this.first.session.send({
      chat_id: this.chats.ofSecond,
      text,
      file: null,
      random_id,
    })
    if (outcome.kind === 'flood_wait') accepted(outcome)
    const count = await this.#countOf(this.second, this.chats.ofFirst, text)
    if (count !== 1) throw new CheckFailed(`The message is there ${count} times.`)
  }

  async reconnect(): Promise<void> {
    const mark = this.first.mark
    await this.first.disconnect()
    const text = this.#newText()
    const random_id = randomBytes(8).readBigInt64BE().toString()
    accepted(await this.second.session.send({ chat_id: this.chats.ofFirst, text, file: null, random_id }))
    await this.first.connect()
    await this.first.next(mark, 'message', ({ message }) => message.text === text)
    const again = this.first.since(mark, 'message', ({ message }) => message.text.includes(this.#nonce))
    if (again.length !== 1) throw new CheckFailed(`It got ${again.length} messages instead of one.`)
  }

  /** The first device scans the code of the second, as a phone does. */
  async logInAgain(): Promise<RehearsalDevice> {
    const { endpoint, ask } = this.#options
    const device = await logInDevice(endpoint, {
      phone: null,
      ask: (step) => ask('the second device of the first account', step),
      scan: async (url) => {
        const token = Buffer.from(new URL(url).searchParams.get('token') ?? '', 'base64url')
        await this.first.session.call({ _: 'auth.acceptLoginToken', token })
      },
    })
    this.#devices.push(device)
    await device.connect()
    if (device.session.self.id !== this.chats.ofFirst) throw new CheckFailed('It is another user.')
    return device
  }

  async shareSends(): Promise<void> {
    const other = this.#devices[2]
    if (!other) throw new CheckFailed('There is no second device.')
    const mark = other.mark
    await this.exchange('first')
    const { text } = this.latest
    const { message } = await other.next(mark, 'message', (update) => update.message.text === text)
    if (!message.is_sender) throw new CheckFailed('The second device shows the message as received.')
  }

  async delete(): Promise<void> {
    await this.exchange('first')
    const mark = this.second.mark
    const id = [Number(this.latest.sent.message_id)]
    await this.first.session.call({ _: 'messages.deleteMessages', id, revoke: true })
    await this.second.next(mark, 'deleted', ({ message_ids }) => message_ids.includes(this.latest.received))
  }

  async logOut(): Promise<void> {
    await this.#deleteAll()
    for (const device of this.#devices) await device.logOut()
    for (const device of this.#devices)
      if (!(await device.isRefused())) throw new CheckFailed('Telegram still accepts a login that was ended.')
  }
}

const checks: readonly Check[] = [
  { check: 'the first account logs in', run: (scene) => scene.logIn(0), vital: true },
  { check: 'the second account logs in', run: (scene) => scene.logIn(1), vital: true },
  { check: 'the first account connects', run: (scene) => scene.first.connect(), vital: true },
  { check: 'the second account connects', run: (scene) => scene.second.connect(), vital: true },
  { check: 'the first finds the second by its number', run: (scene) => scene.find(), vital: true },
  { check: 'a message of the first arrives', run: (scene) => scene.exchange('first'), vital: true },
  { check: 'a message of the second arrives', run: (scene) => scene.exchange('second'), vital: true },
  { check: 'both sides have the same history', run: (scene) => scene.compareHistory() },
  { check: 'the list of chats shows the latest message', run: (scene) => scene.listChats() },
  { check: 'an edit arrives', run: (scene) => scene.edit() },
  { check: 'the sender sees that it was read', run: (scene) => scene.read() },
  { check: 'a chat is marked unread', run: (scene) => scene.markUnread() },
  { check: 'a file arrives', run: (scene) => scene.sendFile() },
  { check: 'the file is downloaded byte for byte', run: (scene) => scene.download() },
  { check: 'a repeated random id makes no second message', run: (scene) => scene.repeat() },
  { check: 'a reconnect misses and repeats nothing', run: (scene) => scene.reconnect() },
  {
    check: 'a second device logs in by a QR code',
    run: async (scene) => {
      await scene.logInAgain()
    },
  },
  { check: 'the second device gets what the first sends', run: (scene) => scene.shareSends() },
  { check: 'a deletion arrives', run: (scene) => scene.delete() },
  { check: 'logging out ends every login', run: (scene) => scene.logOut() },
]

function notRun({ check }: Check): CheckReport {
  return { check, result: 'not_run', seconds: 0, why: 'It needs what failed before.' }
}

/**
 * The code of a number of Telegram's test servers, 99966XYYYY: the data centre's number, five times or six
 * (core.telegram.org/api/auth, "Test accounts"). Undefined: a person has to type it.
 */
export function testCodeOf({ test_dc }: Endpoint, phone: string, tries: number): string | undefined {
  const [, dc] = /^\+?99966(\d)\d{4}$/.exec(phone) ?? []
  if (dc === undefined || test_dc?.testMode !== true) return undefined // guard: codes are made up on test servers alone
  return [dc.repeat(5), dc.repeat(6)][tries]
}

function readLibrary(): string {
  const file = join(import.meta.dirname, '..', '..', '..', 'package.json')
  const { dependencies } = JSON.parse(readFileSync(file, 'utf8'))
  return `@mtcute/core ${dependencies['@mtcute/core']}`
}
