/** The environment, read once at the start. Reports all faults together and guesses nothing. */
import { isIP } from 'node:net'
import { z } from 'zod'
import { type Network, networksRule, readNetworks } from './lib/addresses.ts'
import { ConfigError } from './lib/errors.ts'
import { address, baseAddress, databaseAddress, wholeNumber } from './lib/variables.ts'

/** Where a service listens by default. */
export const addressDefault = 'http://127.0.0.1:8080'

export interface Config {
  readonly database: { readonly kind: 'embedded' } | { readonly kind: 'url'; readonly url: string }
  readonly redis_url: string | undefined
  /** Undefined only in embedded mode, where it is created once and kept in the data directory. */
  readonly secret: string | undefined
  /** During a rotation: the secret before it, which still opens and verifies. */
  readonly secret_old: string | undefined
  readonly base_url: string | undefined
  /** The key of commands that call the API, such as `parley events`. */
  readonly api_key: string | undefined
  /** Hosts that webhooks may reach over plain HTTP and on private addresses. */
  readonly webhook_allow: ReadonlySet<string>
  /** Where alerts are posted; it may hold a token. Undefined: nowhere. */
  readonly alert_url: string | undefined
  /** What is called every minute while the instance works; it may hold a token. Undefined: nothing. */
  readonly heartbeat_url: string | undefined
  /** Private hosts that an account's proxy may have. */
  readonly proxy_allow: ReadonlySet<string>
  /** The platforms' variables, validated, with their values as set. */
  readonly platform_env: Readonly<Record<string, string>>
  readonly host: string
  /** The proxies whose `X-Forwarded-For` counts. Empty: none. */
  readonly trusted_proxies: readonly Network[]
  /** Undefined: `start` uses the port after its own, every other process has none. */
  readonly admin_port: number | undefined
  readonly admin_host: string
  /** Whether the sandbox may be controlled outside the demo. */
  readonly sandbox_control: boolean
  /** How long a stopping process keeps accepting requests, so that a load balancer notices first. */
  readonly drain_seconds: number
  readonly clock: 'system' | 'manual'
  readonly rate_limit: number
  readonly pool_size: number
  readonly log_level: (typeof logLevels)[number]
  readonly metrics_token: string | undefined
  /** Confirms the database to a worker whose disk does not know it. */
  readonly instance_id: string | undefined
  /** Limits per account, below what platforms restrict accounts for. */
  readonly read_state_minute: number
  readonly start_chat_minute: number
  readonly start_chat_day: number
  /** The minimum time between two campaign messages of one account. */
  readonly pacing_seconds: number
  /** Pauses a sequence that missed its start by more than this; undefined: it starts however late. */
  readonly schedule_lateness_seconds: number | undefined
  /** Limits per workspace. */
  readonly campaign_create_minute: number
  readonly campaign_cancel_minute: number
  /** Accounts that are not disabled; undefined: no limit. */
  readonly workspace_accounts: number | undefined
  /** A message that consists of one of these puts its sender on the suppression list. */
  readonly opt_out_words: readonly string[]
  /** How much of one workspace's received files is kept. */
  readonly media_cache_bytes: number
  /** The identity provider that people may sign in with, besides e-mail and password. */
  readonly oidc: OidcConfig | undefined
}

export interface OidcConfig {
  readonly issuer: string
  readonly client_id: string
  /** Undefined: a public client, which only uses PKCE. */
  readonly client_secret: string | undefined
  /** The claim that holds a person's UUID, if the subject is not one. */
  readonly uuid_claim: string | undefined
  /** What the button says after "Continue with". */
  readonly label: string
  /** Whether a verified e-mail address is enough to link an unknown identity to the user with that address. */
  readonly link_by_email: boolean
}

/** Requests to stop, in the languages people write to us in. */
const optOutWords = [
  'stop, stop all, stopall, please stop, stop please, unsubscribe, unsubscribe me, opt out, optout, remove me',
  'stop messaging me, stop writing to me, do not contact me, leave me alone',
  'stopp, bitte stopp, abmelden, austragen, abbestellen, keine nachrichten mehr',
  'arrêter, arrêtez, désabonner, désinscrire, se désabonner, se désinscrire',
  'baja, parar, cancelar suscripción, darme de baja, no me escribas más',
  'sair, pare, descadastrar, cancelar inscrição',
  'basta, cancellami, disiscrivimi, annulla iscrizione',
  'afmelden, uitschrijven, stoppen, avregistrera, sluta, afmeld, lopeta',
  'stop proszę, wypisz, wypisz mnie, rezygnuję, odhlásit, přestaňte, leiratkozás, dezabonare',
  'стоп, отписаться, отпишите меня, отписка, не пишите мне, хватит, відписатися, не пишіть мені',
  'dur, iptal, abonelikten çık, beni çıkar, διαγραφή, σταμάτα',
  'توقف, إلغاء الاشتراك, إيقاف, הסר, הסירו אותי, बंद करो, रोकें',
  '停止, 退订, 取消订阅, 取消訂閱, 配信停止, 登録解除, やめて, 수신거부, 중지, ยกเลิก, dừng lại, hủy đăng ký, berhenti',
].flatMap((line) => line.split(', '))

