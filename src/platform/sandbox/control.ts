/**
 * The calls of the sandbox's control address, as data: the server and the reference page both read this list. It does not
 * include moving the clock, which belongs to the owner of the clock.
 */
import { z } from 'zod'
import { ApiError } from '../../lib/errors.ts'
import { exampleAccountId, examplePerson } from '../../lib/examples.ts'
import { time } from '../../lib/shapes.ts'
import { lengthOf } from '../../lib/text.ts'
import { type ControlOperation, operation } from '../control-operation.ts'
import { platformRefusals } from '../port.ts'
import { givenFile, makeFile } from './control-files.ts'
import { faultKinds, faultTargets } from './faults.ts'
import { behaviours, delaySecondsDefault } from './people.ts'
import { deleteMessage, editMessage, readMessages, writeMessage } from './person-acts.ts'
import type { World } from './world.ts'

const account_id = z.string().min(1).max(200).describe('An account that has connected to this sandbox.')
const person_id = z.int().positive()
const message_id = z
  .union([z.int().positive(), z.string().regex(/^[1-9]\d{0,14}$/)])
  .describe('As an integer or, as the API shows it, as a decimal string.')
const name = z.string().min(1).max(200)
const username = z.string().regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/)
const text = z
  .string()
  .min(1)
  .refine((value) => lengthOf(value) <= 4096, 'A text has at most 4096 characters.')
const phone = z.string().regex(/^\+?\d{5,20}$/)
const newAccountId = z.string().min(1).max(200).describe('How the journal and the other calls name it.')
const password = z.string().min(1).max(200).optional()
const seconds = z.number().min(0).max(31_536_000)

const journalEntry = z.strictObject({
  seq: z.int().positive(),
  kind: z.enum(['send', 'start', 'read_state']),
  account_id: z.string(),
  chat_id: z.string(),
  text: z.string().nullable(),
  random_id: z.string().nullable(),
  file_sha256: z.string().nullable(),
  at: z.iso.datetime(),
})

const account = exampleAccountId
const person = examplePerson.person_id
const at = '2026-11-02T09:30:00.000Z'

