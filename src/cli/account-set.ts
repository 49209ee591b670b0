/** `parley account set`: the proxy of an account, and its daily limit. */
import { type Command, InvalidArgumentError } from 'commander'
import { changeAccount } from '../capabilities/accounts/accounts.ts'
import { parseProxyUrl } from '../lib/proxy-url.ts'
import { Prompt } from './prompt.ts'
import { verb, wholeOrNone } from './verbs.ts'

interface SetOptions {
  readonly proxy?: string
  readonly coldPerDay?: number | 'none'
}

export function addSetVerb(account: Command): void {
  const command: Command = verb<SetOptions>(
    account,
    'set <id>',
    'set the proxy or the daily campaign limit of an account',
    async (app, actor, { proxy, coldPerDay }, id = '') => {
      if (proxy === undefined && coldPerDay === undefined) {
        command.error('error: give --proxy or --cold-per-day', { exitCode: 2 })
      }
      return changeAccount(app, actor, {
        id,
        proxy: proxy === '-' ? await readProxy(command) : proxy === 'none' ? null : proxy,
        cold_per_day: coldPerDay === 'none' ? null : coldPerDay,
      })
    },
  )
    .option(
      '--proxy <url>',
      'socks5://, http:// or https:// and a host and port; none; or - to type a URL with its credentials',
      proxyUrl,
    )
    .option(
      '--cold-per-day <n>',
      'first messages per day to people who never wrote to it, or none',
      wholeOrNone,
    )
}

/** Other processes see arguments, so credentials are only read from the terminal or a pipe. */
function proxyUrl(value: string): string {
  if (value === '-' || value === 'none') return value
  const proxy = parseProxyUrl(value)
  if (typeof proxy === 'string') throw new InvalidArgumentError(`A proxy ${proxy}.`)
  if (proxy.credentials) {
    throw new InvalidArgumentError('Give - instead, and type the URL: other processes see arguments.') // guard: no credentials in arguments
  }
  return value
}

async function readProxy(command: Command): Promise<string | null> {
  const prompt = new Prompt()
  try {
    const line = (await prompt.ask('Proxy: ', { hidden: true })).trim()
    const proxy = line === 'none' ? null : parseProxyUrl(line)
    if (typeof proxy === 'string') command.error(`error: a proxy ${proxy}`, { exitCode: 2 })
    return line === 'none' ? null : line
  } finally {
    prompt.close()
  }
}
