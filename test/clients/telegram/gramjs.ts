/** gramjs (npm `telegram`): the full transport or the abridged one, `p_q_inner_data` with RSA's old padding. */
import { createRequire } from 'node:module'
import { type Device, type ForeignClient, type Place, Refused, type TlObject } from './device.ts'
import { type Argument, type Entry, entries, layer, schemaText } from './schema.ts'

type Fields = Record<string, unknown>
type Class = new (fields: Fields) => Fields
type BigNumber = { toString(): string }

interface Gramjs {
  readonly Api: Readonly<Record<string, unknown>>
  readonly TelegramClient: new (...args: unknown[]) => GramClient
  readonly Logger: new (level: string) => unknown
}

interface GramClient {
  connect(): Promise<boolean>
  invoke(request: object): Promise<unknown>
  addEventHandler(handler: (update: unknown) => void): void
  destroy(): Promise<void>
}

interface Session {
  setDC(dc: number, address: string, port: number): void
}

const require = createRequire(import.meta.url)
// Before the library reads its own schema, of layer 198.
require.cache[require.resolve('telegram/tl/apiTl.js')] = Object.assign(
  Object.create(require('node:module').prototype),
  { id: 'schema', loaded: true, exports: schemaText() },
)
const { Api, TelegramClient, Logger } = {
  ...(require('telegram') as Gramjs),
  ...(require('telegram/extensions') as Pick<Gramjs, 'Logger'>),
}
Object.assign(require('telegram/tl/AllTLObjects.js') as object, { LAYER: layer })
const { StringSession } = require('telegram/sessions') as { StringSession: new (text: string) => Session }
const { ConnectionTCPFull, ConnectionTCPAbridged } = require('telegram/network') as Record<
  'ConnectionTCPFull' | 'ConnectionTCPAbridged',
  Class
>
const { _serverKeys } = require('telegram/crypto/RSA.js') as { _serverKeys: Map<string, unknown> }
const { computeCheck } = require('telegram/Password.js') as {
  computeCheck(question: unknown, password: string): Promise<unknown>
}
// Its own copy: it tells numbers of another from its own.
const bigInt = createRequire(require.resolve('telegram'))('big-integer') as {
  (digits: string, base?: number): BigNumber
  isInstance(value: unknown): value is BigNumber
}

const byName = new Map(entries.map((entry) => [entry.name, entry]))
const byClass = new Map(
  entries.filter(({ kind }) => kind === 'class').map((entry) => [classNameOf(entry), entry]),
)

function pascal(name: string): string {
  return name.replace(/(?:^|_)([a-z])/g, (_, letter: string) => letter.toUpperCase()).replaceAll('_', '')
}

function camel(name: string): string {
  return name.replace(/_([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

function pathOf({ name }: Pick<Entry, 'name'>): string[] {
  const [space, own] = name.split('.')
  return own === undefined ? [pascal(space ?? '')] : [space ?? '', pascal(own)]
}

function classNameOf(entry: Entry): string {
  return pathOf(entry).join('.')
}

function make({ _: name, ...fields }: TlObject): object {
  const entry = byName.get(name)
  if (!entry) throw new Error(`The schema has no ${name}.`)
  const Class = pathOf(entry).reduce<unknown>((space, part) => (space as Fields)[part], Api) as Class
  const given = entry.arguments.filter((each) => fields[each.name] !== undefined)
  return new Class(
    Object.fromEntries(given.map((each) => [camel(each.name), makeValue(each, fields[each.name])])),
  )
}

function makeValue(argument: Argument, value: unknown): unknown {
  if (argument.typeModifiers?.isVector) {
    const { typeModifiers: _, ...one } = argument
    return (value as unknown[]).map((each) => makeValue(one, each))
  }
  if (argument.type === 'long' || argument.type === 'int53') return bigInt(String(value))
  if (value instanceof Uint8Array) return Buffer.from(value)
  return typeof value === 'object' && value !== null ? make(value as TlObject) : value
}

function at(value: unknown, field: string): unknown {
  return (value as Fields | null | undefined)?.[field]
}

/** Back into names and values of TL. */
function plain(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(plain)
  if (bigInt.isInstance(value)) return value.toString()
  const entry = byClass.get(String(at(value, 'className')))
  if (!entry) return value
  const fields = entry.arguments.map((each) => [each.name, plain(at(value, camel(each.name)))])
  return { _: entry.name, ...Object.fromEntries(fields) }
}

export const gramjs: readonly ForeignClient[] = [
  { name: 'gramjs', open: (place) => open(place, ConnectionTCPFull) },
  { name: 'gramjs, abridged', open: (place) => open(place, ConnectionTCPAbridged) },
]

async function open({ port, key }: Place, Connection: Class): Promise<Device> {
  // It has keys of Telegram's servers only.
  const fingerprint = BigInt.asIntN(64, BigInt(`0x${key.fingerprint}`)).toString()
  _serverKeys.set(fingerprint, { n: bigInt(key.modulus, 16), e: Number.parseInt(key.exponent, 16) })
  // It dials port 80 whatever its session says, and writes ports above 32767 nowhere.
  class AtPort extends Connection {
    constructor(options: Fields) {
      super({ ...options, port })
    }
  }
  const session = new StringSession('')
  session.setDC(2, '127.0.0.1', 443)
  const client = new TelegramClient(session, 1, '0'.repeat(32), {
    ...{ connection: AtPort, useWSS: false, connectionRetries: 10, retryDelay: 200 },
    baseLogger: new Logger('none'),
  })
  const updates: TlObject[] = []
  client.addEventHandler((update) => {
    const { _: name } = (plain(update) ?? {}) as Partial<TlObject>
    if (name !== undefined) updates.push(plain(update) as TlObject)
  })
  await client.connect()
  return {
    updates,
    async call(method, params = {}) {
      try {
        return plain(await client.invoke(make({ _: method, ...params })))
      } catch (error) {
        const { code, errorMessage } = error as { code?: number; errorMessage?: string }
        throw errorMessage === undefined ? error : new Refused(`${code} ${errorMessage}`)
      }
    },
    prove: async (question, password) => plain(await computeCheck(make(question), password)) as TlObject,
    close: () => client.destroy(),
  }
}
