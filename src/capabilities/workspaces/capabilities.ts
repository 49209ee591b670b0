/** What a user can do in a workspace now, and what closes the rest. */
import { findObstacle, hasRole } from '../../access/needs.ts'
import type { App } from '../../app.ts'
import type { Caller } from '../../contract.ts'
import { type Db, sql } from '../../db/sql.ts'
import { findSendingStop } from '../../ledger/liveness.ts'
import { requireWorkspace } from './workspaces.ts'

/** The part of Parley that a page shows, and the route that the page depends on. The route states its own needs. */
const routeOf = {
  read: 'list_chats',
  history: 'list_messages',
  media: 'download_attachment',
  send: 'send_message',
  start_chat: 'start_chat',
  read_state: 'set_read_state',
  search: 'search_messages',
  contacts: 'list_contacts',
  pipeline: 'move_chat',
  columns: 'set_column',
  analytics: 'get_analytics',
  campaigns: 'list_campaigns',
  create_campaign: 'create_campaign',
  broadcast: 'create_broadcast',
  webhooks: 'list_webhooks',
} as const

export const capabilityNames = Object.keys(routeOf) as readonly (keyof typeof routeOf)[]

export async function describeWorkspace(app: App, caller: Caller) {
  const [settings, workspace, reason, stopped_webhooks] = await Promise.all([
    app.settings.current(),
    requireWorkspace(app.db, caller.workspace_id),
    findSendingStop(app),
    countStoppedWebhooks(app.db, caller),
  ])
  const { id, name, timezone, timezone_before, timezone_from, sending_window } = workspace
  const role = caller.via.kind === 'session' ? caller.via.role : null
  const capabilities = capabilityNames.map((capability) => {
    const needs = app.routes.find((route) => route.name === routeOf[capability])
    if (!needs) throw new Error(`There is no route ${routeOf[capability]}.`)
    const closed_by = findObstacle(settings, caller, needs) ?? null
    return [capability, { open: closed_by === null, closed_by }]
  })
  return {
    workspace: { id, name, timezone, timezone_before, timezone_from, sending_window, role },
    dispatch: { on: reason === null, reason },
    opt_out_words: app.config.opt_out_words,
    stopped_webhooks,
    capabilities: Object.fromEntries(capabilities),
  }
}

/** How the admins of a workspace learn that webhooks stopped with their maker: members see no webhooks. */
async function countStoppedWebhooks(db: Db, caller: Caller): Promise<number> {
  if (!hasRole(caller, 'admin')) return 0
  const { count } = await db.one<{ count: number }>(sql`
    select count(*)::int as count from webhooks
    where workspace_id = ${caller.workspace_id} and stop_reason is not null and not active and deleted_at is null`)
  return count
}
