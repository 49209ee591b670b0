/** Reads live streams in its own process: the cookies come on standard input, one stream for each; a line says they are open. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { url: { type: 'string', default: '' } } })
const { hostname, port, host } = new URL(values.url)
const given: Buffer[] = []
for await (const chunk of process.stdin) given.push(chunk as Buffer)
const cookies = Buffer.concat(given).toString().trim().split('\n')
const atOnce = 20
for (let at = 0; at < cookies.length; at += atOnce) {
  await Promise.all(cookies.slice(at, at + atOnce).map(open))
}
console.log('open')

async function open(cookie: string): Promise<void> {
  const socket = connect(Number(port), hostname)
  socket.write(`GET /dashboard/api/stream HTTP/1.1\r\nHost: ${host}\r\nCookie: ${cookie}\r\n\r\n`)
  const [answer] = (await once(socket, 'data')) as [Buffer]
  if (!answer.toString().startsWith('HTTP/1.1 200')) throw new Error(answer.toString())
  socket.resume()
}
