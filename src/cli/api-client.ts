/** Calls the API for a command, with the key and the address from the environment. */

import { addressDefault, readConfig } from '../config.ts'
import { apiPrefix } from '../contract.ts'
import { Refusal } from '../lib/errors.ts'
import { platformVariables } from './platforms.ts'

interface ApiAnswer {
  readonly status: number
  readonly text: string
  /** Seconds, if the service asks the client to wait. */
  readonly retry_after: number | undefined
}

/** PARLEY_API_KEY decides the workspace, PARLEY_BASE_URL the service. The default is a service on this machine. */
export function readConnection(env: NodeJS.ProcessEnv): Connection {
  const { api_key, base_url } = readConfig(env, platformVariables)
  if (api_key === undefined) {
    throw new Refusal('Set PARLEY_API_KEY to a key of the workspace. `parley key create` creates one.')
  }
  return { key: api_key, address: base_url ?? addressDefault }
}

interface Connection {
  /** Without a trailing slash. */
  readonly address: string
  readonly key: string
}

export class ApiClient {
  readonly #address: string
  readonly #key: string

  constructor() {
    const { address, key } = readConnection(process.env)
    this.#key = key
    this.#address = address
  }

  async ask(method: string, path: string, body?: object): Promise<ApiAnswer> {
    const headers = { authorization: `Bearer ${this.#key}`, 'content-type': 'application/json' }
    const sent = body && { body: JSON.stringify(body) }
    const response = await fetch(this.#address + apiPrefix + path, { method, headers, ...sent }).catch(() => {
      throw new Refusal(
        `The service at ${this.#address} does not respond. Set PARLEY_BASE_URL to its address.`,
      )
    })
    const retry = response.headers.get('retry-after')
    return {
      status: response.status,
      text: await response.text(),
      retry_after: retry ? Number(retry) : undefined,
    }
  }

  /** Returns the answer, or throws the sentence of the refusal. */
  async call<T>(method: string, path: string, body?: object): Promise<T> {
    const { status, text } = await this.ask(method, path, body)
    if (status < 300) return JSON.parse(text)
    throw new Refusal(sentenceOf(text))
  }
}

export function sentenceOf(text: string): string {
  try {
    return String(JSON.parse(text).error)
  } catch {
    return 'The response is not from Parley. Set PARLEY_BASE_URL to the address of the service.'
  }
}
