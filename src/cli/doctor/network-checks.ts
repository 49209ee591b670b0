/** Whether Parley reaches what it is configured to use, and whether its public address leads back to it. */

import type { App } from '../../app.ts'
import { type AccountProxies, listProxies } from '../../capabilities/accounts/accounts.ts'
import type { Config } from '../../config.ts'
import { isOurAnswer, type ProbeWay, probeHeaders } from '../../http/doctor-probe.ts'
import { Refusal } from '../../lib/errors.ts'
import type { Secrets } from '../../lib/secrets.ts'
import type { ReachProblem } from '../../platform/module.ts'
import { findCertificateFault } from '../certificates.ts'
import { platformModules } from '../platforms.ts'
import { type Finding, fault, ok, orOk, warning } from './finding.ts'

const answerMsMax = 5_000

export async function lookAtRedis({ redis_url }: Pick<Config, 'redis_url'>): Promise<Finding> {
  if (redis_url === undefined) return ok('Not used: the database or this process counts requests.')
  const { Redis } = await import('ioredis')
  const redis = new Redis(redis_url, {
    lazyConnect: true,
    enableReadyCheck: false,
    connectTimeout: answerMsMax,
    commandTimeout: answerMsMax,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
  })
  let reason: (Error & { code?: string }) | undefined
  redis.on('error', (error) => {
    reason = error
  })
  try {
    await redis.connect()
    await redis.ping()
    return ok('It answers.')
  } catch (error) {
    const { found, todo } = findCertificateFault(reason, redisServer) ?? {
      found: reason?.code ?? reason?.message ?? (error as Error).message,
      todo: 'Start it, correct REDIS_URL, or leave REDIS_URL out: then PostgreSQL counts.',
    }
    return fault(`Redis does not answer (${found}): every request is refused.`, todo)
  } finally {
    redis.disconnect()
  }
}

const redisServer = {
  variable: 'REDIS_URL',
  where: 'on the server',
  trust: 'name that certificate with NODE_EXTRA_CA_CERTS=FILE in the environment of every process',
}

/** `app` is undefined while the database does not answer: then the proxies of accounts are unknown. */
export async function lookAtPlatforms(
  { platform_env: env }: Pick<Config, 'platform_env'>,
  app: Pick<App, 'db' | 'secrets' | 'config'> | undefined,
): Promise<readonly Finding[]> {
  const findings: Finding[] = []
  for (const { name, reach } of platformModules) {
    const { proxies, direct, unreadable }: AccountProxies = app ? await listProxies(app, name) : noProxies
    if (unreadable.length > 0) {
      findings.push(
        fault(
          `The proxies of accounts were stored under another secret: ${unreadable.join(', ')}.`,
          'Set PARLEY_SECRET to the earlier value, or set the proxies again.',
        ),
      )
    }
    try {
      const problems = await reach({ env, proxies, direct })
      if (problems === undefined) findings.push(ok(`${name}: none of its variables is set.`))
      else findings.push(...orOk(problems.map(unreached), `${name} accepts connections.`))
    } catch (error) {
      if (!(error instanceof Refusal)) throw error
      findings.push(fault(error.message, 'Correct the variables.'))
    }
  }
  return findings
}

const noProxies: AccountProxies = { proxies: [], direct: true, unreadable: [] }

const checkNetwork = 'Check the network and the firewall of this machine, and the proxies of the accounts.'

function unreached({ problem, advice = checkNetwork }: ReachProblem): Finding {
  return fault(problem, advice)
}

/** Asks our own public address for a proof that only this instance can give. */
export async function lookAtBaseUrl(
  { base_url }: Pick<Config, 'base_url'>,
  secrets: Secrets | undefined,
): Promise<{ readonly address: Finding; readonly proxy: Finding }> {
  const unknown = (found: string) => ({ address: ok(found), proxy: ok(found) })
  if (base_url === undefined)
    return unknown('PARLEY_BASE_URL is not set: links use the address that Parley listens on.')
  if (secrets === undefined) return unknown('Not checked: the secret is unknown.')
  const headers = probeHeaders(secrets, new Date())
  const answer = await askOurselves(base_url, headers)
  if ('problem' in answer) {
    return {
      address: fault(
        `PARLEY_BASE_URL, ${base_url}, does not lead here: ${answer.problem}.`,
        answer.todo ?? correct,
      ),
      proxy: ok('Not checked: PARLEY_BASE_URL does not lead here.'),
    }
  }
  if (!isOurAnswer(secrets, headers, answer.body)) {
    return {
      address: fault(
        `PARLEY_BASE_URL, ${base_url}, leads to another service, or to a Parley with another secret.`,
        correct,
      ),
      proxy: ok('Not checked: PARLEY_BASE_URL does not lead here.'),
    }
  }
  return { address: ok(`${base_url} leads here.`), proxy: judgeProxy(base_url, answer.body.way) }
}

const correct =
  'Correct PARLEY_BASE_URL, the name in DNS or the proxy in front; if this machine cannot reach its own public address, run doctor elsewhere.'

/** Browsers refuse these certificates too, and each has its own list of authorities. */
const proxyInFront = {
  variable: 'PARLEY_BASE_URL',
  where: 'in the proxy in front',
  trust: 'every browser has to know it as well; doctor does with NODE_EXTRA_CA_CERTS=FILE in its environment',
}

type Asked = { readonly body: unknown } | { readonly problem: string; readonly todo?: string }

async function askOurselves(base_url: string, headers: Record<string, string>): Promise<Asked> {
  try {
    const signal = AbortSignal.timeout(answerMsMax)
    const response = await fetch(`${base_url}/healthz`, { headers, signal, redirect: 'manual' })
    const text = (await response.text()).slice(0, 10_000)
    if (response.status !== 200) return { problem: `/healthz answers with status ${response.status}` }
    return { body: JSON.parse(text) }
  } catch (error) {
    if (error instanceof SyntaxError) return { body: undefined }
    const { name, cause } = error as Error & { cause?: { code?: string } }
    const certificate = findCertificateFault(cause, proxyInFront)
    if (certificate) return { problem: certificate.found, todo: certificate.todo }
    return { problem: name === 'TimeoutError' ? 'no answer' : (cause?.code ?? 'no connection') }
  }
}

/** Parley itself speaks no TLS, so behind https:// there is a proxy even if it says nothing. */
function judgeProxy(base_url: string, { peer, trusted, forwarded }: ProbeWay): Finding {
  if (!forwarded && !base_url.startsWith('https:')) return ok('There is none in front of Parley.')
  if (!trusted) {
    return warning(
      `The proxy at ${peer} is not in PARLEY_TRUSTED_PROXIES, so all people share one budget for signing in.`,
      `Add ${peer} to PARLEY_TRUSTED_PROXIES of every process that serves, if it is your proxy's own address.`,
    )
  }
  if (!forwarded) {
    return warning(
      `The proxy at ${peer} sends no X-Forwarded-For, so all people share one budget for signing in.`,
      'Let it append the address of its client.',
    )
  }
  return ok(`The proxy at ${peer} is trusted.`)
}
