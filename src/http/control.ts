/** The control addresses of platforms, on an admin port: how a person or a test acts on the other side of a platform. */
import type { FastifyInstance, FastifyRequest } from 'fastify'
import type { Control } from '../platform/module.ts'
import { readBody } from './body.ts'
import { makeControlOpenApi } from './control-openapi.ts'
import { findForeignHost } from './direct.ts'
import type { Source } from './docs.ts'

export function mountControl(server: FastifyInstance, control: Control): void {
  const prefix = prefixOf(control)
  for (const { name, method, path, body: wanted, handle } of control.calls) {
    server.route({
      method,
      url: prefix + path.replaceAll(/\{(\w+)\}/g, ':$1'),
      handler: async (request, reply) => {
        request.operation = `${control.name}_${name}`
        requireOwnName(request)
        const sender = { source: 'control', onEnd: (act: () => void) => void reply.raw.once('close', act) }
        const body = await readBody(request.raw, { method, body: wanted }, sender)
        return handle({ params: request.params, body, query: request.query })
      },
    })
  }
}

/** Its chapter of the reference page. The calls go to `address`, an admin port that answers no page: they are shown as curl. */
export function documentOf(control: Control, address: string): Source {
  return {
    title: control.name.charAt(0).toUpperCase() + control.name.slice(1),
    slug: control.name,
    document: makeControlOpenApi(control, address + prefixOf(control)),
  }
}

function prefixOf({ name }: Control): string {
  return `/${name}/v1`
}

function requireOwnName(request: FastifyRequest): void {
  const fault = findForeignHost(request.raw)
  if (fault) throw fault
}