const logLevels = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const issuerRule = 'must be an address that starts with https:// (http:// on loopback only), without ? or #'

function hostList() {
  return z
    .string()
    .refine((text) => hostsOf(text).every(isHost), {
      message: 'must be comma-separated host names or addresses, without scheme or port',
    })
    .default('')
}

/** What `.env.example` documents. An unknown variable that starts with PARLEY_ stops the service. */
const variables = {
  DATABASE_URL: databaseAddress(),
  REDIS_URL: address('redis:', 'rediss:'),
  PARLEY_SECRET: z.string().min(32, 'must be at least 32 characters long').optional(),
  PARLEY_SECRET_OLD: z.string().min(32, 'must be at least 32 characters long').optional(),
  PARLEY_BASE_URL: baseAddress(),
  PARLEY_API_KEY: z.string().startsWith('svc_live_', 'must be an API key, svc_live_…').optional(),
  PARLEY_WEBHOOK_ALLOW: hostList(),
  PARLEY_PROXY_ALLOW: hostList(),
  PARLEY_ALERT_URL: address('https:', 'http:'),
  PARLEY_HEARTBEAT_URL: address('https:', 'http:'),
  PARLEY_HOST: z.string().default('127.0.0.1'),
  PARLEY_TRUSTED_PROXIES: z
    .string()
    .refine((text) => readNetworks(text) !== undefined, { message: networksRule })
    .default(''),
  PARLEY_ADMIN_PORT: wholeNumber(0, 65_535).optional(),
  PARLEY_ADMIN_HOST: z.string().default('127.0.0.1'),
  PARLEY_SANDBOX_CONTROL: z.enum(['on', 'off'], 'must be on or off').default('off'),
  PARLEY_DRAIN_SECONDS: wholeNumber(0, 300).default(0),
  PARLEY_CLOCK: z.enum(['system', 'manual'], 'must be system or manual').default('system'),
  PARLEY_RATE_LIMIT: wholeNumber(1, 1_000_000).default(120),
  // With fewer, one search and one import would take all connections that requests have.
  PARLEY_POOL_SIZE: wholeNumber(5, 500).default(10), // guard: the smallest pool
  PARLEY_LOG_LEVEL: z.enum(logLevels, `must be one of ${logLevels.join(', ')}`).default('info'),
  PARLEY_METRICS_TOKEN: z.string().min(16, 'must be at least 16 characters long').optional(),
  PARLEY_INSTANCE_ID: z.guid('must be the id that the log names').optional(),
  PARLEY_READ_STATE_PER_MINUTE: wholeNumber(1, 10_000).default(60),
  PARLEY_START_CHAT_PER_MINUTE: wholeNumber(1, 10_000).default(30),
  PARLEY_START_CHAT_PER_DAY: wholeNumber(1, 10_000).default(200),
  PARLEY_PACING_SECONDS: wholeNumber(0, 86_400).default(15),
  PARLEY_SCHEDULE_LATENESS: wholeNumber(1, 31_536_000).optional(),
  PARLEY_CAMPAIGN_CREATE_PER_MINUTE: wholeNumber(1, 10_000).default(60),
  PARLEY_CAMPAIGN_CANCEL_PER_MINUTE: wholeNumber(1, 10_000).default(60),
  PARLEY_ACCOUNTS_PER_WORKSPACE: wholeNumber(1, 100_000).optional(),
  PARLEY_MEDIA_CACHE_MB: wholeNumber(50, 1_000_000).default(1024),
  PARLEY_OPT_OUT_WORDS: z
    .string()
    .max(20_000, 'must have at most 20000 characters')
    .refine(namesWords, { message: 'must be comma-separated words, or none' })
    .optional(),
  PARLEY_OIDC_ISSUER: z.string().refine(isIssuer, { message: issuerRule }).optional(),
  PARLEY_OIDC_CLIENT_ID: z.string().max(500, 'must have at most 500 characters').optional(),
  PARLEY_OIDC_CLIENT_SECRET: z.string().max(2_000, 'must have at most 2000 characters').optional(),
  PARLEY_OIDC_UUID_CLAIM: z.string().max(200, 'must have at most 200 characters').optional(),
  PARLEY_OIDC_LABEL: z.string().max(40, 'must have at most 40 characters').default('single sign-on'),
  PARLEY_OIDC_LINK_BY_EMAIL: z.enum(['on', 'off'], 'must be on or off').default('off'),
}

