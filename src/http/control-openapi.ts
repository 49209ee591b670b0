/** The OpenAPI document of a platform's control address, for the reference page at /docs. */
import { contractVersion } from '../contract.ts'
import { type Json, schemaOf } from '../lib/json-schema.ts'
import { errorSchema, fieldsOf, refusalSchema } from '../openapi/openapi.ts'
import type { ControlCall } from '../platform/control-operation.ts'
import type { Control } from '../platform/module.ts'

export function makeControlOpenApi({ name, summary, calls }: Control, prefix: string): Json {
  const paths: Record<string, Json> = {}
  const schemas: Json = { ApiError: errorSchema([]) }
  for (const call of calls) {
    paths[call.path] = {
      ...paths[call.path],
      [call.method.toLowerCase()]: controlCall(name, call, schemas),
    }
  }
  return {
    openapi: '3.1.0',
    info: {
      title: `Parley ${name}`,
      version: contractVersion,
      summary,
      description: howToCall(name, prefix),
    },
    servers: [{ url: prefix }],
    paths,
    security: [],
    components: { schemas },
  }
}

function howToCall(name: string, prefix: string): string {
  return `The people of the ${name} exist nowhere else, and these calls act for them. Parley serves them at \`${prefix}\` on the
admin port of the process, for programs on its own machine. The admin port refuses web pages, so this page shows each
call as a curl command instead of sending it. The account and the person of the examples are those of the demo.`
}

function controlCall(platform: string, call: ControlCall, schemas: Json): Json {
  const { name, summary, description, params, body, query, response, example } = call
  const refusal = { content: { 'application/json': { schema: refusalSchema } } }
  return {
    operationId: name,
    summary,
    description,
    parameters: [
      ...fieldsOf(params, { where: 'path', schemas }),
      ...fieldsOf(query ?? undefined, { where: 'query', schemas }),
    ],
    ...(body && {
      requestBody: {
        required: true,
        content: {
          'application/json': { schema: schemaOf(body, 'input', schemas), example: example.request },
        },
      },
    }),
    responses: {
      200: {
        description: summary,
        content: {
          'application/json': { schema: schemaOf(response, 'output', schemas), example: example.response },
        },
      },
      400: { description: 'The request is invalid.', ...refusal },
      404: {
        description: `The ${platform} does not have it, or the caller is not on this machine.`,
        ...refusal,
      },
    },
  }
}
