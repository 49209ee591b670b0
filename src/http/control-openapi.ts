/** The OpenAPI document of a platform's control address, for the reference page at /docs. */
import { contractVersion } from '../contract.ts'
import { errorSchema, fieldsOf, type Json, schemaOf } from '../openapi.ts'
import type { ControlCall } from '../platform/control-operation.ts'
import type { Control } from '../platform/module.ts'

export function makeControlOpenApi({ name, summary, calls }: Control, prefix: string): Json {
  const paths: Record<string, Json> = {}
  for (const call of calls) {
    paths[call.path] = { ...paths[call.path], [call.method.toLowerCase()]: controlCall(name, call) }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: `Parley ${name}`,
      version: contractVersion,
      summary,
    },
    servers: [{ url: prefix }],
    paths,
    security: [],
    components: { schemas: { Error: errorSchema([]) } },
  }
}

function controlCall(platform: string, call: ControlCall): Json {
  const { name, summary, description, body, query, response, example } = call
  const refusal = { content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } } }
  return {
    operationId: name,
    summary,
    description,
    parameters: fieldsOf(query ?? undefined, 'query'),
    ...(body && {
      requestBody: {
        required: true,
        content: { 'application/json': { schema: schemaOf(body, 'input'), example: example.request } },
      },
    }),
    responses: {
      200: {
        description: summary,
        content: { 'application/json': { schema: schemaOf(response, 'output'), example: example.response } },
      },
      400: { description: 'The request is invalid.', ...refusal },
      404: {
        description: `There is no such thing in the ${platform}, or the caller is not on this machine.`,
        ...refusal,
      },
    },
  }
}
