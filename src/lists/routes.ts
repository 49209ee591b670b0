/** Every route under /api/v1. */
import { routes as analytics } from '../capabilities/analytics/routes.ts'
import { routes as broadcast } from '../capabilities/broadcast/routes.ts'
import { routes as campaigns } from '../capabilities/campaigns/routes.ts'
import { routes as chatStart } from '../capabilities/chat-start/routes.ts'
import { routes as chats } from '../capabilities/chats/routes.ts'
import { routes as columns } from '../capabilities/columns/routes.ts'
import { routes as contacts } from '../capabilities/contacts/routes.ts'
import { routes as erasing } from '../capabilities/erasing/routes.ts'
import { routes as events } from '../capabilities/events/routes.ts'
import { routes as me } from '../capabilities/me/routes.ts'
import { routes as media } from '../capabilities/media/routes.ts'
import { routes as messages } from '../capabilities/messages/routes.ts'
import { routes as operations } from '../capabilities/operations/routes.ts'
import { routes as personRecord } from '../capabilities/person-record/routes.ts'
import { routes as pipeline } from '../capabilities/pipeline/routes.ts'
import { routes as search } from '../capabilities/search/routes.ts'
import { routes as webhooks } from '../capabilities/webhooks/routes.ts'
import type { Route } from '../route.ts'

export const routes: readonly Route[] = [
  ...me,
  ...chatStart,
  ...chats,
  ...messages,
  ...media,
  ...contacts,
  ...personRecord,
  ...erasing,
  ...search,
  ...pipeline,
  ...columns,
  ...analytics,
  ...campaigns,
  ...broadcast,
  ...events,
  ...operations,
  ...webhooks,
]
