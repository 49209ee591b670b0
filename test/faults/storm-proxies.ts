/**
 * Proxies between workers and the data centre. Workers know another port than the data centre's, and only the proxies turn
 * one into the other: a connection around them is counted, and reaches nothing.
 */
import { type AddressInfo, createServer, type Server } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { type LoopbackProxy, listenProxy, type ProxyKind } from '../platform/loopback-proxy.ts'
import type { Random } from './random.ts'

const kinds: readonly ProxyKind[] = ['socks5', 'http']
const credentials = { username: 'storm', password: 'storm' }
const cutSeconds = { least: 2, most: 8 }

export class StormProxies {
  /** How often a proxy has lost all its connections at once. */
  cuts = 0
  /** Connections that went around the proxies. */
  around = 0
  readonly #proxies: { readonly url: string; readonly proxy: LoopbackProxy }[] = []
  readonly #decoy: Server
  readonly #closing = new AbortController()
  #centrePort = 0

  private constructor() {
    this.#decoy = createServer((socket) => {
      this.around++
      socket.destroy()
    })
  }

  static async open(count: number): Promise<StormProxies> {
    const all = new StormProxies()
    await new Promise<void>((resolve) => all.#decoy.listen(0, '127.0.0.1', resolve))
    for (let n = 0; n < count; n++) {
      const kind = kinds[n % kinds.length] ?? 'socks5'
      const portFor = (port: number) => (port === all.#decoyPort ? all.#centrePort : port)
      const proxy = await listenProxy(kind, { credentials, portFor })
      const url = `${kind}://${credentials.username}:${credentials.password}@127.0.0.1:${proxy.port}`
      all.#proxies.push({ url, proxy })
    }
    return all
  }

  get #decoyPort(): number {
    return (this.#decoy.address() as AddressInfo).port
  }

  urlOf(account: number): string {
    const found = this.#proxies[account % this.#proxies.length]
    if (!found) throw new Error('There is no proxy.')
    return found.url
  }

  /** The port that workers are given instead of the data centre's. */
  via(centrePort: number): Promise<number> {
    this.#centrePort = centrePort
    return Promise.resolve(this.#decoyPort)
  }

  /** How many connections the proxies have passed on. */
  get passed(): number {
    return this.#proxies.reduce((sum, { proxy }) => sum + proxy.asked.length, 0)
  }

  /** Every few seconds one proxy loses all its connections, until `isOver`. */
  async disturb(random: Random, isOver: () => boolean): Promise<void> {
    const { signal } = this.#closing
    while (!isOver()) {
      random.pick(this.#proxies).proxy.cut()
      this.cuts++
      const ms = random.between(cutSeconds.least, cutSeconds.most) * 1000
      await sleep(ms, undefined, { signal }).catch(() => {})
      if (signal.aborted) return
    }
  }

  async close(): Promise<void> {
    this.#closing.abort()
    this.#decoy.close()
    await Promise.all(this.#proxies.map(({ proxy }) => proxy.close()))
  }
}
