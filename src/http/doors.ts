/** A door: routes under one prefix, and who may enter. The API's door is for keys, the dashboard's two are for users. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { type BodyNeeds, type Channel, perform } from '../access/perform.ts'
import type { App } from '../app.ts'
import type { AnyCaller } from '../contract.ts'
import { type Chunk, dropFile, storeChunk } from '../ledger/files.ts'
import { sourceOf } from '../lib/addresses.ts'
import { ApiError } from '../lib/errors.ts'
import { Form, type Route } from '../route.ts'
import { headerValues, pathOf } from './base.ts'
import { type BodySender, readBody } from './body.ts'
import { isForm, readForm } from './multipart.ts'
import { send } from './send.ts'
import type { Drop } from './sockets.ts'
import { readTextFile } from './text-file.ts'
import { inUserWords } from './user-sentences.ts'

export interface Door {
  /** May have parameters, such as {workspace_id}. */
  readonly prefix: string
  readonly routes: readonly Route[]
  readonly enter: Enter
  readonly channel: Channel
}

/** Authenticates a request and counts it against the caller's rate. `route` is undefined if the address is unknown. */
export type Enter = (request: FastifyRequest, at: MatchedRoute) => Promise<AnyCaller>

interface MatchedRoute {
  readonly route: Route | undefined
  /** The prefix's parameters. */
  readonly params: Readonly<Record<string, string>>
}

interface MountOptions {
  readonly bodyMs: number
  readonly drop: Drop
}

export function mountDoor(
  app: App,
  server: FastifyInstance,
  door: Door,
  { bodyMs, drop }: MountOptions,
): void {
  const { prefix, enter, channel } = door
  for (const route of door.routes) {
    server.route({
      method: route.method,
      url: urlOf(prefix + route.path),
      handler: async (request, reply) => {
        request.operation = route.name
        const params = request.params as Record<string, string>
        const caller = await enter(request, { route, params: pick(params, namesIn(prefix)) })
        // The client has disconnected, and nothing has been done yet.
        if (request.raw.socket.destroyed) {
          drop('closed')
          return reply.hijack()
        }
        return unlessLeft(reply, drop, async (left) => {
          const sender = senderOf(app, caller, { response: reply.raw, left })
          const answer = perform(app, route, traced(caller, request), {
            params: pick(params, namesIn(route.path)),
            query: request.query as Record<string, unknown>,
            body: (wanted) => read(app, request.raw, { caller, wanted, bodyMs, sender }),
            idempotency_keys: route.effect === 'read' ? [] : headerValues(request, 'idempotency-key'),
            channel,
            range: route.bytes && rangeOf(request),
            left,
          })
          return send(request, reply, await (channel === 'dashboard' ? inUserWords(answer) : answer))
        })
      },
    })
  }
}

/** The caller with the trace of this request. A copy, because one object serves all requests of a key. */
export function traced<C extends AnyCaller>(caller: C, { traceparent }: FastifyRequest): C {
  if (!traceparent || !('workspace_id' in caller)) return caller
  return { ...caller, traceparent } // guard: a trace is that of one request
}

/** Aborts work whose caller has disconnected. */
const callerLeft = new Error('The caller has left.')

/** Work that ends because its caller has disconnected is no failure, and gets no answer. */
export async function unlessLeft(
  reply: FastifyReply,
  drop: Drop,
  work: (left: () => AbortSignal) => Promise<FastifyReply>,
): Promise<FastifyReply> {
  try {
    return await work(leftSignal(reply.raw))
  } catch (error) {
    if (error !== callerLeft) throw error
    drop('closed')
    return reply.hijack()
  }
}

/** Made only for work that asks for it, because a controller costs as much as a small request. */
function leftSignal(response: ServerResponse): () => AbortSignal {
  let leaving: AbortController | undefined
  return () => {
    if (leaving) return leaving.signal
    const made = new AbortController()
    leaving = made
    const leave = () => {
      if (!response.writableFinished) made.abort(callerLeft)
    }
    if (response.destroyed) leave()
    else response.once('close', leave)
    return made.signal
  }
}

/** We name no version of a file, so a condition on it never holds, and the caller gets the whole. */
function rangeOf({ headers }: FastifyRequest): string | undefined {
  return headers['if-range'] === undefined ? headers.range : undefined
}

function urlOf(path: string): string {
  return path.replaceAll(/\{(\w+)\}/g, ':$1')
}

function namesIn(path: string): string[] {
  return [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name as string)
}

function pick(params: Readonly<Record<string, string>>, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.map((name) => [name, params[name] as string]))
}

interface Connected {
  readonly response: ServerResponse
  readonly left: () => AbortSignal
}

