/** The contract, listed: every operation under /api/v1. */
import { routes as events } from './capabilities/events/routes.ts'
import { routes as me } from './capabilities/me/routes.ts'
import type { Route } from './route.ts'

export const routes: readonly Route[] = [...me, ...events]