/** Read by the command line itself. */
const elsewhere = new Set(['PARLEY_DATA_DIR'])

/** Every variable, as `.env.example` documents them. */
export const variableNames: readonly string[] = [...Object.keys(variables), ...elsewhere]

/** The default of each variable that has one, as `docs/configuration.md` shows it. */
export function variableDefaults(): Readonly<Record<string, string | undefined>> {
  const entries = Object.entries(variables).map(([name, variable]) => [
    name,
    variable.safeParse(undefined).data,
  ])
  const given = entries.filter(([, value]) => value !== undefined)
  return {
    PARLEY_DATA_DIR: '.parley',
    ...Object.fromEntries(given.map(([name, value]) => [name, String(value)])),
  }
}

/** Platforms have variables of their own; the caller passes them. */
export function readConfig(
  env: NodeJS.ProcessEnv,
  platformVariables: Readonly<Record<string, z.ZodType>> = {},
): Config {
  const faults: string[] = []
  for (const name of Object.keys(env)) {
    const known = name in variables || name in platformVariables || elsewhere.has(name)
    if (name.startsWith('PARLEY_') && !known) {
      faults.push(`${name} is not a variable of Parley; .env.example lists them.`)
    }
  }
  const given = pick(env, Object.keys(variables))
  const platform_env = pick(env, Object.keys(platformVariables))
  const parsed = z.object(variables).safeParse(given)
  const forPlatforms = z.object(platformVariables).safeParse(platform_env)
  for (const [name, variable] of Object.entries(platformVariables)) {
    const isFault = env[name] === '' && variable.meta()?.empty === 'fault' // guard: an empty variable that must not be
    if (isFault) faults.push(`${name} is set and empty. Unset it, or give it a value.`)
  }
  for (const issue of [...(parsed.error?.issues ?? []), ...(forPlatforms.error?.issues ?? [])]) {
    faults.push(`${issue.path.join('.')} ${issue.message}.`)
  }
  if (given.REDIS_URL && !given.DATABASE_URL) {
    faults.push(
      'REDIS_URL needs DATABASE_URL: the embedded database serves one process, which counts in memory.',
    )
  }
  if (given.DATABASE_URL && !given.PARLEY_SECRET) {
    faults.push('PARLEY_SECRET is required with DATABASE_URL: all processes must share it.')
  }
  if (given.PARLEY_SECRET_OLD && !given.PARLEY_SECRET) {
    faults.push('PARLEY_SECRET_OLD needs PARLEY_SECRET, the new secret: see docs/operating.md.')
  }
  if (given.PARLEY_SECRET_OLD && given.PARLEY_SECRET_OLD === given.PARLEY_SECRET) {
    faults.push('PARLEY_SECRET_OLD is the same as PARLEY_SECRET. Set PARLEY_SECRET to the new secret.')
  }
  if (given.PARLEY_SANDBOX_CONTROL === 'on' && !isLoopback(given.PARLEY_ADMIN_HOST ?? 'localhost')) {
    faults.push(
      'PARLEY_SANDBOX_CONTROL=on needs an admin port on loopback: unset one of PARLEY_ADMIN_HOST and PARLEY_SANDBOX_CONTROL.',
    )
  }
  faults.push(...findOidcFaults(given))
  if (faults.length > 0 || !parsed.success) throw new ConfigError(faults)
  const env_ = parsed.data
  return {
    database: env_.DATABASE_URL ? { kind: 'url', url: env_.DATABASE_URL } : { kind: 'embedded' },
    redis_url: env_.REDIS_URL,
    secret: env_.PARLEY_SECRET,
    secret_old: env_.PARLEY_SECRET_OLD,
    base_url: env_.PARLEY_BASE_URL?.replace(/\/+$/, ''),
    api_key: env_.PARLEY_API_KEY,
    webhook_allow: new Set(hostsOf(env_.PARLEY_WEBHOOK_ALLOW)),
    alert_url: env_.PARLEY_ALERT_URL,
    heartbeat_url: env_.PARLEY_HEARTBEAT_URL,
    proxy_allow: new Set(hostsOf(env_.PARLEY_PROXY_ALLOW)),
    platform_env,
    host: env_.PARLEY_HOST,
    trusted_proxies: readNetworks(env_.PARLEY_TRUSTED_PROXIES) ?? [],
    admin_port: env_.PARLEY_ADMIN_PORT,
    admin_host: env_.PARLEY_ADMIN_HOST,
    sandbox_control: env_.PARLEY_SANDBOX_CONTROL === 'on',
    drain_seconds: env_.PARLEY_DRAIN_SECONDS,
    clock: env_.PARLEY_CLOCK,
    rate_limit: env_.PARLEY_RATE_LIMIT,
    pool_size: env_.PARLEY_POOL_SIZE,
    log_level: env_.PARLEY_LOG_LEVEL,
    metrics_token: env_.PARLEY_METRICS_TOKEN,
    instance_id: env_.PARLEY_INSTANCE_ID,
    read_state_minute: env_.PARLEY_READ_STATE_PER_MINUTE,
    start_chat_minute: env_.PARLEY_START_CHAT_PER_MINUTE,
    start_chat_day: env_.PARLEY_START_CHAT_PER_DAY,
    pacing_seconds: env_.PARLEY_PACING_SECONDS,
    schedule_lateness_seconds: env_.PARLEY_SCHEDULE_LATENESS,
    campaign_create_minute: env_.PARLEY_CAMPAIGN_CREATE_PER_MINUTE,
    campaign_cancel_minute: env_.PARLEY_CAMPAIGN_CANCEL_PER_MINUTE,
    workspace_accounts: env_.PARLEY_ACCOUNTS_PER_WORKSPACE,
    media_cache_bytes: env_.PARLEY_MEDIA_CACHE_MB * 1024 * 1024,
    opt_out_words: readWords(env_.PARLEY_OPT_OUT_WORDS),
    oidc: env_.PARLEY_OIDC_ISSUER
      ? {
          issuer: env_.PARLEY_OIDC_ISSUER,
          client_id: env_.PARLEY_OIDC_CLIENT_ID ?? '',
          client_secret: env_.PARLEY_OIDC_CLIENT_SECRET,
          uuid_claim: env_.PARLEY_OIDC_UUID_CLAIM,
          label: env_.PARLEY_OIDC_LABEL,
          link_by_email: env_.PARLEY_OIDC_LINK_BY_EMAIL === 'on',
        }
      : undefined,
  }
}

