/**
 * The dashboard's pages, built by `web/build.ts`. Its manifest names every file that may be served, and the server reads them
 * all when it is built: a request's path is never a path on disk.
 */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import { knows, takes } from './assets.ts'

/** Where `npm ci` and `npm start` build it. */
export const builtPages = join(import.meta.dirname, '..', '..', 'web', 'dist')

const listed = z.array(
  z.object({
    file: z.string(),
    type: z.string(),
    tag: z.string(),
    encodings: z.array(z.enum(['br', 'gzip'])),
    immutable: z.boolean(),
  }),
)
type ManifestEntry = z.infer<typeof listed>[number]
type Encoding = ManifestEntry['encodings'][number]

interface BuiltFile extends ManifestEntry {
  readonly plain: Buffer
  readonly encoded: ReadonlyMap<Encoding, Buffer>
}

const endings: Readonly<Record<Encoding, string>> = { br: '.br', gzip: '.gz' }
const page = 'index.html'
/** What is below /dashboard and is not a page. A name with a dot is a file's. */
const notPages = /^(api|assets|oidc)(\/|$)|\.[^/]*$/

/** Returns false if nothing was built, as after `npm ci --omit=dev`. */
export async function mountPages(server: FastifyInstance, directory: string): Promise<boolean> {
  const list = await readFile(join(directory, 'manifest.json'), 'utf8').catch(() => undefined)
  if (list === undefined) return false
  const files = await Promise.all(listed.parse(JSON.parse(list)).map((each) => readBuilt(directory, each)))
  const answerWith = (built: BuiltFile) => async (request: FastifyRequest, reply: FastifyReply) => {
    request.operation = 'dashboard'
    return answer(request, reply, built)
  }
  for (const built of files) server.get(`/dashboard/${built.file}`, answerWith(built))
  const built = files.find(({ file }) => file === page)
  if (!built) throw new Error(`The list of the dashboard's files names no ${page}.`)
  const answerPage = answerWith(built)
  server.get('/dashboard', answerPage)
  server.get<{ Params: { '*': string } }>('/dashboard/*', async (request, reply) => {
    if (notPages.test(request.params['*'])) return reply.callNotFound()
    return answerPage(request, reply)
  })
  return true
}

async function readBuilt(directory: string, each: ManifestEntry): Promise<BuiltFile> {
  const path = join(directory, each.file)
  const encoded = each.encodings.map(async (name) => [name, await readFile(path + endings[name])] as const)
  return { ...each, plain: await readFile(path), encoded: new Map(await Promise.all(encoded)) }
}

function answer(request: FastifyRequest, reply: FastifyReply, built: BuiltFile): FastifyReply {
  const accepted = request.headers['accept-encoding'] ?? ''
  const encoding = built.encodings.find((name) => takes(accepted, name))
  const etag = `"${built.tag}${encoding ? `-${encoding}` : ''}"`
  reply.headers({
    // A hashed file name identifies the content; browsers revalidate everything else.
    'cache-control': built.immutable ? 'public, max-age=31536000, immutable' : 'no-cache',
    vary: 'Accept-Encoding',
    etag,
  })
  if (knows(request.headers['if-none-match'] ?? '', etag)) return reply.code(304).send()
  if (encoding) reply.header('content-encoding', encoding)
  return reply.type(built.type).send((encoding && built.encoded.get(encoding)) ?? built.plain)
}
