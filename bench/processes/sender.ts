/** Callers of POST /messages in their own process, as light as possible. Prints its measurements as JSON. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: {
    url: { type: 'string', default: '' },
    key: { type: 'string', default: '' },
    accounts: { type: 'string', default: '' },
    chat: { type: 'string', default: '' },
    callers: { type: 'string', default: '100' },
    each: { type: 'string', default: '40' },
    /** Sends files of this many bytes instead of texts. */
    bytes: { type: 'string' },
  },
})
const { hostname, port, host } = new URL(values.url)
const accounts = values.accounts.split(',')
const times: number[] = []
const statuses: Record<string, number> = {}
const boundary = 'a-boundary-of-the-benchmark'

function textOf(account_id: string): Buffer[] {
  const body = JSON.stringify({ account_id, chat_id: values.chat, text: 'A message of the benchmark.' })
  return [Buffer.from(`${headOf('application/json', Buffer.byteLength(body))}${body}`)]
}

function fileOf(account_id: string, size: number): Buffer[] {
  const part = (name: string, value: string) =>
    `--${boundary}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`
  const begin = Buffer.from(
    `${part('account_id', account_id)}${part('chat_id', values.chat)}--${boundary}\r\n` +
      'Content-Disposition: form-data; name="attachments"; filename="file.bin"\r\n' +
      'Content-Type: application/octet-stream\r\n\r\n',
  )
  const end = Buffer.from(`\r\n--${boundary}--\r\n`)
  const head = headOf(`multipart/form-data; boundary=${boundary}`, begin.length + size + end.length)
  return [Buffer.from(head), begin, file, end]
}
const file = Buffer.alloc(Number(values.bytes ?? 0), 'parley ')

function headOf(type: string, length: number): string {
  return (
    `POST /api/v1/messages HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${values.key}\r\n` +
    `Idempotency-Key: ${crypto.randomUUID()}\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`
  )
}

/** The status, once the whole answer has arrived. */
function answer(socket: Socket): Promise<string> {
  return new Promise((resolve, reject) => {
    let seen = ''
    const take = (bytes: Buffer) => {
      seen += bytes.toString('latin1')
      const headEnd = seen.indexOf('\r\n\r\n')
      if (headEnd === -1) return
      const length = Number(/content-length: (\d+)/i.exec(seen)?.[1] ?? 0)
      if (seen.length < headEnd + 4 + length) return
      socket.off('data', take).off('close', lose)
      resolve(seen.slice(9, 12))
    }
    const lose = () => reject(new Error('The connection was closed.'))
    socket.on('data', take).once('close', lose)
  })
}

async function call(at: number): Promise<void> {
  const account_id = accounts[at % accounts.length] ?? ''
  const socket = connect(Number(port), hostname)
  await once(socket, 'connect')
  for (let n = 0; n < Number(values.each); n++) {
    const startedAt = performance.now()
    const answered = answer(socket)
    const pieces = values.bytes ? fileOf(account_id, file.length) : textOf(account_id)
    for (const piece of pieces) if (!socket.write(piece)) await once(socket, 'drain')
    const status = await answered
    statuses[status] = (statuses[status] ?? 0) + 1
    times.push(performance.now() - startedAt)
  }
  socket.destroy()
}

const startedAt = performance.now()
await Promise.all(Array.from({ length: Number(values.callers) }, (_, at) => call(at)))
const seconds = (performance.now() - startedAt) / 1000
times.sort((a, b) => a - b)
const p99 = times[Math.floor(times.length * 0.99)] ?? 0
const p50 = times[Math.floor(times.length * 0.5)] ?? 0
console.log(JSON.stringify({ seconds, p50, p99, accepted: statuses['200'] ?? 0, statuses }))
