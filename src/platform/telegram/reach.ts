/** Whether Telegram's data centre accepts connections, directly and through proxies. It sends nothing and logs in nowhere. */
import { connect } from 'node:net'
import { defaultProductionDc } from '@mtcute/core/utils.js'
import type { ReachOptions } from '../module.ts'
import { dialThrough, type Place, ProxyFailed } from './dial.ts'
import type { Dc } from './open.ts'

const connectMsMax = 10_000

export async function findUnreached(
  dc: Dc | null,
  { proxies, direct }: Pick<ReachOptions, 'proxies' | 'direct'>,
): Promise<readonly string[]> {
  const { ipAddress, port } = defaultProductionDc.main
  const target = dc ?? { address: ipAddress, port }
  const problems = await Promise.all([
    direct ? findRefusal(target) : undefined,
    ...proxies.map(async (proxy) => {
      try {
        const socket = await dialThrough(proxy, target, AbortSignal.timeout(connectMsMax))
        socket.destroy()
        return undefined
      } catch (error) {
        if (error instanceof ProxyFailed) return error.message
        throw error
      }
    }),
  ])
  return problems.filter((problem) => problem !== undefined)
}

function findRefusal({ address, port }: Place): Promise<string | undefined> {
  return new Promise((resolve) => {
    const socket = connect({ host: address, port, timeout: connectMsMax })
    const end = (problem?: string) => {
      socket.destroy()
      resolve(problem && `Telegram's data centre at ${address}:${port} accepts no connection (${problem}).`)
    }
    socket.once('connect', () => end())
    socket.once('timeout', () => end('timeout'))
    socket.once('error', (error: NodeJS.ErrnoException) => end(error.code ?? 'error'))
  })
}
