/** Control addresses of platforms, on the service itself or on a process of their own. For this machine only. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import { ApiError } from '../lib/errors.ts'
import type { Control, UpgradeHandler } from '../platform/module.ts'
import { makeBase, type Server, toServer } from './base.ts'
import { readBody } from './body.ts'
import { makeControlOpenApi } from './control-openapi.ts'
import { mountDocs, type Source } from './docs.ts'
import { isFromHere } from './health.ts'

export function mountControl(server: FastifyInstance, control: Control): Source {
  const prefix = `/${control.name}/v1`
  for (const { name, method, path, body: wanted, handle } of control.calls) {
    server.route({
      method,
      url: prefix + path,
      handler: async (request) => {
        request.operation = `${control.name}_${name}`
        requireNeighbour(request)
        const body = await readBody(request.raw, { method, body: wanted })
        return handle({ body, query: request.query })
      },
    })
  }
  const document = makeControlOpenApi(control, prefix)
  const url = `${prefix}/openapi.json`
  server.get(url, async (request) => {
    request.operation = `${control.name}_openapi`
    return document
  })
  return { title: control.name.charAt(0).toUpperCase() + control.name.slice(1), url }
}

function requireNeighbour(request: FastifyRequest): void {
  if (!isFromHere(request)) throw new ApiError('not_found')
}

/** A platform in a process of its own, with its control address and session sockets: it survives a killed service. */
export async function buildControlServer(
  log: Logger,
  control: Control,
  upgrade: UpgradeHandler,
): Promise<Server> {
  const server = makeBase({ log, rate_limit: 1_000_000 })
  server.setNotFoundHandler(async () => {
    throw new ApiError('not_found')
  })
  for (const path of ['/healthz', '/readyz']) server.get(path, async () => ({ status: 'ok' }))
  await mountDocs(server, [mountControl(server, control)])
  server.server.on('upgrade', (request, socket, head) => {
    if (!/^(::1|(::ffff:)?127\.)/.test(request.socket.remoteAddress ?? '')) return void socket.destroy()
    upgrade(request, socket, head)
  })
  return toServer(server)
}