/** Otherwise a provider that is only half configured would silently be missing from the sign-in page. */
function findOidcFaults(given: Readonly<Record<string, string>>): string[] {
  const names = Object.keys(given).filter((name) => name.startsWith('PARLEY_OIDC_'))
  if (!given.PARLEY_OIDC_ISSUER) return names.map((name) => `${name} needs PARLEY_OIDC_ISSUER.`)
  const faults: string[] = []
  if (!given.PARLEY_OIDC_CLIENT_ID) faults.push('PARLEY_OIDC_ISSUER needs PARLEY_OIDC_CLIENT_ID.')
  if (!given.PARLEY_BASE_URL) {
    faults.push('PARLEY_OIDC_ISSUER needs PARLEY_BASE_URL: the provider redirects people to that address.')
  }
  return faults
}

function isIssuer(text: string): boolean {
  if (!URL.canParse(text) || /[?#\s]/.test(text)) return false
  const { protocol, hostname } = new URL(text)
  return protocol === 'https:' || (protocol === 'http:' && isLoopback(hostname.replace(/^\[|\]$/g, '')))
}

/** A host to listen on that only this machine can reach. */
export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || /^127(\.\d{1,3}){3}$/.test(host)
}

/** As URLs spell them: lower case, IPv6 without brackets, no final dot. */
function hostsOf(text: string): string[] {
  const hosts = text.split(',').map((host) =>
    host
      .trim()
      .toLowerCase()
      .replace(/^\[|\]$|\.$/g, ''),
  )
  return hosts.filter(Boolean)
}

function isHost(text: string): boolean {
  return isIP(text) !== 0 || /^[a-z0-9_-]+(\.[a-z0-9_-]+)*$/.test(text)
}

/** An empty variable counts as not set. */
function pick(env: NodeJS.ProcessEnv, names: readonly string[]): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (env[name] ? [[name, env[name]]] : [])))
}

/** `none` switches opt-outs off; a list that begins with a plus extends the default one. */
function readWords(text: string | undefined): readonly string[] {
  if (text === undefined) return optOutWords
  const given = text.trim()
  if (given.toLowerCase() === 'none') return []
  const words = listOf(given)
  return given.startsWith('+') ? [...optOutWords, ...words] : words
}

function listOf(text: string): string[] {
  const words = text.trim().replace(/^\+/, '').split(',')
  return words.map((word) => word.trim()).filter(Boolean)
}

/** A list without a single word would switch opt-outs off silently. */
function namesWords(text: string): boolean {
  const words = listOf(text)
  return words.length > 0 && words.every((word) => /[\p{L}\p{N}]/u.test(word))
}
