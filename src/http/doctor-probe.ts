/**
 * The probe of `parley doctor`: a request to our own public address, signed with the secret of the instance. The process that
 * it reaches proves that it knows the secret, and says how the request came.
 */
import { timingSafeEqual } from 'node:crypto'
import type { FastifyRequest } from 'fastify'
import type { App } from '../app.ts'
import { isWithin, readAddress } from '../lib/addresses.ts'
import type { Secrets } from '../lib/secrets.ts'

const header = 'x-parley-doctor'
/** A copied probe is useless after this long. The clocks of two machines may differ by some of it. */
const ageSecondsMax = 300

/** How a probe reached the process. */
export interface ProbeWay {
  /** The address that connected to the process: a proxy's, or the doctor's own. */
  readonly peer: string
  /** Whether PARLEY_TRUSTED_PROXIES of the process lists it. */
  readonly trusted: boolean
  /** Whether it says for whom it asks. */
  readonly forwarded: boolean
}

export interface ProbeAnswer {
  readonly way: ProbeWay
  readonly proof: string
}

export function probeHeaders(secrets: Secrets, now: Date): Record<string, string> {
  const at = String(Math.floor(now.getTime() / 1_000))
  return { [header]: `${at}.${secrets.sign('doctor', 'probe', at).toString('hex')}` }
}

/** Whether this answers a probe with these headers: only a process with the same secret can. */
export function isOurAnswer(
  secrets: Secrets,
  headers: Readonly<Record<string, string>>,
  answer: unknown,
): answer is ProbeAnswer {
  const { proof } = (answer ?? {}) as Partial<ProbeAnswer>
  const valid = secrets.signatures('doctor', 'proof', headers[header] ?? '')
  return typeof proof === 'string' && valid.some((each) => isEqual(proof, each.toString('hex')))
}

/** Nothing for any other caller: addresses inside a network are no concern of the public. */
export function describeWay({ secrets, config }: App, request: FastifyRequest): ProbeAnswer | undefined {
  const probe = request.headers[header]
  if (typeof probe !== 'string') return undefined
  const [at = '', signature = ''] = probe.split('.')
  // guard: only the doctor learns the way
  if (!secrets.signatures('doctor', 'probe', at).some((each) => isEqual(signature, each.toString('hex'))))
    return undefined
  if (Math.abs(Date.now() / 1_000 - Number(at)) > ageSecondsMax) return undefined // guard: an old probe says nothing
  const peer = readAddress(request.raw.socket.remoteAddress ?? '')
  return {
    way: {
      peer: peer?.toString() ?? 'unknown',
      trusted: peer !== undefined && isWithin(config.trusted_proxies, peer),
      forwarded: request.headers['x-forwarded-for'] !== undefined,
    },
    proof: proofOf(secrets, probe),
  }
}

function proofOf(secrets: Secrets, probe: string): string {
  return secrets.sign('doctor', 'proof', probe).toString('hex')
}

function isEqual(one: string, other: string): boolean {
  const [a, b] = [Buffer.from(one), Buffer.from(other)]
  return a.length === b.length && timingSafeEqual(a, b)
}
