/** A request of the API as one would type it: for a shell, and in TypeScript. The key is always the environment's. */

export interface ApiRequest {
  /** What it does, such as `Pause this campaign`. */
  readonly does: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below `/api/v1`, with its ids and its query. */
  readonly path: string
  readonly body?: unknown
  /** Whether the contract asks for an Idempotency-Key, which names this one request. */
  readonly once?: boolean
}

const api = (base_url: string, path: string) => `${base_url}/api/v1${path}`

/** As one word of a shell, whatever is in it. */
const quoted = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

export function curlOf(base_url: string, { method, path, body, once }: Omit<ApiRequest, 'does'>): string {
  const lines = [
    `curl ${method === 'GET' ? '' : `-X ${method} `}${quoted(api(base_url, path))}`,
    '-H "Authorization: Bearer $PARLEY_API_KEY"',
    ...(once ? ['-H "Idempotency-Key: $(openssl rand -hex 16)"'] : []),
    ...(body === undefined
      ? []
      : [`-H 'Content-Type: application/json'`, `-d ${quoted(JSON.stringify(body))}`]),
  ]
  return lines.join(' \\\n  ')
}

export function typescriptOf(base_url: string, { method, path, body, once }: ApiRequest): string {
  const headers = [
    `    Authorization: 'Bearer ' + process.env.PARLEY_API_KEY,`,
    ...(once ? [`    'Idempotency-Key': crypto.randomUUID(),`] : []),
    ...(body === undefined ? [] : [`    'Content-Type': 'application/json',`]),
  ]
  return [
    `const response = await fetch(${JSON.stringify(api(base_url, path))}, {`,
    ...(method === 'GET' ? [] : [`  method: '${method}',`]),
    '  headers: {',
    ...headers,
    '  },',
    ...(body === undefined ? [] : [`  body: JSON.stringify(${JSON.stringify(body)}),`]),
    '})',
    'console.log(response.status, await response.json())',
  ].join('\n')
}
