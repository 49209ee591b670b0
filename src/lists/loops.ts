/** The background loops of all slices; driving accounts is not among them. */
import { loops as access } from '../access/loops.ts'
import { loops as alerts } from '../capabilities/alerts/loops.ts'
import { loops as approvals } from '../capabilities/approvals/loops.ts'
import { loops as campaigns } from '../capabilities/campaigns/running/loops.ts'
import { loops as media } from '../capabilities/media/loops.ts'
import { loops as notes } from '../capabilities/notes/loops.ts'
import { loops as people } from '../capabilities/people/loops.ts'
import { loops as retention } from '../capabilities/retention/loops.ts'
import { loops as search } from '../capabilities/search/loops.ts'
import { loops as webhooks } from '../capabilities/webhooks/loops.ts'
import { loops as events } from '../events/loops.ts'
import type { MakeLoops } from '../loop.ts'

export const loops: readonly MakeLoops[] = [
  events,
  webhooks,
  search,
  people,
  access,
  campaigns,
  approvals,
  media,
  alerts,
  retention,
  notes,
]
