/** Workspaces on the dashboard, for operators. */
import { z } from 'zod'
import { moment, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { listWorkspaces } from './workspaces.ts'

const workspace = {
  id: '0199a1f0-0000-7000-8000-000000000001',
  name: 'Acme',
  timezone: 'Europe/Berlin',
  sending_window: null,
  created_at: '2026-11-15T09:30:00.000Z',
}

export const ownRoutes: readonly Route[] = [
  ownRoute({
    scopes: [],
    operator: true,
    name: 'list_workspaces',
    method: 'GET',
    path: '/workspaces',
    summary: 'List workspaces',
    effect: 'read',
    response: z.object({
      workspaces: z.array(
        z.object({
          id: uuid('Id of the workspace.'),
          name: said('Name of the workspace.'),
          timezone: said('Time zone in which its day ends at midnight.'),
          sending_window: z
            .string()
            .nullable()
            .meta({ description: 'When campaigns can send; null for always.' }),
          created_at: moment('When the workspace was created.'),
        }),
      ),
    }),
    example: { response: { workspaces: [workspace] } },
    handle: async ({ db }) => ok({ workspaces: await listWorkspaces(db) }),
  }),
]
