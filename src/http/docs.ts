/** The reference page at /docs, served from installed files so that it works without internet. */
import Fastify, { type FastifyInstance } from 'fastify'
import { mountAsset } from './assets.ts'
import { type Chapter, makePage, makeScript, mark, style } from './docs-page.ts'

const policy = [
  "default-src 'none'",
  "script-src 'self'",
  // The reference ships its own styles and inserts them itself.
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** A document on the page: one that is served elsewhere, or one that the page contains and cannot try. */
export type Source =
  | { readonly title: string; readonly slug: string; readonly url: string }
  | { readonly title: string; readonly slug: string; readonly document: object }

interface DocsOptions {
  readonly sources: readonly Source[]
  /** Where the page links to. Undefined: the server has no dashboard. */
  readonly dashboard?: string | undefined
}

export async function mountDocs(server: FastifyInstance, { sources, dashboard }: DocsOptions): Promise<void> {
  const headers = { 'content-security-policy': policy }
  server.get('/docs', async (request, reply) => {
    request.operation = 'docs'
    return reply.headers(headers).redirect('/docs/', 301)
  })
  const serve = (url: string, type: string, make: () => string | Promise<string>, more = {}) =>
    mountAsset(server, url, { operation: 'docs', type, headers: { ...headers, ...more }, make })
  const chapters = sources.map((source): Chapter => {
    const { title, slug } = source
    if ('url' in source) return { title, slug, url: source.url, tryable: true }
    const url = `/docs/${slug}.json`
    serve(url, 'application/json; charset=utf-8', () => JSON.stringify(source.document))
    return { title, slug, url, tryable: false }
  })
  serve('/docs/', 'text/html; charset=utf-8', () => makePage(dashboard))
  serve('/docs/page.css', 'text/css; charset=utf-8', () => style)
  serve('/docs/mark.svg', 'image/svg+xml; charset=utf-8', () => mark)
  serve('/docs/js/page.js', javascript, () => makeScript(chapters))
  serve('/docs/js/scalar.js', javascript, readReference, { 'cache-control': 'public, max-age=3600' })
}

const javascript = 'application/javascript; charset=utf-8'

/** The bundle is inside a plugin that serves it afresh for each request. Ask for it once, on a server that no client reaches. */
async function readReference(): Promise<string> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const stage = Fastify()
  await stage.register(reference, { routePrefix: '/docs', configuration: { sources: [] } })
  const { body } = await stage.inject('/docs/js/scalar.js')
  await stage.close()
  return body
}
