/**
 * A real identity provider in its own process: oidc-provider, whose log-in page accepts any name and password. The
 * name is the subject. Takes the port and the redirect address, and prints the issuer once it listens.
 */
const [port = '0', callback = ''] = process.argv.slice(2)

/** The part of oidc-provider that this test uses; it has no types of its own. */
interface Library {
  readonly Provider: new (
    issuer: string,
    options: object,
  ) => { listen(port: number, host: string, done: () => void): void }
}
const name: string = 'oidc-provider'
const { Provider } = (await import(name)) as Library

const issuer = `http://127.0.0.1:${port}`
const scopes: Readonly<Record<string, readonly string[]>> = {
  openid: ['sub'],
  email: ['email', 'email_verified'],
  profile: ['name', 'employee_uuid'],
}

const provider = new Provider(issuer, {
  clients: [
    {
      client_id: 'parley',
      client_secret: 'the secret between Parley and this provider',
      redirect_uris: [callback],
      grant_types: ['authorization_code'],
      response_types: ['code'],
      token_endpoint_auth_method: 'client_secret_post',
    },
  ],
  claims: scopes,
  cookies: { keys: ['a key of a provider that lives as long as one test'] },
  pkce: { required: () => true },
  findAccount: (_context: unknown, sub: string) => ({ accountId: sub, claims: () => claimsOf(sub) }),
})

/** Everyone has an address; the name says whether it is verified, and an employee's UUID. */
function claimsOf(sub: string): object {
  const email = sub.includes('@') ? sub.replace(/^unverified-/, '') : `${sub}@id.example`
  const employee_uuid = sub.startsWith('employee') ? '5f1d1c9e-0d3a-4b6e-9c55-6a3f0b8f7e21' : undefined
  return { sub, email, email_verified: !sub.startsWith('unverified'), name: `The user ${sub}`, employee_uuid }
}

provider.listen(Number(port), '127.0.0.1', () => process.stdout.write(`${issuer}\n`))