export const controlOperations: readonly ControlOperation<World>[] = [
  operation({
    name: 'addPerson',
    method: 'POST',
    path: '/people',
    summary: 'Add a person',
    description:
      'Somebody an account can write to. `behaviour` says what they do with a message, `delay_seconds` ' +
      `(${delaySecondsDefault} unless told) how long after it: nothing (silent, the default), read it (reads), ` +
      'read and answer it (replies), read it and ask to stop (stops); `blocks` refuses every message. ' +
      'A username that ends in "bot" is a bot.',
    body: z.strictObject({
      username: username.optional(),
      name,
      phone: phone.optional(),
      kind: z.enum(['person', 'bot', 'deleted']).optional(),
      behaviour: z.enum(behaviours).optional(),
      reply_text: text.optional(),
      delay_seconds: seconds.optional(),
    }),
    query: null,
    response: z.strictObject({ person_id }),
    example: {
      request: { username: 'mara_lind', name: 'Mara Lind', behaviour: 'replies', delay_seconds: 5 },
      response: { person_id: 1042 },
    },
    handle: (world, { body }) => ({ person_id: world.addPerson(body).person_id }),
  }),
  operation({
    name: 'addAccount',
    method: 'POST',
    path: '/accounts',
    summary: 'Add an account',
    description:
      'For logins over MTProto (`parley sandbox --mtproto-port`): with the code 12345, or a QR code, and then the ' +
      'two-step `password` if it has one. Numbers that begin with +999664 live at the second data centre. Accounts ' +
      'of the platform `sandbox` need no such call: they are made when they connect.',
    body: z.strictObject({ account_id: newAccountId, name, phone: phone.optional(), password }),
    query: null,
    response: z.strictObject({ person_id }),
    example: {
      request: { account_id: account, name: 'Sales desk', phone: '+9996620001', password: 'correct horse' },
      response: { person_id: 1043 },
    },
    handle: (world, { body }) => {
      if (world.state.accounts.has(body.account_id)) {
        throw new ApiError('invalid_request', { detail: 'The sandbox has this account already.' })
      }
      return { person_id: world.addAccount(body).person_id }
    },
  }),
  operation({
    name: 'acceptLogin',
    method: 'POST',
    path: '/logins',
    summary: 'Accept the QR code of a login',
    description:
      'The account with this phone number scans the newest QR code that a client of the data centre shows.',
    body: z.strictObject({ phone }),
    query: null,
    response: z.strictObject({ account_id: z.string() }),
    example: { request: { phone: '+9996620001' }, response: { account_id: account } },
    handle: (world, { body }) => {
      const found = world.findAccountByPhone(body.phone)
      if (!found) throw new ApiError('not_found', { detail: 'The sandbox has no account with this number.' })
      if (!world.acceptLogin?.(found)) {
        throw new ApiError('invalid_request', { detail: 'No login waits for its QR code to be accepted.' })
      }
      return { account_id: found.account_id }
    },
  }),
  operation({
    name: 'writeMessage',
    method: 'POST',
    path: '/messages',
    summary: 'Let a person write to an account',
    description:
      'A private message, or one in a group when `chat_id` names it, with a text, a file or both. `at` is the time the message ' +
      'carries.',
    body: z.strictObject({
      account_id,
      person_id,
      chat_id: z.int().negative().optional(),
      text: text.optional(),
      file: givenFile.optional(),
      at: time.optional(),
    }),
    query: null,
    response: z.strictObject({ message_id: z.int().positive() }),
    example: {
      request: { account_id: account, person_id: person, text: 'Is this still available?' },
      response: { message_id: 17 },
    },
    handle: (world, { body: { at: when, text: said, file, ...writing } }) => {
      if (said === undefined && !file) {
        throw new ApiError('invalid_request', { detail: 'A message needs a text or a file.' })
      }
      const written = { ...writing, text: said ?? '', file: file && makeFile(file), at: when?.toISOString() }
      return { message_id: writeMessage(world, written) }
    },
  }),
  operation({
    name: 'addGroup',
    method: 'POST',
    path: '/groups',
    summary: 'Add a group to an account',
    description: 'The account and the given people are its members. With a username it can be looked up.',
    body: z.strictObject({
      account_id,
      name,
      username: username.optional(),
      members: z.array(person_id).max(1000).optional(),
    }),
    query: null,
    response: z.strictObject({ chat_id: z.int().negative() }),
    example: {
      request: { account_id: account, name: 'Founders breakfast', members: [person] },
      response: { chat_id: -1 },
    },
    handle: (world, { body }) => ({ chat_id: world.addGroup(body) }),
  }),
  operation({
    name: 'readMessages',
    method: 'POST',
    path: '/read',
    summary: 'Let a person read what an account wrote',
    description: 'Up to a message, or all of it. Answers how far they have read; 0 is nothing.',
    body: z.strictObject({ account_id, person_id, up_to_message_id: message_id.optional() }),
    query: null,
    response: z.strictObject({ up_to_message_id: z.int().nonnegative() }),
    example: {
      request: { account_id: account, person_id: person },
      response: { up_to_message_id: 16 },
    },
    handle: (world, { body: { up_to_message_id: last, ...by } }) => {
      const up_to_message_id = last === undefined ? undefined : Number(last)
      return { up_to_message_id: readMessages(world, { ...by, up_to_message_id }) }
    },
  }),
  operation({
    name: 'editMessage',
    method: 'POST',
    path: '/edit',
    summary: 'Let a person edit a message of theirs',
    description: 'The account hears of it as an edit. A file replaces the one before.',
    body: z.strictObject({ account_id, person_id, message_id, text, file: givenFile.optional() }),
    query: null,
    response: z.strictObject({ message_id: z.int().positive() }),
    example: {
      request: { account_id: account, person_id: person, message_id: 17, text: 'Is it still available?' },
      response: { message_id: 17 },
    },
    handle: (world, { body }) => {
      const edited = Number(body.message_id)
      editMessage(world, { ...body, message_id: edited, file: body.file && makeFile(body.file) })
      return { message_id: edited }
    },
  }),
  operation({
    name: 'deleteMessage',
    method: 'POST',
    path: '/delete',
    summary: 'Let a person delete a message for both sides',
    description: 'One of their own, or any of the private chat.',
    body: z.strictObject({ account_id, person_id, message_id }),
    query: null,
    response: z.strictObject({ message_id: z.int().positive() }),
    example: {
      request: { account_id: account, person_id: person, message_id: 17 },
      response: { message_id: 17 },
    },
    handle: (world, { body }) => {
      const deleted = Number(body.message_id)
      deleteMessage(world, { ...body, message_id: deleted })
      return { message_id: deleted }
    },
  }),
  operation({
    name: 'addFault',
    method: 'POST',
    path: '/faults',
    summary: 'Make the platform misbehave',
    description:
      'Strikes the next `times` calls (1 unless told; 0 is until cleared) of one account, or of any. `refuse`: no, ' +
      'for good; `error` names the refusal, as in `cold_stopped`, or a Telegram error, with its code in front where it is ' +
      'not 400, as in `401 SESSION_REVOKED`. `flood_wait`: no, for `seconds`. `unavailable`: an error instead of an answer, and ' +
      'nothing done. `slow`: done after `seconds`. `timeout_before`: neither done nor answered. `timeout_after`: done, never ' +
      'answered. `drop_after`: done, then the connection breaks. `resend`: done, never answered, and over MTProto ' +
      'reported as never received, so that the client sends it again. `freeze`: the connection stays open and is silent ' +
      'in both directions for `seconds`. On updates only: `late` (enters the stream `seconds` later, others pass ' +
      'it) and `twice`; of the rest updates know `slow`, `drop_after` and `freeze`.',
    body: z.strictObject({
      on: z.enum(faultTargets),
      fault: z.enum(faultKinds),
      seconds: seconds.optional(),
      times: z.int().min(0).max(1_000_000).optional(),
      account_id: account_id.optional(),
      error: z
        .union([z.enum(platformRefusals), z.string().regex(/^(-?\d{1,3} )?[A-Z][A-Z0-9_]{1,99}$/)])
        .optional(),
    }),
    query: null,
    response: z.strictObject({ fault_id: z.int().positive() }),
    example: {
      request: { on: 'send', fault: 'timeout_after', times: 1, account_id: account },
      response: { fault_id: 1 },
    },
    handle: (world, { body }) => ({ fault_id: world.addFault(body).fault_id }),
  }),
  operation({
    name: 'clearFaults',
    method: 'DELETE',
    path: '/faults',
    summary: 'Clear every fault',
    description: 'What has struck already stays as it is: a frozen connection thaws in its own time.',
    body: null,
    query: null,
    response: z.strictObject({ cleared: z.int().nonnegative() }),
    example: { request: null, response: { cleared: 1 } },
    handle: (world) => {
      const cleared = world.state.faults.length
      world.clearFaults()
      return { cleared }
    },
  }),
  operation({
    name: 'readJournal',
    method: 'GET',
    path: '/journal',
    summary: 'Read what the platform accepted',
    description:
      'Every accepted call in order, on disk before it was answered and never de-duplicated: the witness of what ' +
      'was really sent.',
    body: null,
    query: z.strictObject({ after: z.coerce.number().int().min(0).default(0) }),
    response: z.strictObject({ entries: z.array(journalEntry) }),
    example: {
      request: { after: 41 },
      response: {
        entries: [
          {
            seq: 42,
            kind: 'send',
            account_id: account,
            chat_id: 'platform:chat:1002',
            text: 'Hello Mara, a quick question.',
            random_id: '-6917529027641081856',
            file_sha256: null,
            at,
          },
        ],
      },
    },
    handle: async (world, { query }) => {
      const entries = [...world.journal(query.after)]
      await world.durable()
      return { entries }
    },
  }),
]
