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
import { deleteMessage, editMessage, readMessages, writeFromPhone, writeMessage } from './person-acts.ts'
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
      'Adds a person that accounts can write to. `behaviour` is how they react to a message: `silent` (the default) ' +
      'ignores it, `reads` reads it, `replies` reads and answers it, `stops` reads it and asks to stop, `blocks` refuses ' +
      `every message. They react after \`delay_seconds\` (${delaySecondsDefault} by default). A username that ends in "bot" is a bot.`,
    body: z.strictObject({
      username: username.optional(),
      name,
      phone: phone.optional(),
      phone_visible_to: z.array(account_id).max(1000).optional(),
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
    name: 'changePerson',
    method: 'PATCH',
    path: '/people/{person_id}',
    summary: 'Change a person',
    description:
      'Changes the given fields; null removes a username or phone number. One that somebody else has passes to this person at ' +
      'once. Only accounts that have the person in a chat get an update. `phone_visible_to` names the accounts that see the ' +
      'number; null: all of them. Every account finds the person by it.',
    params: z.strictObject({ person_id: z.coerce.number().int().positive() }),
    body: z.strictObject({
      name: name.optional(),
      username: username.nullable().optional(),
      phone: phone.nullable().optional(),
      phone_visible_to: z.array(account_id).max(1000).nullable().optional(),
    }),
    query: null,
    response: z.strictObject({
      person_id,
      name,
      username: username.nullable(),
      phone: phone.nullable(),
      phone_visible_to: z.array(account_id).nullable(),
    }),
    example: {
      params: { person_id: person },
      request: { username: 'mara_lind_2' },
      response: {
        person_id: person,
        name: 'Mara Lind',
        username: 'mara_lind_2',
        phone: null,
        phone_visible_to: null,
      },
    },
    handle: (world, { params, body }) => {
      const changed = world.changePerson(params.person_id, body)
      const { person_id: id, name: called, username: known, phone: number } = changed
      const phone_visible_to = [...(changed.phone_visible_to ?? [])]
      return {
        ...{ person_id: id, name: called, username: known, phone: number },
        phone_visible_to: changed.phone_visible_to ? phone_visible_to : null,
      }
    },
  }),
  operation({
    name: 'writeMessage',
    method: 'POST',
    path: '/messages',
    summary: 'Write to an account as a person',
    description:
      'Sends a private message, or one to the group that `chat_id` names, with a text, a file or both. `at` is the time of ' +
      'the message.',
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
    name: 'writeFromPhone',
    method: 'POST',
    path: '/phone-messages',
    summary: "Write to a person on the account's phone",
    description:
      'Sends a private message of the account that Parley has not sent: it has no random id, as one from another device. ' +
      '`at` is the time of the message.',
    body: z.strictObject({ account_id, person_id, text, at: time.optional() }),
    query: null,
    response: z.strictObject({ message_id: z.int().positive() }),
    example: {
      request: { account_id: account, person_id: person, text: 'As we agreed on the phone: Tuesday.' },
      response: { message_id: 18 },
    },
    handle: (world, { body: { at: when, ...writing } }) => ({
      message_id: writeFromPhone(world, { ...writing, at: when?.toISOString() }),
    }),
  }),
  operation({
    name: 'addGroup',
    method: 'POST',
    path: '/groups',
    summary: 'Add a group to an account',
    description:
      'The account and the given people are its members. A group with a username can be looked up.',
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
    summary: "Read an account's messages as a person",
    description: 'Up to a message, or all of it. Returns how far they have read; 0 means nothing.',
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
    summary: "Edit a person's message",
    description:
      'The account gets an update about the edit, unless nothing changes. A file replaces the one before.',
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
    summary: 'Delete a message for both sides',
    description: 'The person deletes one of their own messages, or any message of the private chat.',
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
    summary: 'Add a fault',
    description:
      'Makes the platform misbehave in the next `times` calls (1 by default; 0: until cleared) of one account, or of any. ' +
      '`refuse`: refuses permanently; `error` names the refusal, such as `cold_stopped`, or a Telegram error, preceded by ' +
      'its code unless that is 400, such as `401 SESSION_REVOKED`. `flood_wait`: refuses for `seconds`. `unavailable`: ' +
      'returns an error and does nothing. `slow`: acts after `seconds`. `timeout_before`: neither acts nor answers. ' +
      '`timeout_after`: acts and never answers. `drop_after`: acts, then cuts the connection. `resend`: acts, never ' +
      'answers, and over MTProto reports the message as not received, so that the client sends it again. `freeze`: ' +
      'keeps the connection open and silent in both directions for `seconds`. Updates have `late` (enters the stream ' +
      '`seconds` later, after newer updates) and `twice`, and of the others only `slow`, `drop_after` and `freeze`.',
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
    description:
      'Faults that have already taken effect last as long as planned: a frozen connection stays frozen.',
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
    summary: 'Get the journal of accepted calls',
    description:
      'Lists every call that the platform accepted, in order. Each is on disk before it is answered, and repeats are kept: ' +
      'compare it with what Parley says it sent.',
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
