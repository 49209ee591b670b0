/** The sandbox's control address, on the service itself or on a process of its own. For this machine only. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { z } from 'zod'
import { ApiError } from '../lib/errors.ts'
import { time } from '../lib/shapes.ts'
import { makeSandboxOpenApi } from '../openapi.ts'
import { controlOperations } from '../platform/sandbox/control.ts'
import { bind, type ControlCall, operation } from '../platform/sandbox/control-operation.ts'
import type { LocalSandbox, Sandbox } from '../platform/sandbox/sandbox.ts'
import { serveLink } from '../platform/sandbox/serve-link.ts'
import type { World } from '../platform/sandbox/world.ts'
import { makeBase, type Server, toServer } from './base.ts'
import { readBody } from './body.ts'
import { mountDocs, type Source } from './docs.ts'
import { isFromHere } from './health.ts'

const sandboxPrefix = '/sandbox/v1'

/** Moves the manual clock by seconds; for a process that runs the background loops. */
export type AdvanceClock = (seconds: number) => Promise<Date>

const advanceOperation = operation({
  name: 'advance_clock',
  method: 'POST',
  path: '/clock/advance',
  summary: 'Moves the manual clock',
  description: 'Answers after every due thing has been done. Only with PARLEY_CLOCK=manual.',
  body: z.strictObject({
    seconds: z
      .number()
      .min(0)
      .max(366 * 86_400),
  }),
  query: null,
  response: z.strictObject({ now: z.string() }),
  example: { request: { seconds: 3600 }, response: { now: '2026-11-15T10:30:00.000Z' } },
  handle: async (advance: AdvanceClock, { body }) => ({ now: (await advance(body.seconds)).toISOString() }),
})

export function clockCalls(advance: AdvanceClock): ControlCall[] {
  return bind([advanceOperation], advance)
}

/** How a service passes its time on to a sandbox in another process. */
const followOperation = operation({
  name: 'follow_clock',
  method: 'POST',
  path: '/clock',
  summary: 'Follows the clock of the service',
  description: 'Called by the service that moves the clock. Only with PARLEY_CLOCK=manual.',
  body: z.strictObject({ to: time }),
  query: null,
  response: z.strictObject({
    next_due_at: z.string().nullable(),
    positions: z.record(z.string(), z.string()),
  }),
  example: {
    request: { to: '2026-11-15T10:30:00.000Z' },
    response: { next_due_at: null, positions: { acc_2Jk9vQ7wXb4LmN8pRt3Z: '12' } },
  },
  handle: (sandbox: Sandbox, { body }) => sandbox.run(body.to),
})

export function worldCalls(world: World): ControlCall[] {
  return bind(controlOperations, world)
}

export function mountSandbox(server: FastifyInstance, calls: readonly ControlCall[]): Source {
  for (const { name, method, path, body: wanted, handle } of calls) {
    server.route({
      method,
      url: sandboxPrefix + path,
      handler: async (request) => {
        request.operation = `sandbox_${name}`
        requireNeighbour(request)
        const body = await readBody(request.raw, { method, body: wanted })
        return handle({ body, query: request.query })
      },
    })
  }
  const document = makeSandboxOpenApi(calls, sandboxPrefix)
  const url = `${sandboxPrefix}/openapi.json`
  server.get(url, async (request) => {
    request.operation = 'sandbox_openapi'
    return document
  })
  return { title: 'Sandbox', url }
}

function requireNeighbour(request: FastifyRequest): void {
  if (!isFromHere(request)) throw new ApiError('not_found')
}

/** The sandbox alone: the witness that survives a killed service. */
export async function buildSandboxServer(
  log: Logger,
  sandbox: LocalSandbox,
  { manual }: { manual: boolean },
): Promise<Server> {
  const server = makeBase({ log, rate_limit: 1_000_000 })
  server.setNotFoundHandler(async () => {
    throw new ApiError('not_found')
  })
  for (const path of ['/healthz', '/readyz']) server.get(path, async () => ({ status: 'ok' }))
  const calls = [...worldCalls(sandbox.world), ...(manual ? bind([followOperation], sandbox) : [])]
  await mountDocs(server, [mountSandbox(server, calls)])
  const upgrade = serveLink(sandbox.world)
  server.server.on('upgrade', (request, socket, head) => {
    if (!/^(::1|(::ffff:)?127\.)/.test(request.socket.remoteAddress ?? '')) return void socket.destroy()
    upgrade(request, socket, head)
  })
  return toServer(server)
}
