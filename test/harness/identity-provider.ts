/** An identity provider that lies where a test wants it to, and is correct in everything else. */
import { createHash, createHmac, generateKeyPairSync, type KeyObject, randomUUID, sign } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export const clientSecret = 'canary-client-secret-of-the-provider'

export interface Lies {
  /** Claims of the ID token to change; undefined removes one. */
  readonly claims?: Readonly<Record<string, unknown>>
  readonly header?: Readonly<Record<string, unknown>>
  /** Signs with a key that it does not publish. */
  readonly foreign_key?: boolean
  readonly unsigned?: boolean
  /** Signs with the shared secret, as a symmetric algorithm would. */
  readonly symmetric?: boolean
  readonly token?: Readonly<Record<string, unknown>>
  readonly metadata?: Readonly<Record<string, unknown>>
  readonly userinfo?: Readonly<Record<string, unknown>>
  /** The status to answer with instead, by endpoint. */
  readonly status?: Readonly<Record<string, number>>
  /** Accepts a code more than once. */
  readonly careless?: boolean
}

interface Grant {
  readonly nonce: string
  readonly challenge: string
  readonly sub: string
}

const makePair = () => generateKeyPairSync('rsa', { modulusLength: 2048 })

export class IdentityProvider {
  lies: Lies = {}
  readonly asked: string[] = []
  readonly #server = createServer((request, response) => void this.#answer(request, response))
  readonly #keys = makePair()
  readonly #foreign = makePair()
  readonly #grants = new Map<string, Grant>()
  /** Every secret it has issued, for tests that search the logs. */
  readonly secrets: string[] = [clientSecret]
  #port = 0

  async open(): Promise<this> {
    await new Promise<void>((resolve) => this.#server.listen(this.#port, '127.0.0.1', resolve))
    this.#port = (this.#server.address() as AddressInfo).port
    return this
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  get issuer(): string {
    return `http://127.0.0.1:${this.#port}`
  }

  /** Signs a person in; returns the code that the browser takes back. */
  authorize(location: string, sub: string): string {
    const { searchParams } = new URL(location)
    const code = `canary-code-${randomUUID()}`
    const nonce = searchParams.get('nonce') ?? ''
    this.#grants.set(code, { nonce, challenge: searchParams.get('code_challenge') ?? '', sub })
    this.secrets.push(code)
    return code
  }

  async #answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { pathname } = new URL(request.url ?? '', this.issuer)
    this.asked.push(pathname)
    let text = ''
    for await (const chunk of request) text += chunk
    const status = this.lies.status?.[pathname]
    const body = status ? { error: 'server_error' } : this.#bodyOf(pathname, new URLSearchParams(text))
    response.writeHead(status ?? (body && 'error' in body ? 400 : 200), {
      'content-type': 'application/json',
    })
    response.end(JSON.stringify(body ?? {}))
  }

  #bodyOf(path: string, form: URLSearchParams): object | undefined {
    if (path === '/jwks') {
      return {
        keys: [{ ...this.#keys.publicKey.export({ format: 'jwk' }), kid: 'one', alg: 'RS256', use: 'sig' }],
      }
    }
    if (path === '/token') return this.#exchange(form)
    if (path === '/userinfo') return this.lies.userinfo ?? {}
    return {
      issuer: this.issuer,
      authorization_endpoint: `${this.issuer}/authorize`,
      token_endpoint: `${this.issuer}/token`,
      userinfo_endpoint: `${this.issuer}/userinfo`,
      jwks_uri: `${this.issuer}/jwks`,
      id_token_signing_alg_values_supported: ['RS256'],
      token_endpoint_auth_methods_supported: ['client_secret_post'],
      authorization_response_iss_parameter_supported: true,
      ...this.lies.metadata,
    }
  }

  #exchange(form: URLSearchParams): object {
    const code = form.get('code') ?? ''
    const grant = this.#grants.get(code)
    const verifier = form.get('code_verifier') ?? ''
    const challenge = createHash('sha256').update(verifier).digest('base64url')
    const known = form.get('client_secret') === clientSecret
    if (!grant || challenge !== grant.challenge || !known) return { error: 'invalid_grant' }
    if (!this.lies.careless) this.#grants.delete(code)
    const access_token = `canary-access-token-${randomUUID()}`
    const id_token = this.#idToken(grant)
    this.secrets.push(verifier, access_token, ...(id_token ? [id_token] : []))
    return { access_token, token_type: 'Bearer', expires_in: 60, id_token, ...this.lies.token }
  }

  #idToken({ nonce, sub }: Grant): string {
    const now = Math.floor(Date.now() / 1000)
    const { claims, header } = this.lies
    const body = { iss: this.issuer, aud: 'parley', sub, nonce, iat: now, exp: now + 60, ...claims }
    const encode = (value: object) => Buffer.from(JSON.stringify(value)).toString('base64url')
    const signed = `${encode({ alg: 'RS256', kid: 'one', ...header })}.${encode(body)}`
    return `${signed}.${this.#signature(signed)}`
  }

  #signature(signed: string): string {
    const { unsigned, symmetric, foreign_key } = this.lies
    if (unsigned) return ''
    if (symmetric) return createHmac('sha256', clientSecret).update(signed).digest('base64url')
    const key: KeyObject = (foreign_key ? this.#foreign : this.#keys).privateKey
    return sign('RSA-SHA256', Buffer.from(signed), key).toString('base64url')
  }
}
