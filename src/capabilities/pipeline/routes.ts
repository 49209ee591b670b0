import { z } from 'zod'
import { chatId, cursor, pageLimit, scopedAccountId } from '../../lib/shapes.ts'
import { accountIdOut, chatIdOut, done, pageEnd, said, stageKeyOut } from '../../lib/wire.ts'
import { ok, type Route, route } from '../../route.ts'
import { moveChat } from './pipeline.ts'
import { placementsMax, readPipeline, readPipelinePaging } from './placements.ts'

const stage_key = z
  .string()
  .min(1, 'must not be empty')
  .max(64, 'must have at most 64 characters')
  .meta({ description: 'Key of the stage, from `GET /pipeline`.' })

const stage = z
  .object({
    key: said('Key of the stage.'),
    label: said('Label of the stage.'),
    terminal: z.boolean().meta({ description: 'Whether this is a final stage.' }),
    hidden: z.boolean().meta({ description: 'Whether the stage is hidden: no chat can be moved to it.' }),
  })
  .meta({ id: 'Stage', description: 'A stage of the pipeline.' })

const placement = z
  .object({ account_id: accountIdOut, chat_id: chatIdOut, stage_key: stageKeyOut })
  .meta({ id: 'Placement', description: 'A chat and its stage.' })

const pipeline = z
  .object({
    stages: z.array(stage).meta({ description: 'All stages in order.' }),
    placements: z.array(placement).meta({ description: 'Stages of all chats that were ever moved.' }),
    ...pageEnd,
  })
  .meta({ id: 'Pipeline', description: 'The stages and the chats in them.' })

const moved = z
  .object({
    ...done,
    account_id: accountIdOut,
    chat_id: chatIdOut,
    stage_key: stageKeyOut,
    changed: z.boolean().meta({ description: 'False if the chat already was in this stage.' }),
  })
  .meta({ id: 'MoveResult', description: 'The stage of a chat.' })

export const routes: readonly Route[] = [
  route({
    name: 'get_pipeline',
    method: 'GET',
    path: '/pipeline',
    summary: 'Get the pipeline',
    description:
      'Returns the stages and the chats in them. A chat without a placement is in the stage `new`. Without `limit` everything comes in one response; ' +
      'with `limit` and `cursor` it comes in pages.',
    scopes: ['read', 'write'],
    gates: ['pipeline'],
    account: 'all',
    effect: 'read',
    query: z.object({ cursor, limit: pageLimit(placementsMax) }),
    check: (app, caller, { query }) => readPipelinePaging(app, caller, query),
    errors: ['invalid_cursor'],
    response: pipeline,
    example: {
      response: {
        stages: [
          { key: 'new', label: 'New', terminal: false, hidden: false },
          { key: 'won', label: 'Won', terminal: true, hidden: false },
        ],
        placements: [
          { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', chat_id: 'platform:chat:42', stage_key: 'won' },
        ],
        next_cursor: null,
        has_more: false,
      },
    },
    handle: async (app, { caller, accounts, query: { limit }, checked, left }) =>
      ok(await readPipeline(app, caller, accounts, { limit, paging: checked, left })),
  }),
  route({
    name: 'move_chat',
    method: 'POST',
    path: '/pipeline/move',
    summary: 'Move a chat to a stage',
    description:
      'Safe to repeat: if the chat already is in the stage, `changed` is false. A move that changes the stage emits ' +
      '`pipeline.moved` with the previous stage and who moved the chat.',
    scopes: ['write'],
    gates: ['pipeline'],
    account: 'extended',
    effect: 'local',
    touches: ['pipeline'],
    body: z
      .strictObject({ account_id: scopedAccountId, chat_id: chatId, stage_key })
      .meta({ id: 'MoveRequest', description: 'A chat and its new stage.' }),
    errors: ['invalid_stage', 'chat_not_found'],
    response: moved,
    example: {
      body: { account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z', chat_id: 'platform:chat:42', stage_key: 'new' },
      response: {
        ok: true,
        message: 'The chat was moved.',
        account_id: 'acc_2Jk9vQ7wXb4LmN8pRt3Z',
        chat_id: 'platform:chat:42',
        stage_key: 'new',
        changed: true,
      },
    },
    handle: async (_, tx, { caller, accounts, body }) => {
      const { changed, ...placement } = await moveChat(tx, caller, accounts, body)
      const message = changed ? 'The chat was moved.' : 'The chat already was in this stage.'
      return ok({ ok: true, message, ...placement, changed })
    },
  }),
]
