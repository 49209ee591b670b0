/** Linking an identity by a set-up link: the one step of OIDC sign-in that starts on a dashboard page. */
import { z } from 'zod'
import { said } from '../../lib/wire.ts'
import { type Route, visitorRoute } from '../../route.ts'
import { beginSignIn } from './oidc.ts'

export const ownRoutes: readonly Route[] = [
  visitorRoute({
    scopes: [],
    name: 'begin_oidc_setup',
    method: 'POST',
    path: '/setup/oidc',
    summary: 'Link a user to the identity provider',
    effect: 'admin',
    body: z.strictObject({
      token: z.string().min(1, 'is required').max(200, 'is not the token of a set-up link'),
    }),
    errors: ['not_found', 'provider_unavailable'],
    response: z.object({ location: said('Address to which the browser is redirected.') }),
    example: {
      body: { token: 'aB3dE5…' },
      response: { location: 'https://id.example.com/authorize?client_id=parley' },
    },
    handle: async (app, { body: { token } }) => {
      const { location, ...oidc_flow } = await beginSignIn(app, { setup_token: token })
      return { status: 200, body: { location }, oidc_flow }
    },
  }),
]
