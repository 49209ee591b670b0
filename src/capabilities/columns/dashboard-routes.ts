/** Columns and their options on the dashboard, for admins and owners. The contract's `GET /columns` lists them. */
import { z } from 'zod'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { isUuid } from '../../lib/ids.ts'
import { color, newColor, place, text } from '../../lib/shapes.ts'
import { count, said } from '../../lib/wire.ts'
import { ok, type Reply, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { column } from './column-shapes.ts'
import {
  addOption,
  columnTypes,
  createColumn,
  deleteColumn,
  deleteOption,
  requireColumn,
  updateColumn,
  updateOption,
} from './columns.ts'

const admins = { scopes: [], role: 'admin', gates: ['crm'] } as const

const example = {
  id: '0199a1f0-0000-7000-8000-00000000000a',
  name: 'Plan',
  type: 'select',
  options: [{ value: 'Team', color: 'blue' }],
}
const one = z.object({ column })
const answer = { column: example }

/** About one column. Its id is compared as text later on, so it has its canonical form. */
const ofColumn = {
  ...admins,
  params: z.strictObject({
    column_id: z
      .string()
      .refine(isUuid)
      .transform((id) => id.toLowerCase()),
  }),
  malformed: 'column_not_found',
} as const
const params = { column_id: example.id }

const message = said('What was done, as a sentence.')
const option = text(200).meta({ description: 'The option.' })
const newOption = z.strictObject({ value: option, color: newColor })
const optionKept = 'The option was deleted. Chats that have it keep it, and it can no longer be set.'

const columnRoutes: readonly Route[] = [
  route({
    ...admins,
    name: 'create_column',
    method: 'POST',
    path: '/columns',
    summary: 'Add a column at the end',
    effect: 'admin',
    touches: ['columns'],
    statuses: [201],
    body: z.strictObject({
      name: text(200),
      type: z.enum(columnTypes).meta({ description: 'Type of its values, which never changes.' }),
      options: z.array(newOption).optional().meta({ description: 'Options of a select column, in order.' }),
    }),
    errors: ['conflict'],
    response: one,
    example: {
      body: { name: 'Plan', type: 'select', options: [{ value: 'Team', color: 'blue' }] },
      response: answer,
    },
    handle: async (app, { caller, body }) => {
      const { workspace_id } = caller
      return {
        status: 201,
        body: { column: await createColumn(app, actorOf(caller), { workspace_id, ...body }) },
      }
    },
  }),
  route({
    ...ofColumn,
    name: 'update_column',
    method: 'PATCH',
    path: '/columns/{column_id}',
    summary: 'Rename or move a column',
    effect: 'admin',
    touches: ['columns'],
    body: z
      .strictObject({ name: text(200).optional(), place })
      .refine((body) => body.name !== undefined || body.place !== undefined, {
        message: 'must name at least one of name and place',
      }),
    errors: ['column_not_found'],
    response: one,
    example: { params, body: { name: 'Plan' }, response: answer },
    handle: async (app, { caller, params: { column_id: id }, body }) => {
      const { workspace_id } = caller
      return ok({ column: await updateColumn(app, actorOf(caller), { workspace_id, id, ...body }) })
    },
  }),
  route({
    ...ofColumn,
    name: 'delete_column',
    method: 'DELETE',
    path: '/columns/{column_id}',
    summary: 'Delete a column with all its values',
    effect: 'admin',
    touches: ['columns'],
    errors: ['column_not_found'],
    response: z.object({
      deleted: z.literal(true),
      message,
      values: count('Values of chats that were deleted with it.'),
    }),
    example: { params, response: { deleted: true, message: deletedSentence(2), values: 2 } },
    handle: async (app, { caller, params: { column_id: id } }) => {
      const { workspace_id } = caller
      const { values } = await deleteColumn(app, actorOf(caller), { workspace_id, id })
      return ok({ deleted: true, message: deletedSentence(values), values })
    },
  }),
]

/** The option is in the body or the query: in the path, browsers would resolve one that is called `..`. */
const optionRoutes: readonly Route[] = [
  route({
    ...ofColumn,
    name: 'add_option',
    method: 'POST',
    path: '/columns/{column_id}/options',
    summary: 'Add an option at the end, or restore a deleted one',
    effect: 'admin',
    touches: ['columns'],
    statuses: [201],
    body: newOption,
    errors: ['column_not_found', 'conflict'],
    response: one,
    example: { params, body: { value: 'Team', color: 'blue' }, response: answer },
    handle: async (app, { caller, params: { column_id }, body }) => {
      const { workspace_id } = caller
      await addOption(app, actorOf(caller), { workspace_id, column_id, ...body })
      return { ...(await reply(app, caller, column_id)), status: 201 }
    },
  }),
  route({
    ...ofColumn,
    name: 'update_option',
    method: 'PATCH',
    path: '/columns/{column_id}/options',
    summary: 'Rename an option and the values that use it, recolour or move it',
    effect: 'admin',
    touches: ['columns'],
    body: z
      .strictObject({ value: option, name: text(200).optional(), color, place })
      .refine(({ value: _, ...change }) => Object.values(change).some((each) => each !== undefined), {
        message: 'must name at least one of name, color and place',
      }),
    errors: ['column_not_found', 'not_found', 'conflict'],
    response: one,
    example: { params, body: { value: 'Team', color: 'blue' }, response: answer },
    handle: async (app, { caller, params: { column_id }, body }) => {
      const { workspace_id } = caller
      await updateOption(app, actorOf(caller), { workspace_id, column_id, ...body })
      return reply(app, caller, column_id)
    },
  }),
  route({
    ...ofColumn,
    name: 'delete_option',
    method: 'DELETE',
    path: '/columns/{column_id}/options',
    summary: 'Delete an option',
    effect: 'admin',
    touches: ['columns'],
    description: 'Chats that have it keep it, and it can no longer be set.',
    query: z.object({ value: option }),
    errors: ['column_not_found', 'not_found', 'conflict'],
    response: z.object({ deleted: z.literal(true), message, column }),
    example: {
      params,
      query: { value: 'Team' },
      response: { deleted: true, message: optionKept, column: { ...example, options: [] } },
    },
    handle: async (app, { caller, params: { column_id }, query: { value } }) => {
      const { workspace_id } = caller
      await deleteOption(app, actorOf(caller), { workspace_id, column_id, value })
      return ok({
        deleted: true,
        message: optionKept,
        column: await requireColumn(app.db, workspace_id, column_id),
      })
    },
  }),
]

async function reply(app: App, { workspace_id }: Caller, column_id: string): Promise<Reply> {
  return ok({ column: await requireColumn(app.db, workspace_id, column_id) })
}

function deletedSentence(values: number): string {
  if (values === 0) return 'The column was deleted. No chat had a value in it.'
  return `The column was deleted with ${values === 1 ? '1 value' : `${values} values`} of chats.`
}

export const workspaceRoutes: readonly Route[] = [...columnRoutes, ...optionRoutes]
