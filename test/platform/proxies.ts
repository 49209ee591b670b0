/** A proxy on loopback that closes with its test. */
import { onTestFinished } from 'vitest'
import { type LoopbackProxy, listenProxy, type ProxyKind, type ProxyOptions } from './loopback-proxy.ts'

export async function openProxy(kind: ProxyKind, options: ProxyOptions = {}): Promise<LoopbackProxy> {
  const proxy = await listenProxy(kind, options)
  onTestFinished(() => proxy.close().catch(() => {}))
  return proxy
}
