/** The reference page at /docs, served from installed files: it works without internet. */
import reference from '@scalar/fastify-api-reference'
import type { FastifyInstance } from 'fastify'

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

export interface Source {
  readonly title: string
  readonly url: string
}

export async function mountDocs(server: FastifyInstance, sources: readonly Source[]): Promise<void> {
  await server.register(async (scope) => {
    scope.addHook('onRequest', async (request, reply) => {
      request.operation = 'docs'
      reply.header('Content-Security-Policy', policy)
      if (request.url.endsWith('/scalar.js')) reply.header('Cache-Control', 'public, max-age=3600')
    })
    await scope.register(reference, {
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
  })
}
