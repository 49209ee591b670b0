/** The reference page at /docs, served from installed files: it works without internet. */
import Fastify, { type FastifyInstance } from 'fastify'
import { mountAsset, once } from './assets.ts'

const policy = [
  "default-src 'none'",
  // The page starts itself with one inline call.
  "script-src 'self' 'unsafe-inline'",
  "style-src 'self' 'unsafe-inline'",
  "img-src 'self' data:",
  "font-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ')

/** A document of the page: one that is served elsewhere, or one that the page brings along. */
export type Source =
  | { readonly title: string; readonly url: string }
  | { readonly title: string; readonly slug: string; readonly document: object }

export async function mountDocs(server: FastifyInstance, given: readonly Source[]): Promise<void> {
  const sources = given.map((source) => {
    if ('url' in source) return source
    const url = `/docs/${source.slug}.json`
    const make = () => JSON.stringify(source.document)
    mountAsset(server, url, { operation: 'docs', type: 'application/json; charset=utf-8', make })
    return { title: source.title, url }
  })
  const headers = { 'content-security-policy': policy }
  const page = once(() => renderPage(sources))
  server.get('/', async (request, reply) => {
    request.operation = 'docs'
    return reply.redirect('/docs/', 302)
  })
  server.get('/docs', async (request, reply) => {
    request.operation = 'docs'
    return reply.headers(headers).redirect('/docs/', 301)
  })
  mountAsset(server, '/docs/', {
    operation: 'docs',
    type: 'text/html; charset=utf-8',
    headers,
    make: async () => (await page()).html,
  })
  mountAsset(server, '/docs/js/scalar.js', {
    operation: 'docs',
    type: 'application/javascript; charset=utf-8',
    headers: { ...headers, 'cache-control': 'public, max-age=3600' },
    make: async () => (await page()).script,
  })
}

type Page = { readonly html: string; readonly script: string }

/** The package of the page is a plugin that answers both on every request anew. It is asked once, by a server that nobody else sees. */
async function renderPage(sources: readonly { title: string; url: string }[]): Promise<Page> {
  const { default: reference } = await import('@scalar/fastify-api-reference')
  const stage = Fastify()
  await stage.register(reference, {
    routePrefix: '/docs',
    configuration: {
      sources: [...sources],
      pageTitle: 'Parley API',
      withDefaultFonts: false,
      telemetry: false,
      agent: { disabled: true },
      mcp: { disabled: true },
      showDeveloperTools: 'never',
      hideClientButton: true,
      favicon: 'data:,',
      defaultOpenAllTags: true,
      hideModels: true,
      persistAuth: false,
    },
  })
  const [html, script] = await Promise.all([stage.inject('/docs/'), stage.inject('/docs/js/scalar.js')])
  await stage.close()
  return { html: html.body, script: script.body }
}
