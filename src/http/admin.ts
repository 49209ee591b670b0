/** The admin port: metrics, health and, if allowed, the control addresses of platforms. Not for the network. */
import type { FastifyInstance } from 'fastify'
import type { Logger } from 'pino'
import type { App } from '../app.ts'
import { ApiError } from '../lib/errors.ts'
import type { Control, UpgradeHandler } from '../platform/module.ts'
import { makeBase, type Server, toServer } from './base.ts'
import { documentOf, mountControl } from './control.ts'
import { findForeignHost, findIndirect } from './direct.ts'
import { mountDocs } from './docs.ts'
import { mountHealth, mountMetrics, type Readiness } from './health.ts'

interface AdminOptions {
  readonly readiness: Readiness
  /** Empty if no caller may control a platform from here. */
  readonly controls: readonly Control[]
}

export function buildAdminServer(app: App, { readiness, controls }: AdminOptions): Server {
  const server = makeAdmin(app.log)
  mountHealth(app, server, readiness)
  mountMetrics(app, server)
  for (const control of controls) mountControl(server, control)
  return toServer(server)
}

/** Serves a platform on its own, with its control address and the sockets of its sessions: it survives a killed service. */
export async function buildControlServer(
  log: Logger,
  control: Control,
  upgrade: UpgradeHandler,
): Promise<Server> {
  const server = makeAdmin(log)
  for (const path of ['/healthz', '/readyz']) server.get(path, async () => ({ status: 'ok' }))
  mountControl(server, control)
  await mountDocs(server, { sources: [documentOf(control, '')] })
  server.server.on('upgrade', (request, socket, head) => {
    if (!findIndirect(request) && !findForeignHost(request)) return upgrade(request, socket, head)
    socket.on('error', () => socket.destroy())
    socket.end('HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n')
  })
  return toServer(server)
}

function makeAdmin(log: Logger): FastifyInstance {
  const server = makeBase({ log, rate_limit: 1_000_000 })
  server.setNotFoundHandler(async () => {
    throw new ApiError('not_found')
  })
  server.addHook('onRequest', (request, _reply, done) => done(findIndirect(request.raw)))
  return server
}