export function senderOf({ sources }: App, caller: AnyCaller, { response, left }: Connected): BodySender {
  return {
    source: sourceOfBody(caller),
    timer: sources.timer,
    left,
    onEnd: (act) => {
      if (response.destroyed) act()
      else response.once('close', act)
    },
  }
}

function sourceOfBody(caller: AnyCaller): string {
  if ('workspace_id' in caller) return caller.workspace_id
  return 'user_id' in caller ? caller.user_id : sourceOf(caller.via.address)
}

interface Reading {
  readonly caller: AnyCaller
  readonly wanted: BodyNeeds
  readonly bodyMs: number
  readonly sender: BodySender
}

async function read(
  app: App,
  raw: IncomingMessage,
  { caller, wanted: { route, refuse }, bodyMs, sender }: Reading,
): Promise<unknown> {
  const isFile = route.text !== undefined || (route.form && isForm(raw))
  if (!isFile || !('workspace_id' in caller)) return readBody(raw, route, sender, bodyMs)
  const { workspace_id } = caller
  const store = (chunk: Chunk) => storeChunk(app.db, { ...chunk, workspace_id })
  const drop = (file_id: string) => dropFile(app, file_id)
  if (route.text !== undefined) {
    return readTextFile(raw, { type: route.text, store, drop, stopping: app.stopping })
  }
  const { fields, attachment, refusal } = await readForm(raw, { refuse, store, drop })
  return new Form(fields, attachment, refusal)
}

/** Unknown addresses and methods need a caller too: authentication runs before the address is checked. */
export function mountMissing(server: FastifyInstance, doors: readonly Door[]): void {
  const answerMissing = async (request: FastifyRequest, reply: FastifyReply) => {
    const found = findDoor(doors, pathOf(request))
    if (!found) throw new ApiError('not_found')
    const { door, params, rest } = found
    await door.enter(request, { route: undefined, params })
    const methods = methodsOf(door.routes, rest)
    if (methods.length === 0) throw new ApiError('not_found')
    reply.header('Allow', methods.join(', '))
    throw new ApiError('method_not_allowed', {
      detail: `This address supports ${methods.join(', ')}, not ${request.method}.`,
    })
  }
  server.setNotFoundHandler(answerMissing)
  // The router must not take a fixed path, such as /chats/start, for a value of a path parameter beside it.
  for (const { prefix, routes } of doors) {
    for (const { method, path } of shadowed(routes)) {
      server.route({ method, url: urlOf(prefix + path), handler: answerMissing })
    }
  }
}

interface DoorMatch extends Pick<MatchedRoute, 'params'> {
  readonly door: Door
  /** The path after the prefix. */
  readonly rest: string
}

/** The door with the longest prefix that the path lies under. */
export function findDoor(doors: readonly Door[], path: string): DoorMatch | undefined {
  const longestFirst = [...doors].sort((one, other) => other.prefix.length - one.prefix.length)
  for (const door of longestFirst) {
    const params = matchPrefix(door.prefix, path)
    if (!params) continue
    const segments = path.split('/').slice(door.prefix.split('/').length)
    return { door, params, rest: segments.map((segment) => `/${segment}`).join('') }
  }
  return undefined
}

/** The parameters if the path lies under the prefix, even with some letters escaped; otherwise undefined. */
export function matchPrefix(prefix: string, path: string): Record<string, string> | undefined {
  const given = path.split('/').map(unescapePart)
  const params: Record<string, string> = {}
  for (const [at, wanted] of prefix.split('/').entries()) {
    const segment = given[at]
    const name = /^\{(\w+)\}$/.exec(wanted)?.[1]
    if (segment === undefined || (name ? segment === '' : segment !== wanted)) return undefined
    if (name) params[name] = segment
  }
  return params
}

function unescapePart(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    return part
  }
}

function methodsOf(routes: readonly Route[], path: string): string[] {
  const exact = routes.filter((route) => route.path === path)
  const matching = exact.length > 0 ? exact : routes.filter((route) => matches(route, path))
  // A path that allows GET also allows HEAD.
  return [...new Set(matching.flatMap(({ method }) => (method === 'GET' ? ['GET', 'HEAD'] : [method])))]
}

function matches({ path: pattern }: Route, path: string): boolean {
  return new RegExp(`^${pattern.replaceAll(/\{\w+\}/g, '[^/]+')}$`).test(path)
}

/** What the router would mistake for another operation: GET /chats/start as the chat called "start". */
function shadowed(routes: readonly Route[]): Pick<Route, 'method' | 'path'>[] {
  return routes
    .filter(({ path }) => !path.includes('{'))
    .flatMap(({ path }) =>
      routes
        .filter((other) => other.path !== path && matches(other, path))
        .filter(({ method }) => !routes.some((route) => route.path === path && route.method === method))
        .map(({ method }) => ({ method, path })),
    )
}
