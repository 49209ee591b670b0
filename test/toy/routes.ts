/** A route of each effect. */
import { z } from 'zod'
import { accountId, chatId, text } from '../../src/lib/shapes.ts'
import { ok, type Route, route } from '../../src/route.ts'
import { addReminder, listReminders } from './toy.ts'
import { wantWave, wave } from './wave.ts'

const reminder = z.object({
  id: z.string(),
  note: z.string(),
  due_at: z.date(),
  told_at: z.date().nullable(),
})

export const routes: readonly Route[] = [
  route({
    name: 'toy_list_reminders',
    method: 'GET',
    path: '/toy/reminders',
    summary: 'Reminders',
    scopes: ['read'],
    effect: 'read',
    response: z.object({ reminders: z.array(reminder) }),
    example: { response: { reminders: [] } },
    handle: async ({ db }, { caller }) => ok({ reminders: await listReminders(db, caller) }),
  }),
  route({
    name: 'toy_add_reminder',
    method: 'POST',
    path: '/toy/reminders',
    summary: 'Adds a reminder',
    scopes: ['write'],
    idempotency: 'required',
    effect: 'local',
    touches: ['chats'],
    body: z.strictObject({ note: text(200), in_seconds: z.int().min(0).max(1e9) }),
    response: z.object({ reminder }),
    example: { body: { note: 'Call back', in_seconds: 60 }, response: {} },
    handle: async (_, tx, { caller, body }) => ok({ reminder: await addReminder(tx, caller, body) }),
  }),
  route({
    name: 'toy_wave',
    method: 'POST',
    path: '/toy/{chat_id}/wave',
    summary: 'Waves to a person',
    scopes: ['send'],
    idempotency: 'required',
    account: 'required',
    effect: 'platform',
    touches: ['messages'],
    operation: wave,
    flood: 429,
    params: z.strictObject({ chat_id: chatId }),
    body: z.strictObject({ account_id: accountId, times: z.int().min(1).max(9) }),
    response: z.object({ operation_id: z.string(), message_id: z.string() }),
    example: {
      params: { chat_id: 'platform:chat:42' },
      body: { account_id: 'acc_1', times: 1 },
      response: {},
    },
    handle: (app, { accounts, params: { chat_id }, body: { times } }) =>
      wantWave(app, accounts, { chat_id, times }),
  }),
]
