/** The calls that the data centre adds to the control address of its sandbox: everything that only Telegram has. */
import { z } from 'zod'
import { ApiError } from '../../../src/lib/errors.ts'
import { exampleAccountId } from '../../../src/lib/examples.ts'
import { time } from '../../../src/lib/shapes.ts'
import { type ControlOperation, operation } from '../../../src/platform/control-operation.ts'
import { digitsOf } from '../../../src/platform/sandbox/people.ts'
import { channelIdOf } from './channels.ts'
import { codePlanDefault, codeWays } from './codes.ts'
import { networkOperations } from './control-network.ts'
import type { DataCentre } from './data-centre.ts'
import { serviceId, writeFromTelegram } from './service-chat.ts'

const account_id = z.string().min(1).max(200).describe('How the journal and the other calls name it.')
const phone = z.string().regex(/^\+?\d{5,20}$/)
const person_id = z.int().positive()
const channel_id = z.int().positive()
const name = z.string().min(1).max(200)
const text = z.string().min(1).max(4096)
const password = z.string().min(1).max(200)
const done = z.strictObject({ done: z.literal(true) })

export const centreOperations: readonly ControlOperation<DataCentre>[] = [
  operation({
    name: 'addAccount',
    method: 'POST',
    path: '/accounts',
    summary: 'Add an account',
    description:
      'Adds an account that can log in over MTProto: with the code 12345 or a QR code, then with its two-step `password` if it ' +
      'has one. Numbers that begin with +999664 belong to the second data centre.',
    body: z.strictObject({ account_id, name, phone: phone.optional(), password: password.optional() }),
    query: null,
    response: z.strictObject({ person_id }),
    example: {
      request: { account_id: exampleAccountId, name: 'Sales desk', phone: '+9996620001', password: 'horse' },
      response: { person_id: 1043 },
    },
    handle: ({ world, addAccount }, { body }) => {
      if (world.state.accounts.has(body.account_id)) {
        throw new ApiError('invalid_request', { detail: 'The sandbox already has this account.' })
      }
      return { person_id: addAccount(body).person_id }
    },
  }),
  operation({
    name: 'setPassword',
    method: 'POST',
    path: '/passwords',
    summary: 'Change the two-step password of an account',
    description: 'Null removes it. A login that was asked for the former one gets SRP_PASSWORD_CHANGED.',
    body: z.strictObject({ account_id, password: password.nullable() }),
    query: null,
    response: done,
    example: { request: { account_id: exampleAccountId, password: null }, response: { done: true } },
    handle: ({ world, store }, { body }) => {
      world.requireAccount(body.account_id)
      store.commit({ entry: 'password', ...body })
      return { done: true as const }
    },
  }),
  operation({
    name: 'setCodes',
    method: 'POST',
    path: '/codes',
    summary: 'Choose how login codes reach a number',
    description:
      'The first of `ways`; each `auth.resendCode` uses the next one. The code is 12345, for `word` "pelican", for `phrase` "seven ' +
      'pelicans sleep", for `flash_call` 15550112345. `payment` asks for money instead. A code for the `app` also comes as a ' +
      'message of the chat 777000, if the account is logged in anywhere.',
    body: z.strictObject({
      phone,
      ways: z.array(z.enum(codeWays)).min(1).max(10),
      timeout_seconds: z.int().min(0).max(86_400).default(codePlanDefault.timeout_seconds),
    }),
    query: null,
    response: done,
    example: { request: { phone: '+9996620001', ways: ['email', 'sms'] }, response: { done: true } },
    handle: ({ store }, { body: { phone: number, ...plan } }) => {
      store.commit({ entry: 'codes', phone: digitsOf(number), plan })
      return { done: true as const }
    },
  }),
  operation({
    name: 'acceptLogin',
    method: 'POST',
    path: '/logins',
    summary: 'Accept the QR code of a login',
    description: 'The account with this phone number scans the newest QR code that a client shows.',
    body: z.strictObject({ phone }),
    query: null,
    response: z.strictObject({ account_id: z.string() }),
    example: { request: { phone: '+9996620001' }, response: { account_id: exampleAccountId } },
    handle: ({ world, acceptLogin }, { body }) => {
      const found = world.findAccountByPhone(body.phone)
      if (!found) throw new ApiError('not_found', { detail: 'The sandbox has no account with this number.' })
      if (!acceptLogin(found)) {
        throw new ApiError('invalid_request', {
          detail: 'No login is waiting for its QR code to be accepted.',
        })
      }
      return { account_id: found.account_id }
    },
  }),
  operation({
    name: 'writeServiceMessage',
    method: 'POST',
    path: '/service',
    summary: 'Write to an account as Telegram',
    description: `A message of the chat ${serviceId}.`,
    body: z.strictObject({ account_id, text }),
    query: null,
    response: z.strictObject({ message_id: z.int().positive() }),
    example: {
      request: { account_id: exampleAccountId, text: 'Login code: 12345.' },
      response: { message_id: 17 },
    },
    handle: ({ world }, { body }) => ({ message_id: writeFromTelegram(world, body.account_id, body.text) }),
  }),
  operation({
    name: 'addChannel',
    method: 'POST',
    path: '/channels',
    summary: 'Add a channel or a supergroup',
    description: 'Its messages and their numbers are the same for all accounts that are members.',
    body: z.strictObject({
      title: name,
      username: z
        .string()
        .regex(/^[A-Za-z][A-Za-z0-9_]{0,63}$/)
        .optional(),
      kind: z.enum(['channel', 'supergroup']).optional(),
      account_ids: z.array(account_id).max(1000),
    }),
    query: null,
    response: z.strictObject({ channel_id, chat_id: z.int().negative() }),
    example: {
      request: { title: 'Sailors', account_ids: [exampleAccountId] },
      response: { channel_id: 1, chat_id: -1000000000001 },
    },
    handle: ({ world, addChannel }, { body }) => {
      for (const id of body.account_ids) world.requireAccount(id)
      return addChannel(body)
    },
  }),
  operation({
    name: 'writeInChannel',
    method: 'POST',
    path: '/channel-messages',
    summary: 'Write in a channel or a supergroup',
    description:
      'Every open connection of every member gets the message with its author. A `person_id` that the sandbox does not know is ' +
      'a stranger. `count` writes as many, each by the next person. `at` is the time of the message.',
    body: z.strictObject({
      channel_id,
      person_id,
      text,
      at: time.optional(),
      count: z.int().min(1).max(10_000).default(1),
    }),
    query: null,
    response: z.strictObject({ message_id: z.int().positive() }),
    example: {
      request: { channel_id: 1, person_id: 5000000000, text: 'Fair winds.' },
      response: { message_id: 3 },
    },
    handle: async ({ writeInChannel }, { body: { count, person_id: first, at, ...post } }) => {
      let message_id = 0
      for (let n = 0; n < count; n++) {
        message_id = await writeInChannel({ ...post, person_id: first + n, at: at?.toISOString() })
      }
      return { message_id }
    },
  }),
  operation({
    name: 'placeChat',
    method: 'POST',
    path: '/placed',
    summary: 'Pin or archive a chat of an account',
    description: 'Replaces what was said about the chat before.',
    body: z.strictObject({
      account_id,
      chat_id: z.int(),
      pinned: z.boolean().default(false),
      archived: z.boolean().default(false),
    }),
    query: null,
    response: done,
    example: {
      request: { account_id: exampleAccountId, chat_id: -1000000000001, archived: true },
      response: { done: true },
    },
    handle: ({ world, store }, { body }) => {
      const channel = channelIdOf(body.chat_id)
      if (channel === undefined) world.requireChat(body.account_id, body.chat_id)
      else if (!store.state.channels.has(channel)) {
        throw new ApiError('not_found', { detail: 'There is no such channel.' })
      }
      store.commit({ entry: 'placed', ...body })
      return { done: true as const }
    },
  }),
  operation({
    name: 'setShort',
    method: 'POST',
    path: '/short',
    summary: 'Push the texts of an account alone',
    description:
      'From now on a text comes as `updateShortMessage` or `updateShortChatMessage`, without the people it names, unless something ' +
      'else happened at the same moment. `false` ends it.',
    body: z.strictObject({ account_id, short: z.boolean() }),
    query: null,
    response: done,
    example: { request: { account_id: exampleAccountId, short: true }, response: { done: true } },
    handle: ({ world, short: accounts }, { body: { account_id: id, short } }) => {
      world.requireAccount(id)
      if (short) accounts.add(id)
      else accounts.delete(id)
      return { done: true as const }
    },
  }),
  ...networkOperations,
]
