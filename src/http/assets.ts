/** Files that are the same for every caller: made once, kept as bytes, compressed once, answered 304 if the tag matches. */
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify'

interface Asset {
  /** The name of the operation, for logs and metrics. */
  readonly operation: string
  readonly type: string
  readonly headers?: Readonly<Record<string, string>>
  /** Called once, on the first request. */
  make(): string | Promise<string>
}

interface PreparedAsset {
  readonly plain: Buffer
  readonly gzipped: Buffer
  readonly tag: string
}

const compress = promisify(gzip)

export function mountAsset(server: FastifyInstance, url: string, asset: Asset): void {
  const made = once(() => prepare(asset))
  server.get(url, async (request, reply) => {
    request.operation = asset.operation
    return answer(request, reply, { asset, made: await made() })
  })
}

/** Shares one result. After a failure the next call tries again. */
export function once<T>(work: () => Promise<T>): () => Promise<T> {
  let done: Promise<T> | undefined
  return () => {
    done ??= work().catch((error) => {
      done = undefined
      throw error
    })
    return done
  }
}

async function prepare({ make }: Asset): Promise<PreparedAsset> {
  const plain = Buffer.from(await make())
  const tag = createHash('sha256').update(plain).digest('base64url').slice(0, 22)
  // On another thread, so that other requests are served meanwhile.
  return { plain, gzipped: await compress(plain, { level: 9 }), tag }
}

function answer(
  request: FastifyRequest,
  reply: FastifyReply,
  { asset, made }: { asset: Asset; made: PreparedAsset },
): FastifyReply {
  const zipped = takes(request.headers['accept-encoding'] ?? '', 'gzip')
  const etag = `"${made.tag}${zipped ? '-gzip' : ''}"`
  reply.headers({ 'cache-control': 'no-cache', vary: 'Accept-Encoding', ...asset.headers, etag })
  if (knows(request.headers['if-none-match'] ?? '', etag)) return reply.code(304).send()
  if (zipped) reply.header('content-encoding', 'gzip')
  return reply.type(asset.type).send(zipped ? made.gzipped : made.plain)
}

/** Whether a client accepts an encoding, by its Accept-Encoding. */
export function takes(accepted: string, encoding: 'br' | 'gzip'): boolean {
  return accepted.split(',').some((part) => {
    const [name = '', weight = ''] = part.split(';', 2)
    const refused = /^\s{0,9}q=0(\.0{0,3})?\s{0,9}$/i.test(weight)
    return [encoding, '*'].includes(name.trim().toLowerCase()) && !refused
  })
}

/** Whether a client has this already, by its If-None-Match. */
export function knows(given: string, etag: string): boolean {
  return given.split(',').some((part) => ['*', etag, `W/${etag}`].includes(part.trim()))
}
