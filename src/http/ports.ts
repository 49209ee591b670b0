/** The ports of a process: tries them before anything is created, and explains why one is not available. */
import { once } from 'node:events'
import { createServer, type Server } from 'node:net'
import { Refusal } from '../lib/errors.ts'

export interface Place {
  readonly host: string
  readonly port: number
  /** What the settings for the two are called. */
  readonly names?: { readonly host: string; readonly port: string }
}

const ownNames = { host: 'PARLEY_HOST', port: '--port' }

/** Binds all ports and releases them, so that a port in use is reported now, not after a database was set up. */
export async function tryPorts(places: readonly Place[]): Promise<void> {
  const held: Server[] = []
  try {
    for (const place of places) held.push(await hold(place))
  } finally {
    await Promise.all(held.map((server) => new Promise((resolve) => server.close(resolve))))
  }
}

async function hold(place: Place): Promise<Server> {
  const server = createServer((socket) => socket.destroy())
  try {
    server.listen({ host: place.host, port: place.port })
    await once(server, 'listening')
    return server
  } catch (error) {
    throw explainPort(error, place)
  }
}

/** The sentence for a port that is not available; returns any other error unchanged. */
export function explainPort(error: unknown, { host, port, names = ownNames }: Place): unknown {
  const { code } = error as NodeJS.ErrnoException
  if (code === 'EADDRINUSE')
    return new Refusal(
      `Port ${port} is in use, perhaps by another Parley. Choose another port with ${names.port}, or stop the process that uses it.`,
    )
  if (code === 'EACCES') {
    return new Refusal(
      `Parley has no permission to use port ${port}. Choose another port with ${names.port}.`,
    )
  }
  if (code === 'EADDRNOTAVAIL' || code === 'ENOTFOUND') {
    return new Refusal(`${names.host} is not an address of this machine: ${host}.`)
  }
  return error
}
