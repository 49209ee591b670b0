/** The instance at the dashboard, for operators. */
import { z } from 'zod'
import { workerStates } from '../../ledger/workers.ts'
import { count, moment, said, uuid } from '../../lib/wire.ts'
import { ok, ownRoute, type Route } from '../../route.ts'
import { describeInstance } from './instance.ts'

const worker = {
  id: '0199a1f0-0000-7000-8000-000000000003',
  state: 'driving',
  version: '0.1.0',
  started_at: '2026-11-15T09:30:00.000Z',
  beat_at: '2026-11-15T09:31:00.000Z',
  platforms: ['telegram'],
  accounts: 3,
  failing: [],
  disk_free: 52_000_000_000,
}

export const ownRoutes: readonly Route[] = [
  ownRoute({
    scopes: [],
    operator: true,
    name: 'get_instance',
    method: 'GET',
    path: '/instance',
    summary: 'Get the workers, the database and the versions of this instance',
    effect: 'read',
    response: z.object({
      version: said('Version of the process that answers.'),
      node: said('Version of its Node.'),
      database: z.object({
        version: said('Version of PostgreSQL.'),
        size: count('Size in bytes.'),
        connections: count('Open connections.'),
        connections_max: count('How many the server allows.'),
        migration: said('The newest migration.'),
        embedded: z.boolean().meta({ description: 'Whether Parley runs the server itself.' }),
      }),
      workers: z
        .array(
          z.object({
            id: uuid('Id of the worker.'),
            state: z.enum(workerStates).meta({ description: 'What it does.' }),
            version: said('Its version; empty before its first heartbeat.'),
            started_at: moment('When it started.'),
            beat_at: moment('Its last heartbeat.'),
            platforms: z.array(z.string()).meta({ description: 'The platforms that it reaches.' }),
            accounts: count('How many accounts it drives.'),
            failing: z.array(z.string()).meta({ description: 'The loops whose last step failed.' }),
            disk_free: count('Free bytes on the disk of its data directory; null if unknown.').nullable(),
          }),
        )
        .meta({ description: 'Those with a heartbeat in the last day, and those that sending waits for.' }),
      queued: count('Operations that wait for a worker.'),
      queued_seconds: z
        .number()
        .nullable()
        .meta({ description: 'How long the oldest has waited; null if none.' }),
      ambiguous: count('Operations with an unknown outcome that no person has closed.'),
      files_waiting: count('Attachments whose bytes are still stored.'),
    }),
    example: {
      response: {
        version: '0.1.0',
        node: '24.0.0',
        database: {
          version: '17.2',
          size: 90_000_000,
          connections: 12,
          connections_max: 100,
          migration: '0041_operator_pages.sql',
          embedded: true,
        },
        workers: [worker],
        queued: 0,
        queued_seconds: null,
        ambiguous: 0,
        files_waiting: 0,
      },
    },
    handle: async (app) => ok(await describeInstance(app)),
  }),
]
