/** Bytes that are hardly HTTP: a valid request with faults that no client library would send. */
import type { Random } from '../faults/random.ts'

const lines = (...all: readonly string[]) => `${all.join('\r\n')}\r\n\r\n`

export function makeRaw(random: Random, key: string): Buffer {
  const head = [`${method(random)} ${address(random)} ${version(random)}`, ...headers(random, key)]
  const text = `${lines(...head)}${body(random)}`
  return spoil(random, Buffer.from(text, 'latin1'))
}

function method(random: Random): string {
  const odd = [
    'get',
    'PURGE',
    'M-SEARCH',
    'CONNECT',
    'TRACE',
    'OPTIONS',
    'PRI',
    '',
    'GE T',
    'G\u00e9T',
    'x'.repeat(300),
  ]
  return random.chance(0.88) ? random.pick(['GET', 'POST', 'HEAD']) : random.pick(odd)
}

function address(random: Random): string {
  return random.weigh([
    ['/api/v1/me', 12],
    ['/api/v1/messages', 8],
    ['/api/v1/chats?limit=2', 8],
    ['http://elsewhere.example/api/v1/me', 1],
    ['*', 1],
    ['//api/v1/me', 1],
    ['/api/v1/../v1/me', 1],
    ['/api/v1/%00', 1],
    ['/api/v1/me#x', 1],
    ['/api/v1/chats/%E0%A4%A', 1],
    ['me', 1],
    [`/${'a'.repeat(9_000)}`, 1],
    ['/api/v1/\u00fc', 1],
    ['/healthz', 1],
    ['/docs', 1],
  ])
}

function version(random: Random): string {
  return random.weigh([
    ['HTTP/1.1', 40],
    ['HTTP/1.0', 2],
    ['HTTP/2.0', 1],
    ['HTTP/0.9', 1],
    ['http/1.1', 1],
    ['', 1],
  ])
}

function headers(random: Random, key: string): string[] {
  const made = random.chance(0.93) ? ['Host: a'] : random.pick([[], ['Host: a', 'Host: b'], ['Host:']])
  if (random.chance(0.8)) made.push(`Authorization: Bearer ${key}`)
  if (random.chance(0.6)) made.push('Connection: close')
  const odd: readonly string[] = [
    'Content-Length: 2',
    'Content-Length: -1',
    'Content-Length: 1, 2',
    'Content-Length: 99999999999999999999',
    'Transfer-Encoding: chunked',
    'Transfer-Encoding: gzip, chunked',
    'Transfer-Encoding: chunked\r\nContent-Length: 5',
    'Transfer-Encoding: identity',
    'Content-Encoding: gzip',
    'Content-Type: application/json',
    'Content-Type: multipart/form-data; boundary=b',
    'Content-Type: multipart/form-data; boundary=',
    'Idempotency-Key: raw-1',
    'Idempotency-Key: \u0001',
    'Upgrade: websocket\r\nConnection: Upgrade',
    'Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMAAABkAAQAAP__',
    'Expect: 100-continue',
    'Expect: 200-ok',
    'Trailer: X-Late',
    'TE: trailers, deflate;q=0.5',
    'Range: bytes=0-1',
    'X-Request-Id: \u00e4',
    'X-Forwarded-For: 127.0.0.1',
    'Bad Header: x',
    ': nameless',
    ' folded: x',
    'X-Long: '.concat('y'.repeat(17_000)),
    'X-Null: a\0b',
  ]
  for (let count = random.whole(3); count > 0; count--) made.push(random.pick(odd))
  return made
}

function body(random: Random): string {
  return random.weigh([
    ['', 6],
    ['{}', 3],
    ['5\r\nhello\r\n0\r\n\r\n', 2],
    ['zz\r\nhello\r\n', 1],
    ['FFFFFFFFFFFFFFFFF\r\n', 1],
    ['0\r\nX-Late: 1\r\n\r\n', 1],
    ['--b\r\nContent-Disposition: form-data; name="a"\r\n\r\n1\r\n--b--\r\n', 1],
    ['GET /api/v1/me HTTP/1.1\r\nHost: a\r\n\r\n', 1],
    ['\u001f\u008b\u0008\0\0\0', 1],
  ])
}

function spoil(random: Random, bytes: Buffer): Buffer {
  if (random.chance(0.8)) return bytes
  const at = 1 + random.whole(bytes.length - 1)
  const spoilt = Buffer.from(bytes)
  spoilt[at] = random.whole(256)
  return random.pick([
    spoilt,
    bytes.subarray(0, at),
    Buffer.from(bytes.toString('latin1').replaceAll('\r\n', '\n'), 'latin1'),
    Buffer.concat([bytes.subarray(0, at), Buffer.from('\r'), bytes.subarray(at)]),
    Buffer.concat([Buffer.from([0x16, 0x03, 0x01, 0x02]), bytes]),
    Buffer.concat([bytes, bytes]),
  ])
}
