/** Stages on the dashboard: members read them, admins and owners change them. */
import { z } from 'zod'
import { color, newColor, place, text } from '../../lib/shapes.ts'
import { count, said } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { actorOf } from '../audit/audit.ts'
import { createStage, defaultStage, deleteStage, listStages, updateStage } from './pipeline.ts'

const stageOut = z
  .object({
    key: said('Key of the stage, which never changes.'),
    label: said('Label of the stage.'),
    color: z.string().nullable().meta({ description: 'Its colour; null if none was chosen.' }),
    terminal: z.boolean().meta({ description: 'Whether this is a final stage.' }),
    hidden: z.boolean().meta({ description: 'Whether the stage is hidden: no chat can be moved to it.' }),
  })
  .meta({ id: 'DashboardStage', description: 'A stage of the pipeline with its colour.' })

const example = { key: 'in-talks', label: 'In talks', color: 'blue', terminal: false, hidden: false }

const needs = { scopes: [], gates: ['pipeline'] } as const
const admins = { ...needs, role: 'admin' } as const

const params = z.strictObject({ stage_key: z.string() })
const named = { stage_key: example.key }
const one = z.object({ stage: stageOut })
const flags = { terminal: z.boolean().optional(), hidden: z.boolean().optional() }

export const workspaceRoutes: readonly Route[] = [
  route({
    ...needs,
    role: 'member',
    name: 'list_stages',
    method: 'GET',
    path: '/stages',
    summary: 'List stages',
    effect: 'read',
    response: z.object({ stages: z.array(stageOut).meta({ description: 'All stages in order.' }) }),
    example: { response: { stages: [example] } },
    handle: async ({ db }, { caller }) => ok({ stages: await listStages(db, caller.workspace_id) }),
  }),
  route({
    ...admins,
    name: 'create_stage',
    method: 'POST',
    path: '/stages',
    summary: 'Add a stage at the end',
    effect: 'admin',
    touches: ['pipeline'],
    statuses: [201],
    body: z.strictObject({
      label: text(200),
      key: z
        .string()
        .optional()
        .meta({ description: 'Key for the API. Without it, one is made from the label.' }),
      color: newColor,
      ...flags,
    }),
    errors: ['conflict'],
    response: one,
    example: { body: { label: example.label, color: example.color }, response: { stage: example } },
    handle: async (app, { caller, body }) => {
      const { workspace_id } = caller
      const stage = await createStage(app, actorOf(caller), { workspace_id, ...body })
      return { status: 201, body: { stage } }
    },
  }),
  route({
    ...admins,
    name: 'update_stage',
    method: 'PATCH',
    path: '/stages/{stage_key}',
    summary: 'Rename, recolour, hide, show or move a stage',
    effect: 'admin',
    touches: ['pipeline'],
    params,
    body: z
      .strictObject({ label: text(200).optional(), color, ...flags, place })
      .refine((body) => Object.values(body).some((value) => value !== undefined), {
        message: 'must name at least one of label, color, terminal, hidden and place',
      }),
    errors: ['not_found', 'conflict'],
    response: one,
    example: { params: named, body: { color: example.color }, response: { stage: example } },
    handle: async (app, { caller, params: { stage_key: key }, body }) => {
      const { workspace_id } = caller
      return ok({ stage: await updateStage(app, actorOf(caller), { workspace_id, key, ...body }) })
    },
  }),
  route({
    ...admins,
    name: 'delete_stage',
    method: 'DELETE',
    path: '/stages/{stage_key}',
    summary: 'Delete a stage',
    description: `Its chats return to the stage ${defaultStage.key}, each with an event \`pipeline.moved\`.`,
    effect: 'admin',
    touches: ['pipeline', 'chats'],
    params,
    errors: ['not_found', 'conflict'],
    response: z.object({
      deleted: z.literal(true),
      message: said('What was done, as a sentence.'),
      moved: count('Chats that returned to the first stage.'),
    }),
    example: {
      params: named,
      response: { deleted: true, message: deletedSentence(2), moved: 2 },
    },
    handle: async (app, { caller, params: { stage_key: key } }) => {
      const { workspace_id, traceparent } = caller
      const { moved } = await deleteStage(app, actorOf(caller), { workspace_id, key, traceparent })
      return ok({ deleted: true, message: deletedSentence(moved), moved })
    },
  }),
]

function deletedSentence(moved: number): string {
  if (moved === 0) return 'The stage was deleted. No chat was in it.'
  const chats = moved === 1 ? '1 chat' : `${moved} chats`
  return `The stage was deleted. ${chats} returned to the stage ${defaultStage.key}.`
}
