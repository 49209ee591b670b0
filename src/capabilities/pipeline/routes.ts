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
  .meta({ description: 'The key of the stage, as `GET /pipeline` lists it.' })

const stage = z
  .object({
    key: said('Names the stage in every other operation.'),
    label: said('What people call it.'),
    terminal: z.boolean().meta({ description: 'A chat that is here has come to its end.' }),
    hidden: z.boolean().meta({ description: 'No chat can be moved here any more.' }),
  })
  .meta({ id: 'Stage', description: 'A stage that chats move through.' })

const placement = z
  .object({ account_id: accountIdOut, chat_id: chatIdOut, stage_key: stageKeyOut })
  .meta({ id: 'Placement', description: 'Which stage a chat was moved to.' })

const pipeline = z
  .object({
    stages: z.array(stage).meta({ description: 'All stages, in their order.' }),
    placements: z.array(placement).meta({ description: 'The chats that were ever moved.' }),
    ...pageEnd,
  })
  .meta({ id: 'Pipeline', description: 'The stages, and which chat is in which.' })

const moved = z
  .object({
    ...done,
    account_id: accountIdOut,
    chat_id: chatIdOut,
    stage_key: stageKeyOut,
    changed: z.boolean().meta({ description: 'False where the chat was there already.' }),
  })
  .meta({ id: 'MoveResult', description: 'Where a chat is now.' })

export const routes: readonly Route[] = [
  route({
    name: 'get_pipeline',
    method: 'GET',
    path: '/pipeline',
    summary: 'The stages, and which chat is in which',
    description:
      'A chat without a placement is in the stage `new`. Without `limit` everything comes in one answer, however long; ' +
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
    handle: async (app, { caller, accounts, query: { limit }, checked }) =>
      ok(await readPipeline(app, caller, accounts, { limit, paging: checked })),
  }),
  route({
    name: 'move_chat',
    method: 'POST',
    path: '/pipeline/move',
    summary: 'Puts a chat into a stage',
    description:
      'Safe to repeat: a chat that is there already stays, and `changed` is false. A real change is told in the event ' +
      '`pipeline.moved`, with the stage before and who moved it.',
    scopes: ['write'],
    gates: ['pipeline'],
    account: 'extended',
    effect: 'local',
    body: z
      .strictObject({ account_id: scopedAccountId, chat_id: chatId, stage_key })
      .meta({ id: 'MoveRequest', description: 'A chat and the stage it goes to.' }),
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
      const message = changed ? 'The chat was moved.' : 'The chat was there already.'
      return ok({ ok: true, message, ...placement, changed })
    },
  }),
]
