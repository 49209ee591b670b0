/**
 * Nothing that a test runs reaches another machine: the attempt is cut off before the first packet, and fails the test. Each
 * test file and each process that tests start load this module (`loopback-setup.ts`, `process.ts`).
 */
import { writeSync } from 'node:fs'
import { BlockList, isIP, isIPv6, Socket } from 'node:net'
import { networkInterfaces } from 'node:os'

/** The exit code of a process that tried. */
export const dialledExitCode = 61

const state = globalThis as { [dialledKey]?: string[] }
const dialledKey = Symbol.for('addresses that a test dialled')
/** The addresses outside this machine that a test tried to reach. One list, however often this module is loaded. */
const known = state[dialledKey]
export const dialled = known ?? []
state[dialledKey] = dialled

const here = new BlockList()
here.addSubnet('127.0.0.0', 8)
here.addAddress('::1', 'ipv6')
// Some tests ask whether a port is open to other machines, at this machine's own address.
for (const each of Object.values(networkInterfaces()).flat()) {
  if (each) here.addAddress(each.address, each.family === 'IPv6' ? 'ipv6' : 'ipv4')
}

function refuseOutside(socket: Socket, address: string): void {
  if (here.check(address, isIPv6(address) ? 'ipv6' : 'ipv4')) return
  const sentence = `Tests reach loopback only, and something dialled ${address}.`
  if (process.env.VITEST === undefined) {
    writeSync(2, `${new Error(sentence).stack}\n`)
    process.exit(dialledExitCode)
  }
  dialled.push(address)
  socket.destroy(new Error(sentence))
}

/** As `net` calls it, with a list of normalized arguments, or as others do. */
function hostOf([first, second]: readonly unknown[]): string | undefined {
  const options: unknown = Array.isArray(first) ? first[0] : first
  if (typeof options === 'object' && options !== null && 'host' in options) return String(options.host)
  return typeof second === 'string' ? second : undefined
}

if (!known) {
  const connect = Socket.prototype.connect as (...args: unknown[]) => Socket
  Socket.prototype.connect = function (this: Socket, ...args: unknown[]): Socket {
    const host = hostOf(args)
    if (host !== undefined && isIP(host)) refuseOutside(this, host)
    else this.on('lookup', (_error, address: string) => address && refuseOutside(this, address))
    return this.destroyed ? this : connect.apply(this, args)
  }
}
