/**
 * Codes that openapi.json does not name: of the dashboard, of live streams and of tools that a person approves. With those that it
 * names, which `codes.test.ts` provokes, they are all there are. A new code fails here until a request has provoked it.
 */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { deny } from '../src/capabilities/approvals/decisions.ts'
import { errors } from '../src/lib/errors.ts'
import { repository } from './faults/markers.ts'
import { type AgentStage, openAgentStage } from './harness/agents.ts'
import { askDashboard, signIn } from './harness/person.ts'
import { openService, type Service } from './harness/service.ts'
import { askStream } from './harness/stream.ts'

let stage: AgentStage
let service: Service
beforeAll(async () => {
  stage = await openAgentStage()
  service = stage.workplace.service
})
afterAll(() => stage.workplace.close())

interface Refused {
  readonly status: number
  readonly body: { readonly code?: string }
}

async function makeStage(): Promise<Refused> {
  const path = `/w/${stage.tenant.workspace_id}/stages`
  return askDashboard(service, 'POST', path, {
    cookie: await stage.cookie(),
    body: { key: 'new', label: 'New' },
  })
}

async function streamOfStopped(): Promise<Refused> {
  const stopping = await openService()
  try {
    const cookie = await signIn(stopping, (await stopping.tenant()).user_id)
    stopping.app.beginStop()
    const answer = await askStream(stopping, { cookie })
    let text = ''
    for await (const part of answer.setEncoding('utf8')) text += part
    return { status: answer.statusCode ?? 0, body: JSON.parse(text) }
  } finally {
    await stopping.close()
  }
}

const provocations: Readonly<Record<string, () => Promise<Refused>>> = {
  '401 not_signed_in': () => askDashboard(service, 'GET', '/session'),
  '401 sign_in_refused': () =>
    askDashboard(service, 'POST', '/sign-in', {
      body: { email: 'nobody@acme.example', password: 'a wrong password' },
    }),
  '403 origin_refused': () =>
    askDashboard(service, 'POST', '/sign-in', {
      body: { email: 'nobody@acme.example', password: 'a wrong password' },
      headers: { origin: 'https://elsewhere.example' },
    }),
  '403 approval_required': () => stage.call({ input: stage.message() }),
  '403 approval_used': async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    await stage.call({ input, token })
    return stage.call({ input, token })
  },
  '403 approval_expired': async () => {
    const input = stage.message()
    const token = await stage.approved(input)
    await stage.setClock(new Date(Date.now() + 600_000))
    return stage.call({ input, token }).finally(() => stage.resumeClock())
  },
  '403 approval_mismatch': async () =>
    stage.call({ input: stage.message(), token: await stage.approved(stage.message()) }),
  '403 approval_denied': async () => {
    const input = stage.message()
    await deny(stage.app, stage.user, await stage.ask(input))
    return stage.call({ input })
  },
  '409 conflict': makeStage,
  '503 stream_unavailable': streamOfStopped,
}

test.each(Object.entries(provocations))('%s', async (refusal, provoke) => {
  const { status, body } = await provoke()
  expect(`${status} ${body.code}`, JSON.stringify(body)).toBe(refusal)
})

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly responses?: object }>>>>
}

test('every code of the registry is in openapi.json or provoked here, and none is in both', () => {
  const { paths } = JSON.parse(readFileSync(join(repository, 'openapi.json'), 'utf8')) as Document
  const responses = Object.values(paths).flatMap((path) =>
    Object.values(path).flatMap(({ responses = {} }) => Object.values(responses)),
  )
  const examples = responses.flatMap((one) => Object.keys(one.content?.['application/json']?.examples ?? {}))
  const documented = new Set(examples.filter((name) => name in errors))
  const others = Object.keys(provocations).map((refusal) => refusal.split(' ')[1])
  expect([...documented, ...others].toSorted()).toEqual(Object.keys(errors).toSorted())
})
