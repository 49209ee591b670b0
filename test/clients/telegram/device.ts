/**
 * One device of an account, driven by a client library that shares no code with Parley. Values are those of TL under their own
 * names: an object has its constructor in `_`, a `long` is a decimal text.
 */
export interface TlObject {
  readonly _: string
  readonly [field: string]: unknown
}

export interface Place {
  readonly port: number
  readonly key: ServerKey
}

/** The data centre's RSA key, in hexadecimal digits. */
export interface ServerKey {
  readonly modulus: string
  readonly exponent: string
  readonly fingerprint: string
}

export interface Device {
  /** What the server pushed, oldest first. */
  readonly updates: TlObject[]
  call(method: string, params?: Readonly<Record<string, unknown>>): Promise<unknown>
  /** The answer to the question of `account.getPassword`, by the library's own arithmetic. */
  prove(question: TlObject, password: string): Promise<TlObject>
  close(): Promise<void>
}

export interface ForeignClient {
  readonly name: string
  /** Connects without a key: the first call exchanges one. */
  open(place: Place): Promise<Device>
}

/** An answer that is an error, such as `400 PHONE_CODE_INVALID`. */
export class Refused extends Error {}
