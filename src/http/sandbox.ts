/** The sandbox's control address, on the service itself or on a process of its own. For this machine only. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { z } from 'zod'
import { ApiError } from '../lib/errors.ts'
import { time } from '../lib/shapes.ts'
import { makeSandboxOpenApi } from '../openapi.ts'
import { controlOperations } from '../platform/sandbox/control.ts'
import { type ControlOperation, operation } from '../platform/sandbox/control-operation.ts'
import type { Sandbox } from '../platform/sandbox/sandbox.ts'
import { serveLink } from '../platform/sandbox/serve-link.ts'
import type { World } from '../platform/sandbox/world.ts'
import { makeBase, type Server, toServer } from './base.ts'
import { readBody } from './body.ts'
import { mountDocs } from './docs.ts'
import { isFromHere } from './health.ts'

export const sandboxPrefix = '/sandbox/v1'

/** Moves a manual clock; answered by a process that runs the background loops. */
export type AdvanceClock = (seconds: number) => Promise<Date>

export function clockOperation(advance: AdvanceClock): ControlOperation {
  return operation({
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
    handle: async (_world, { body }) => ({ now: (await advance(body.seconds)).toISOString() }),
  })
}

/** How the service passes its time on to a sandbox in another process. */
function setClockOperation(run: Sandbox['run']): ControlOperation {
  return operation({
    name: 'set_clock',
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
    handle: (_world, { body }) => run(body.to),
  })
}

export function mountSandbox(
  server: FastifyInstance,
  world: World,
  extra: readonly ControlOperation[] = [],
): void {
  const operations = [...controlOperations, ...extra]
  for (const control of operations) {
    server.route({
      method: control.method,
      url: sandboxPrefix + control.path,
      handler: async (request) => {
        request.operation = `sandbox_${control.name}`
        requireNeighbour(request)
        const body = await readBody(request.raw, { method: control.method, body: control.body })
        return control.handle(world, { body, query: request.query })
      },
    })
  }
  const document = makeSandboxOpenApi(operations, sandboxPrefix)
  server.get(`${sandboxPrefix}/openapi.json`, async (request) => {
    request.operation = 'sandbox_openapi'
    return document
  })
}

/** A caller on this machine that means this machine: a page in a browser that was lured here names another host. */
function requireNeighbour(request: FastifyRequest): void {
  const host = request.headers.host?.replace(/:\d+$/, '')
  if (!isFromHere(request) || !['localhost', '127.0.0.1', '[::1]'].includes(host ?? '')) {
    throw new ApiError('not_found')
  }
}

/** The sandbox alone: the witness that survives a killed service. */
export async function buildSandboxServer(
  log: Logger,
  sandbox: Sandbox & { readonly world: World },
  { manual }: { manual: boolean },
): Promise<Server> {
  const server = makeBase({ log, rate_limit: 1_000_000 })
  server.setNotFoundHandler(async () => {
    throw new ApiError('not_found')
  })
  for (const path of ['/healthz', '/readyz']) server.get(path, async () => ({ status: 'ok' }))
  mountSandbox(server, sandbox.world, manual ? [setClockOperation(sandbox.run)] : [])
  await mountDocs(server, [{ title: 'Sandbox', url: `${sandboxPrefix}/openapi.json` }])
  const upgrade = serveLink(sandbox.world)
  server.server.on('upgrade', (request, socket, head) => {
    if (!/^(::1|(::ffff:)?127\.)/.test(request.socket.remoteAddress ?? '')) return void socket.destroy()
    upgrade(request, socket, head)
  })
  return toServer(server)
}
