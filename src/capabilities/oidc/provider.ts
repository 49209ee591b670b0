/** The identity provider: found by its address, asked to let somebody sign in, asked who that was. */
import type { ClientAuth, Configuration, UserInfoResponse } from 'openid-client'
import type { App } from '../../app.ts'
import type { OidcConfig } from '../../config.ts'
import { isUuid, namedId, urlNamespace } from '../../lib/ids.ts'
import { isWellFormed } from '../../lib/text.ts'

/** How long the provider may take for one answer. A person waits for it. */
const answerSeconds = 10
/** How long what the provider says about itself is believed without asking again. */
const metadataMs = 3_600_000

/** Who signed in, as the provider says it. */
export interface Identity {
  readonly issuer: string
  readonly subject: string
  readonly idp_user_uuid: string
  /** Only an address that the provider has verified. */
  readonly email: string | undefined
}

/** It is loaded when somebody signs in this way: most instances never do, and loading takes a tenth of a second. */
type Library = typeof import('openid-client')

interface Provider {
  readonly library: Library
  readonly client: Configuration
}

interface Found {
  readonly provider: Promise<Provider>
  readonly until: number
}

const found = new WeakMap<OidcConfig, Found>()

/** Throws where the provider does not answer; the next sign-in asks it again. */
function findProvider(config: OidcConfig): Promise<Provider> {
  const known = found.get(config)
  if (known && known.until > performance.now()) return known.provider
  const provider = discover(config)
  found.set(config, { provider, until: performance.now() + metadataMs })
  provider.catch(() => found.delete(config))
  return provider
}

async function discover({ issuer, client_id, client_secret }: OidcConfig): Promise<Provider> {
  const library = await import('openid-client')
  const address = new URL(issuer)
  const insecure = address.protocol === 'http:' ? [library.allowInsecureRequests] : []
  const client = await library.discovery(
    address,
    client_id,
    client_secret,
    clientAuth(library, client_secret),
    { timeout: answerSeconds, execute: insecure },
  )
  // The signature is checked although the token comes straight from the provider: a proxy in between proves nothing.
  library.enableNonRepudiationChecks(client) // guard: signature of the provider
  return { library, client }
}

/** How Parley shows its secret: in the body where the provider takes it there, else in a header, which all of them know. */
function clientAuth(library: Library, secret: string | undefined): ClientAuth {
  if (secret === undefined) return library.None()
  const [inBody, inHeader] = [library.ClientSecretPost(secret), library.ClientSecretBasic(secret)]
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? []
    return (methods.includes('client_secret_post') ? inBody : inHeader)(server, ...rest)
  }
}

/** What is remembered of one sign-in while its person is at the provider. */
export interface Secrets {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** The address at which the provider asks who somebody is, and what the answer will be held against. */
export async function beginAt(app: App, config: OidcConfig): Promise<Secrets & { location: string }> {
  const { library, client } = await findProvider(config)
  const secrets = {
    state: library.randomState(),
    nonce: library.randomNonce(),
    verifier: library.randomPKCECodeVerifier(),
  }
  const location = library.buildAuthorizationUrl(client, {
    redirect_uri: callbackOf(app),
    scope: scopeOf(config),
    state: secrets.state,
    nonce: secrets.nonce,
    code_challenge: await library.calculatePKCECodeChallenge(secrets.verifier),
    code_challenge_method: 'S256',
  })
  return { ...secrets, location: location.href }
}

/** Registered at the provider, and sent along with every question. */
export function callbackOf({ config }: App): string {
  return `${config.base_url}/dashboard/oidc/callback`
}

function scopeOf({ link_by_email, uuid_claim }: OidcConfig): string {
  return ['openid', ...(link_by_email ? ['email'] : []), ...(uuid_claim ? ['profile'] : [])].join(' ')
}

/** Exchanges the code, and checks state, nonce, issuer, audience, times and signature on the way. */
export async function askWho(
  app: App,
  config: OidcConfig,
  { query, ...expected }: Secrets & { query: string },
): Promise<Identity> {
  const { library, client } = await findProvider(config)
  const answered = new URL(`${callbackOf(app)}${query}`)
  const tokens = await library.authorizationCodeGrant(client, answered, {
    expectedState: expected.state,
    expectedNonce: expected.nonce,
    pkceCodeVerifier: expected.verifier,
    idTokenExpected: true,
  })
  const claims = tokens.claims()
  if (!claims || claims.sub.length > 255 || !isWellFormed(claims.sub)) throw new Error('unusable subject')
  // Every person whom a provider forgot to name would be the same one.
  if (claims.sub.trim() === '') throw new Error('empty subject') // guard: empty subject
  const wanted = [...(config.link_by_email ? ['email'] : []), config.uuid_claim ?? 'sub']
  const complete = wanted.every((name) => claims[name] !== undefined)
  // Many providers tell the e-mail address only at an address of its own.
  const more: Partial<UserInfoResponse> =
    complete || !client.serverMetadata().userinfo_endpoint
      ? {}
      : await library.fetchUserInfo(client, tokens.access_token, claims.sub)
  return identityOf(config, { ...more, ...claims })
}

type Claims = Readonly<Record<string, unknown>> & { readonly iss: string; readonly sub: string }

/** A person has one UUID for good: the subject if it is one, else the named claim, else one made of issuer and subject. */
export function identityOf({ uuid_claim }: Pick<OidcConfig, 'uuid_claim'>, claims: Claims): Identity {
  const { iss: issuer, sub: subject, email, email_verified } = claims
  const claimed = uuid_claim === undefined ? undefined : claims[uuid_claim]
  const given = [subject, claimed].find((each) => typeof each === 'string' && isUuid(each))
  return {
    issuer,
    subject,
    idp_user_uuid: (given as string | undefined) ?? namedId(namedId(urlNamespace, issuer), subject),
    email: typeof email === 'string' && email_verified === true ? email : undefined,
  }
}

/** Whether the provider could not be asked, as opposed to having answered something that does not hold. */
export function isUnreachable(error: unknown): boolean {
  const { name, code, cause } = error as { name?: string; code?: string; cause?: unknown }
  if (code === 'OAUTH_TIMEOUT' || (name === 'TypeError' && (error as Error).message === 'fetch failed'))
    return true
  return code === 'OAUTH_RESPONSE_IS_NOT_CONFORM' && cause instanceof Response && cause.status >= 500
}
