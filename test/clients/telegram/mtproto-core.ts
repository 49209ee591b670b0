/** `@mtproto/core`: the obfuscated intermediate transport, `p_q_inner_data` with RSA's old padding. */
import { createRequire } from 'node:module'
import { type Device, type ForeignClient, Refused, type TlObject } from './device.ts'
import { type Argument, bitOf, type Entry, entries, isGiven, layer } from './schema.ts'

type Fields = Record<string, unknown>

/** What its serializer and its counter of bytes have in common. */
interface Writer {
  int32(value: number): void
  predicate(value: unknown): void
  vector(one: (this: Writer, value: unknown) => void, values: unknown): void
  readonly [type: string]: unknown
}

interface Reader {
  int32(): number
  predicate(): unknown
  vector(one: (this: Reader) => unknown): unknown
  readonly [type: string]: unknown
}

interface Socket {
  removeAllListeners(event: string): void
  destroy(): void
}

interface Core {
  dcList: readonly object[]
  readonly rpcs: Map<number, { readonly transport: { readonly socket: Socket } }>
  readonly updates: { on(name: string, taken: (container: TlObject) => void): void }
  readonly crypto: {
    readonly rsa: { getPublisKeysByHex(): Promise<Fields> }
    getSRPParams(given: Fields): Promise<{ A: Uint8Array; M1: Uint8Array }>
  }
  updateInitConnectionParams(params: Fields): void
  call(method: string, params: Fields): Promise<unknown>
}

const require = createRequire(import.meta.url)
const MTProto = require('@mtproto/core') as new (options: Fields) => Core
const builders = require('@mtproto/core/src/tl/builder') as Record<string, unknown>
const parsers = require('@mtproto/core/src/tl/parser') as Map<number, unknown>

for (const entry of entries) {
  builders[entry.name] = builderOf(entry)
  parsers.set(entry.id, parserOf(entry))
}

/** The names of its methods for TL's own types; everything else is an object. */
const own: Record<string, string> = { int53: 'long' }
for (const type of ['int', 'long', 'string', 'bytes', 'double', 'int128', 'int256']) own[type] = type

function builderOf(entry: Entry) {
  return function (this: Writer, params: Fields): void {
    this.int32(entry.id | 0)
    for (const argument of entry.arguments) {
      const value = params[argument.name]
      if (argument.type === '#') this.int32(flagsOf(entry, argument.name, params))
      else if (argument.type !== 'true' && isGiven(argument, value)) build(this, argument, value)
    }
  }
}

function flagsOf({ arguments: all }: Entry, name: string, params: Fields): number {
  return all.reduce((flags, each) => {
    const bit = bitOf(each, name)
    return bit !== undefined && isGiven(each, params[each.name]) ? flags | (1 << bit) : flags
  }, 0)
}

function build(writer: Writer, { type, typeModifiers }: Argument, value: unknown): void {
  const one = (writer[type === 'Bool' ? 'Bool' : (own[type] ?? 'predicate')] ?? writer.predicate) as (
    this: Writer,
    value: unknown,
  ) => void
  if (typeModifiers?.isVector) writer.vector(one, value)
  else one.call(writer, value)
}

function parserOf(entry: Entry) {
  return function (this: Reader): TlObject {
    const object: Fields = {}
    for (const argument of entry.arguments) {
      const { name, type, typeModifiers } = argument
      const [flags = '', bit] = typeModifiers?.predicate?.split('.') ?? []
      const isThere = bit === undefined || ((Number(object[flags]) >>> Number(bit)) & 1) === 1
      const one = this[own[type] ?? 'predicate'] as (this: Reader) => unknown
      if (type === '#') object[name] = this.int32()
      else if (type === 'true') object[name] = isThere
      else if (isThere) object[name] = typeModifiers?.isVector ? this.vector(one) : one.call(this)
    }
    return { _: entry.name, ...object }
  }
}

export const mtprotoCore: ForeignClient = {
  name: '@mtproto/core',
  async open({ port, key }): Promise<Device> {
    const kept = new Map<string, string>()
    const core = new MTProto({
      ...{ api_id: 1, api_hash: '0'.repeat(32) },
      storageOptions: {
        instance: {
          set: (name: string, text: string) => kept.set(name, text),
          get: (name: string) => kept.get(name),
        },
      },
    })
    core.dcList = [{ id: 2, ip: '127.0.0.1', port }]
    // Its own schema ends with layer 158, and it has keys of Telegram's servers only.
    core.updateInitConnectionParams({ lang_pack: '', system_version: '1.0' })
    builders.invokeWithLayer = function (this: Writer, { query }: Fields) {
      layered.call(this, { layer, query })
    }
    const { fingerprint, ...numbers } = key
    core.crypto.rsa.getPublisKeysByHex = async () => ({ [fingerprint]: numbers })
    const updates: TlObject[] = []
    for (const name of ['updates', 'updatesCombined']) {
      core.updates.on(name, (container) => updates.push(...(container.updates as TlObject[])))
    }
    core.updates.on('updateShort', ({ update }) => updates.push(update as TlObject))
    return {
      updates,
      async call(method, params = {}) {
        try {
          return await core.call(method, params)
        } catch (error) {
          const { error_code, error_message } = error as { error_code?: number; error_message?: string }
          throw error_message === undefined ? error : new Refused(`${error_code} ${error_message}`)
        }
      },
      async prove({ srp_id, srp_B: gB, current_algo }, password) {
        const { g, p, salt1, salt2 } = current_algo as TlObject
        const proof = await core.crypto.getSRPParams({ g, p, salt1, salt2, gB, password })
        return { _: 'inputCheckPasswordSRP', srp_id, ...proof }
      },
      async close() {
        // It has no such call, and dials again when its socket closes.
        for (const { transport } of core.rpcs.values()) {
          transport.socket.removeAllListeners('close')
          transport.socket.destroy()
        }
      },
    }
  },
}

const layered = builderOf(entries.find(({ name }) => name === 'invokeWithLayer') ?? missing())

function missing(): never {
  throw new Error('The schema has no invokeWithLayer.')
}
