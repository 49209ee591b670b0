/** The identity provider: discovers it, sends people there to sign in, and asks it who they are. */
import type { ClientAuth, Configuration, UserInfoResponse } from 'openid-client'
import type { App } from '../../app.ts'
import type { OidcConfig } from '../../config.ts'
import { isUuid, namedId, urlNamespace } from '../../lib/ids.ts'
import { isWellFormed } from '../../lib/text.ts'

/** How long the provider may take for one response, while a person waits. */
const answerSeconds = 10
/** How long the provider's metadata is cached. */
const metadataMs = 3_600_000

/** The person who signed in, according to the provider. */
interface Identity {
  readonly issuer: string
  readonly subject: string
  readonly idp_user_uuid: string
  /** Only if the provider has verified the address. */
  readonly email: string | undefined
}

/** Loaded at the first OIDC sign-in: most instances never have one, and loading takes a tenth of a second. */
type Library = typeof import('openid-client')

interface Provider {
  readonly library: Library
  readonly client: Configuration
}

interface CachedProvider {
  readonly provider: Promise<Provider>
  readonly until: number
}

const found = new WeakMap<OidcConfig, CachedProvider>()

/** Throws if the provider does not answer; the next sign-in tries again. */
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
  // Checks the signature although the token comes straight from the provider, because there may be a proxy in between.
  library.enableNonRepudiationChecks(client) // guard: signature of the provider
  return { library, client }
}

/** Sends the client secret in the body if the provider accepts that, otherwise in a header, which all providers accept. */
function clientAuth(library: Library, secret: string | undefined): ClientAuth {
  if (secret === undefined) return library.None()
  const [inBody, inHeader] = [library.ClientSecretPost(secret), library.ClientSecretBasic(secret)]
  return (server, ...rest) => {
    const methods = server.token_endpoint_auth_methods_supported ?? []
    return (methods.includes('client_secret_post') ? inBody : inHeader)(server, ...rest)
  }
}

/** What a sign-in stores while the person is at the provider. */
interface Secrets {
  readonly state: string
  readonly nonce: string
  readonly verifier: string
}

/** Returns the provider's sign-in address, and the secrets to check its answer against. */
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

/** Registered at the provider, and sent with every request. */
function callbackOf({ config }: App): string {
  return `${config.base_url}/dashboard/oidc/callback`
}

function scopeOf({ link_by_email, uuid_claim }: OidcConfig): string {
  return ['openid', ...(link_by_email ? ['email'] : []), ...(uuid_claim ? ['profile'] : [])].join(' ')
}

/** Exchanges the code, and checks state, nonce, issuer, audience, times and signature. */
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
  // Otherwise all people without a subject would be the same user.
  if (claims.sub.trim() === '') throw new Error('empty subject') // guard: empty subject
  const wanted = [...(config.link_by_email ? ['email'] : []), config.uuid_claim ?? 'sub']
  const complete = wanted.every((name) => claims[name] !== undefined)
  // Many providers return the e-mail address only from their userinfo endpoint.
  const more: Partial<UserInfoResponse> =
    complete || !client.serverMetadata().userinfo_endpoint
      ? {}
      : await library.fetchUserInfo(client, tokens.access_token, claims.sub)
  return identityOf(config, { ...more, ...claims })
}

type Claims = Readonly<Record<string, unknown>> & { readonly iss: string; readonly sub: string }

/** A person keeps one UUID: the subject if it is one, else the named claim, else one derived from issuer and subject. */
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

/** Whether the provider could not be reached, as opposed to having returned an invalid answer. */
export function isUnreachable(error: unknown): boolean {
  const { name, code, cause } = error as { name?: string; code?: string; cause?: unknown }
  if (code === 'OAUTH_TIMEOUT' || (name === 'TypeError' && (error as Error).message === 'fetch failed'))
    return true
  return code === 'OAUTH_RESPONSE_IS_NOT_CONFORM' && cause instanceof Response && cause.status >= 500
}
