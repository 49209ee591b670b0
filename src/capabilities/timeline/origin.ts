/** Who requested an operation, and for which campaign: the same wherever what was sent is shown. */
import { z } from 'zod'
import { type Sql, sql } from '../../db/sql.ts'
import { uuid } from '../../lib/wire.ts'
import { isOfAgent } from '../approvals/approvals.ts'
import { memberName } from '../chats/chats.ts'

const saidOrNull = (description: string) => z.string().nullable().meta({ description })

export const originBy = z
  .object({
    kind: z.enum(['user', 'key', 'campaign', 'agent', 'elsewhere']).meta({
      description:
        '`agent`: a program with a key, approved by a user. `elsewhere`: not through Parley, such as on the phone.',
    }),
    user_id: z
      .uuid()
      .nullable()
      .meta({ description: 'The user who wrote it; null if a key, a campaign or an agent did.' }),
    name: saidOrNull('Name of the user, key or campaign; null if there is none.'),
  })
  .meta({ id: 'SentBy', description: 'Who requested a message.' })
  .nullable()
  .meta({ description: 'Who sent it; null if the other side did, or the ledger does not know.' })

export const originCampaign = z
  .object({
    id: uuid('Id of the campaign.'),
    name: saidOrNull('Its name.'),
    step: z.int().min(0).meta({ description: 'Step of the campaign; 0: its first message.' }),
  })
  .meta({ id: 'SentInCampaign', description: 'The campaign and step of a message.' })
  .nullable()
  .meta({ description: 'The campaign it belongs to; null if none.' })

/** Of operation `o`: `operation_id`, `by` and `campaign`. */
export const originOf: Sql = sql`coalesce(o.public_id, o.id) as operation_id,
  case when o.campaign_id is not null then json_build_object('kind', 'campaign', 'user_id', null, 'name', g.name)
    when ${isOfAgent} then json_build_object('kind', 'agent', 'user_id', null, 'name', k.name)
    when o.key_id is not null then json_build_object('kind', 'key', 'user_id', null, 'name', k.name)
    when u.id is not null then json_build_object('kind', 'user', 'user_id', u.id, 'name', ${memberName}) end as by,
  case when o.campaign_id is not null then json_build_object('id', g.id, 'name', g.name, 'step', o.step_no) end as campaign`

export const joinOrigin: Sql = sql`left join users u on u.id = o.user_id left join keys k on k.id = o.key_id
  left join campaigns g on g.id = o.campaign_id`

/** Of message `m`, for a lateral join. Of no row: it was sent elsewhere. */
export const originOfMessage: Sql = sql`
  select ${originOf} from operations o ${joinOrigin}
  where m.is_sender and o.account_id = m.account_id and o.random_id = m.random_id`

/** As JSON: a message of ours that no operation sent. */
export const sentElsewhere: Sql = sql`'{"kind":"elsewhere","user_id":null,"name":null}'`
