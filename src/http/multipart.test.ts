/** Forms over real sockets: what is read, what is refused, and what is left over. */
import { createHash, randomBytes } from 'node:crypto'
import { createServer, type IncomingMessage, type Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import fc from 'fast-check'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { timed } from '../../test/harness/timed.ts'
import { chunkBytes } from '../ledger/files.ts'
import { ApiError } from '../lib/errors.ts'
import { fileBytesMax } from '../rules/limits.ts'
import { drain } from './body.ts'
import { type Form, type FormOptions, isForm, readForm } from './multipart.ts'

interface FormResult {
  readonly form?: Form
  readonly error?: unknown
  readonly file: Buffer
  readonly chunks: { file_id: string; n: number; length: number }[]
  /** Files of which nothing must stay stored. */
  readonly dropped: string[]
  /** Everything that still listens to the request after it has been read or refused. */
  readonly listeners: number
  readonly flowing: boolean
}

const boundary = 'xYzZY-1234'
const unhandled: unknown[] = []
let server: Server
let port: number
let options: Partial<FormOptions> = {}
let seen: (seen: FormResult) => void = () => {}

beforeAll(async () => {
  process.on('unhandledRejection', note)
  server = createServer(async (raw, response) => {
    const result = await read(raw)
    seen(result)
    if (!(result.error instanceof ApiError)) return response.end('ok')
    // As errors.ts answers a client that is still sending.
    const text = result.error.code
    response.writeHead(result.error.status, { Connection: 'close', 'Content-Length': text.length })
    response.write(text)
    await drain(raw)
    response.end()
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  port = (server.address() as AddressInfo).port
})
afterAll(() => {
  process.off('unhandledRejection', note)
  server.closeAllConnections()
  server.close()
})
beforeEach(() => {
  options = {}
})
afterEach(() => expect(unhandled).toEqual([]))

function note(reason: unknown): void {
  unhandled.push(reason)
}

async function read(raw: IncomingMessage): Promise<FormResult> {
  const bytes: Buffer[] = []
  const chunks: FormResult['chunks'] = []
  const dropped: string[] = []
  const before = countListeners(raw)
  const store: FormOptions['store'] = async (chunk) => {
    bytes.push(Buffer.from(chunk.bytes))
    chunks.push({ file_id: chunk.file_id, n: chunk.n, length: chunk.bytes.length })
  }
  const drop: FormOptions['drop'] = async (file_id) => {
    dropped.push(file_id)
  }
  const outcome = await readForm(raw, { store, drop, ...options }).then(
    (form) => ({ form }),
    (error: unknown) => ({ error }),
  )
  const listeners = countListeners(raw) - before
  return {
    ...outcome,
    file: Buffer.concat(bytes),
    chunks,
    dropped,
    listeners,
    flowing: raw.readableFlowing === true,
  }
}

function countListeners(raw: IncomingMessage): number {
  return raw.eventNames().reduce((sum, name) => sum + raw.listenerCount(name), 0)
}

function open(): Socket {
  const socket = connect(port, '127.0.0.1')
  socket.setNoDelay(true)
  socket.on('error', () => {}).resume()
  return socket
}

function headOf({ length, type }: { length?: number | undefined; type?: string | undefined }): string {
  const kind = type ?? `multipart/form-data; boundary=${boundary}`
  const size = length === undefined ? 'Transfer-Encoding: chunked' : `Content-Length: ${length}`
  return `POST / HTTP/1.1\r\nHost: x\r\nContent-Type: ${kind}\r\n${size}\r\n\r\n`
}

/** Sends the body in those pieces, each in its own segment, and returns what the reader made of it. */
async function send(
  pieces: readonly (Buffer | string)[],
  { type }: { type?: string } = {},
): Promise<FormResult> {
  const bytes = pieces.map((piece) => Buffer.from(piece as string, 'latin1'))
  const length = bytes.reduce((sum, piece) => sum + piece.length, 0)
  const socket = open()
  const result = new Promise<FormResult>((resolve) => {
    seen = resolve
  })
  socket.write(headOf({ length, type }))
  for (const piece of bytes) {
    await new Promise((resolve) => socket.write(piece, resolve))
    if (bytes.length > 1) await new Promise(setImmediate)
  }
  const answer = await result
  socket.destroy()
  return answer
}

/** UTF-8 text as the characters that carry its bytes. */
function utf8(text: string): string {
  return Buffer.from(text).toString('latin1')
}

interface Part {
  readonly name?: string
  readonly file?: string
  readonly disposition?: string
  readonly type?: string
  readonly headers?: string
  readonly content?: string | Buffer
}

function partOf({ name, file, disposition, type, headers = '', content = '' }: Part): string {
  const named = `form-data; name="${name}"${file === undefined ? '' : `; filename="${file}"`}`
  const lines = `Content-Disposition: ${disposition ?? named}\r\n${type === undefined ? '' : `Content-Type: ${type}\r\n`}`
  return `--${boundary}\r\n${lines}${headers}\r\n${Buffer.from(content as string, 'latin1').toString('latin1')}\r\n`
}

const last = `--${boundary}--\r\n`
const account = { name: 'account_id', content: 'acc_1' }
const chat = { name: 'chat_id', content: 'platform:chat:7' }
const file = { name: 'attachments', file: 'a.txt', type: 'text/plain', content: 'hello' }

function formOf(...parts: readonly Part[]): string {
  return parts.map(partOf).join('') + last
}

function refused(result: FormResult, code: string, sentence: RegExp | string = ''): void {
  expect(result.error).toBeInstanceOf(ApiError)
  const { code: actual, message } = result.error as ApiError
  expect([actual, message]).toEqual([code, expect.stringMatching(sentence)])
  expect(result).toMatchObject({ listeners: 0, flowing: false })
  // Whatever was stored of it before it was refused.
  for (const { file_id } of result.chunks) expect(result.dropped).toContain(file_id)
}

async function sent(...parts: readonly Part[]): Promise<Form> {
  const { form, error, listeners } = await send([formOf(...parts)])
  expect(error).toBeUndefined()
  expect(listeners).toBe(0)
  return form as Form
}

describe('a form', () => {
  test('returns its fields, and its file with name, type, size and hash', async () => {
    const text = { name: 'text', content: utf8('naïve 🙂\r\nline') }
    const { form, file: bytes, chunks } = await send([formOf(account, chat, text, file)])
    expect(form).toEqual({
      fields: { account_id: 'acc_1', chat_id: 'platform:chat:7', text: 'naïve 🙂\r\nline' },
      attachment: {
        file_id: expect.stringMatching(/^[0-9a-f-]{36}$/),
        file_name: 'a.txt',
        media_type: 'text/plain',
        size: 5,
        sha256: createHash('sha256').update('hello').digest('hex'),
      },
    })
    expect(String(bytes)).toBe('hello')
    expect(chunks).toEqual([{ file_id: form?.attachment.file_id, n: 0, length: 5 }])
  })

  test('may start with the file, and text may be empty or missing', async () => {
    expect((await sent(file, account, { name: 'text' })).fields).toEqual({ account_id: 'acc_1', text: '' })
    expect((await sent(file)).fields).toEqual({})
  })

  test('is read as fetch sends it', async () => {
    const body = new FormData()
    body.set('account_id', 'acc_1')
    body.set('text', 'ein Gruß')
    body.set('attachments', new Blob([Buffer.alloc(300_000, 'x')], { type: 'image/png' }), 'größe/../x.png')
    const result = new Promise<FormResult>((resolve) => {
      seen = resolve
    })
    const { status } = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', body })
    const { form, chunks } = await result
    expect(status).toBe(200)
    expect(form?.fields).toEqual({ account_id: 'acc_1', text: 'ein Gruß' })
    expect(form?.attachment).toMatchObject({
      file_name: 'größe/../x.png',
      media_type: 'image/png',
      size: 300_000,
    })
    expect(chunks.map(({ n, length }) => [n, length])).toEqual([
      [0, chunkBytes],
      [1, 300_000 - chunkBytes],
    ])
  })

  test('ignores what is before the first boundary and after the last', async () => {
    const body = formOf(account, file)
    for (const odd of [`\r\n${body}`, `hello\r\n${body}`, `${body}bye`, body.slice(0, -2)]) {
      expect((await send([odd])).form?.fields).toEqual({ account_id: 'acc_1' })
    }
    expect((await send([body.replaceAll(`${boundary}\r\n`, `${boundary} \t\r\n`)])).form).toBeDefined()
  })

  test('accepts a boundary in quotes, with any allowed character', async () => {
    const odd = "a'()+_,-./:=? b"
    const body = formOf(file).replaceAll(boundary, odd)
    expect(
      (await send([body], { type: `Multipart/Form-Data; charset=utf-8; boundary="${odd}"` })).form,
    ).toBeDefined()
  })

  test('accepts fields with type and charset', async () => {
    const typed = {
      ...account,
      type: 'text/plain; charset=UTF-8',
      headers: 'Content-Transfer-Encoding: 8bit\r\n',
    }
    expect((await sent(typed, file)).fields).toEqual({ account_id: 'acc_1' })
    refused(
      await send([formOf({ ...account, type: 'text/plain; charset=latin1' }, file)]),
      'invalid_request',
      /^account_id/,
    )
  })

  test('isForm', () => {
    const is = (type?: string) => isForm({ headers: { 'content-type': type } } as IncomingMessage)
    expect(
      ['multipart/form-data', 'multipart/form-data; boundary=x', 'MULTIPART/Form-Data;boundary=x'].map(is),
    ).toEqual([true, true, true])
    expect(
      [undefined, '', 'application/json', 'multipart/form-data2', 'multipart/mixed; boundary=x'].map(is),
    ).toEqual(Array(5).fill(false))
  })
})

describe('a file name', () => {
  test.each([
    ['../../etc/passwd'],
    ['C:\\x'],
    ['.'],
    ['\u202Egnp.exe'],
    [' a ; b=c '],
    ["it's 100%25.txt"],
    ['a%22b'],
    ['\u0007\t\u007f'],
    ['\ufeffx'],
    ['🙂'.repeat(255)],
  ])('is kept unchanged: %j', async (name) => {
    expect((await sent({ ...file, file: utf8(name) })).attachment.file_name).toBe(name)
  })

  test('may escape quotes and backslashes', async () => {
    expect((await sent({ ...file, file: 'a\\"b\\\\c\\d' })).attachment.file_name).toBe('a"b\\c\\d')
  })

  test('may be a token', async () => {
    const disposition = utf8('form-data; name=attachments; filename=größe.txt;')
    expect((await sent({ ...file, disposition })).attachment.file_name).toBe('größe.txt')
  })

  test('may be given as filename*, which wins', async () => {
    for (const plain of ['', '; filename="x.txt"']) {
      const disposition = `form-data; name="attachments"${plain}; filename*=utf-8'de'gr%C3%B6%c3%9Fe%0A.txt`
      expect((await sent({ ...file, disposition })).attachment.file_name).toBe('größe\n.txt')
    }
  })

  test.each([
    ["iso-8859-1''x", 'invalid_request'],
    ["UTF-8''%G0", 'invalid_request'],
    ["UTF-8''%ff", 'invalid_text'],
    ["UTF-8''%00", 'invalid_text'],
    ['x.txt', 'invalid_request'],
  ])('filename*=%s is refused', async (value, code) => {
    const disposition = `form-data; name="attachments"; filename*=${value}`
    refused(await send([formOf({ ...file, disposition })]), code, /file name in attachments/)
  })

  test('is "file" if it is empty, or if only the type shows that it is a file', async () => {
    expect((await sent({ ...file, file: '' })).attachment.file_name).toBe('file')
    const { file: _, ...nameless } = file
    expect((await sent({ ...nameless, type: 'image/png' })).attachment.file_name).toBe('file')
  })

  test('400 for more than 255 characters, a NUL, half a character or a line break', async () => {
    const name = (value: string) => send([formOf({ ...file, file: value })])
    refused(await name(utf8('🙂'.repeat(256))), 'invalid_request', /255/)
    refused(await name('a'.repeat(4_096)), 'invalid_request', /255/)
    refused(await name('a\0b'), 'invalid_text', /file name in attachments/)
    refused(await name('a\xff'), 'invalid_text', /file name in attachments/)
    refused(await name('\xed\xa0\x80'), 'invalid_text', /file name in attachments/)
    for (const line of ['a\nb', 'a\rb', 'a\r\nb']) refused(await name(line), 'invalid_request', /header/)
  })
})

describe('a media type', () => {
  test.each([
    [undefined, 'application/octet-stream'],
    ['IMAGE/PNG', 'image/png'],
    ['text/plain; charset="utf-8"', 'text/plain'],
    ['application/vnd.a+json;', 'application/vnd.a+json'],
  ])('%s is %s', async (type, media_type) => {
    const { type: _, ...untyped } = file
    expect((await sent({ ...untyped, ...(type !== undefined && { type }) })).attachment.media_type).toBe(
      media_type,
    )
  })

  test.each([
    [''],
    ['image'],
    ['image/'],
    ['/png'],
    ['image/png/x'],
    ['im age/png'],
    ['image/png, text/html'],
    ['image/png; x'],
    [`image/${'p'.repeat(128)}`],
    ['image/\xff'],
    ['multipart/mixed'],
    ['Message/RFC822; x=y'],
  ])('400 for %s, and stores nothing', async (type) => {
    const result = await send([formOf({ ...file, type })])
    refused(result, 'unsupported_attachment', /media type .*attachments/)
    expect(result.chunks).toEqual([])
  })

  test('an operator may refuse more types', async () => {
    options = { denied: ['application/x-msdownload', 'video/*'] }
    for (const type of ['application/x-msdownload', 'video/mp4']) {
      refused(await send([formOf({ ...file, type })]), 'unsupported_attachment', type)
    }
    expect((await sent({ ...file, type: 'message/rfc822' })).attachment.media_type).toBe('message/rfc822')
  })
})

describe('what is refused', () => {
  const two = 'unsupported_attachment'
  test.each<[string, string, string, RegExp]>([
    ['no file', formOf(account, chat), two, /attachments/],
    ['no part at all', last, two, /attachments/],
    ['two files', formOf(file, account, file), two, /attachments/],
    ['an empty file', formOf({ ...file, content: '' }), two, /attachments.* empty/],
    ['what a browser sends for no file', formOf({ ...file, file: '', content: '' }), two, /attachments/],
    ['a file in another field', formOf({ ...file, name: 'text' }), two, /not in text/],
    [
      'a file in an unknown field',
      formOf({ ...file, name: 'attachments[]' }),
      two,
      /not in "attachments\[\]"/,
    ],
    ['attachments that are text', formOf({ name: 'attachments', content: 'hello' }), two, /attachments/],
    [
      'attachments that are typed text',
      formOf({ ...account, name: 'attachments', type: 'text/plain' }),
      two,
      /attachments/,
    ],
    ['a field twice', formOf(account, file, account), 'invalid_request', /account_id appears twice/],
    ['an unknown field', formOf(account, file, { name: 'extra' }), 'invalid_request', /"extra"/],
    ['__proto__', formOf({ name: '__proto__' }, file), 'invalid_request', /"__proto__"/],
    ['a nameless field', formOf({ name: '' }, file), 'invalid_request', /""/],
    [
      'a part without a name',
      formOf({ ...file, disposition: 'form-data; filename="x"' }),
      'invalid_request',
      /name/,
    ],
    [
      'another disposition',
      formOf({ ...file, disposition: 'attachment; name="text"' }),
      'invalid_request',
      /name/,
    ],
    [
      'a name twice',
      formOf({ ...file, disposition: 'form-data; name="text"; name="chat_id"' }),
      'invalid_request',
      /name/,
    ],
    [
      'a quote without end',
      formOf({ ...file, disposition: 'form-data; name="text' }),
      'invalid_request',
      /name/,
    ],
    [
      'a header twice',
      formOf({ ...file, headers: 'Content-Type: image/png\r\n' }),
      'invalid_request',
      /twice/,
    ],
    ['a header without a colon', formOf({ ...file, headers: 'oops\r\n' }), 'invalid_request', /header/],
    ['a folded header', formOf({ ...file, headers: ' folded: 1\r\n' }), 'invalid_request', /header/],
    [
      'base64',
      formOf({ ...file, headers: 'Content-Transfer-Encoding: base64\r\n' }),
      'invalid_request',
      /attachments.*base64/,
    ],
    ['a part without headers', `--${boundary}\r\n\r\nhello\r\n${last}`, 'invalid_request', /headers/],
    ['invalid UTF-8', formOf({ name: 'text', content: 'a\xff' }, file), 'invalid_text', /^text/],
    ['a lone surrogate', formOf({ name: 'text', content: '\xed\xa0\x80' }, file), 'invalid_text', /^text/],
    ['NUL', formOf({ name: 'chat_id', content: 'a\0' }, file), 'invalid_text', /^chat_id/],
    ['NUL in the name of a field', formOf({ name: 'te\0xt' }, file), 'invalid_text', /name/],
    ['no last boundary', formOf(account, file).slice(0, -last.length), 'invalid_request', /last boundary/],
    ['half a last boundary', formOf(account, file).slice(0, -3), 'invalid_request', /last boundary/],
    ['no boundary', 'hello', 'invalid_request', /last boundary/],
    ['nothing', '', 'invalid_request', /last boundary/],
    [
      'a boundary with a tail',
      formOf({ ...file, content: `a\r\n--${boundary}X b` }),
      'invalid_request',
      /boundary/,
    ],
    [
      'a last boundary with a tail',
      formOf({ ...file, content: `a\r\n--${boundary}--X` }),
      'invalid_request',
      /boundary/,
    ],
    ['1,000 parts', formOf(...Array(1_000).fill(account), file), 'invalid_request', /twice/],
    [
      '1 MB of part headers',
      formOf({ ...file, headers: `X-A: ${'a'.repeat(1e6)}\r\n` }),
      'invalid_request',
      /headers/,
    ],
    [
      'a text that no text is as long as',
      formOf({ name: 'text', content: 'a'.repeat(16_385) }, file),
      'invalid_request',
      /^text/,
    ],
    ['64 KiB before the form', 'a'.repeat(65_536) + formOf(file), 'payload_too_large', /65,536/],
    ['64 KiB after the form', formOf(file) + 'a'.repeat(65_536), 'payload_too_large', /65,536/],
    [
      'a body of many small things',
      formOf(
        { name: 'text', headers: `X-A: ${'a'.repeat(16_300)}\r\n`, content: 'a'.repeat(16_384) },
        { ...account, headers: `X-A: ${'a'.repeat(16_300)}\r\n`, content: 'a'.repeat(16_384) },
        file,
      ),
      'payload_too_large',
      /65,536/,
    ],
  ])('%s, however it is cut', async (_, body, code, sentence) => {
    refused(await send([body]), code, sentence)
    if (body.length < 2_000) refused(await send(Array.from(body)), code, sentence)
    const cut = Math.floor(body.length / 2)
    refused(await send([body.slice(0, cut), body.slice(cut)]), code, sentence)
  })

  test('accepts 4,096 characters of four bytes as text', async () => {
    const text = '🙂'.repeat(4_096)
    expect((await sent({ name: 'text', content: utf8(text) }, file)).fields).toEqual({ text })
  })

  test('415 for a body that is not a form, or is compressed', async () => {
    refused(await send(['{}'], { type: 'application/json' }), 'unsupported_media_type')
    const type = `multipart/form-data; boundary=${boundary}\r\nContent-Encoding: gzip`
    refused(await send([formOf(file)], { type }), 'unsupported_media_type')
  })

  test.each([
    '',
    '; boundary=',
    '; boundary=""',
    `; boundary=${'a'.repeat(71)}`,
    '; boundary="a "',
    '; boundary=a; boundary=b',
    '; boundary=a\xffb',
    '; boundary="a',
  ])('400 for a content type with %s', async (rest) => {
    refused(await send([formOf(file)], { type: `multipart/form-data${rest}` }), 'invalid_request', /boundary/)
  })
})

describe('sizes', () => {
  const [before, after] = formOf({ ...account }, { ...file, content: '~~~' }).split('~~~') as [string, string]
  const mebibyte = randomBytes(1024 * 1024)
  const whole = Array<Buffer>(25).fill(mebibyte)

  test('accepts 26,214,400 bytes', async () => {
    const { form, file: bytes, chunks } = await send([before, ...whole, after])
    expect(form?.attachment.size).toBe(fileBytesMax)
    expect(form?.attachment.sha256).toBe(createHash('sha256').update(bytes).digest('hex'))
    expect(bytes.equals(Buffer.concat(whole))).toBe(true)
    expect(chunks.map(({ n, length }) => [n, length])).toEqual(
      Array.from({ length: 100 }, (_, n) => [n, chunkBytes]),
    )
  })

  test('413 for one more, and does not store the excess', async () => {
    const result = await send([before, ...whole, 'x', after])
    refused(result, 'attachment_too_large')
    expect(result.file.length).toBeLessThanOrEqual(fileBytesMax)
  })

  test('413 before anything is stored when the length shows it', async () => {
    const result = await send([before, ...whole, mebibyte, after])
    refused(result, 'attachment_too_large')
    expect(result.chunks).toEqual([])
  })

  test('413 immediately for an endless file, and the client gets it', async () => {
    const socket = open()
    const heard = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
    const result = new Promise<FormResult>((resolve) => {
      seen = resolve
    })
    socket.write(headOf({}))
    const chunkOf = (bytes: Buffer) =>
      Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')])
    socket.write(chunkOf(Buffer.from(before)))
    for (let at = 0; at < 26; at++) await new Promise((resolve) => socket.write(chunkOf(mebibyte), resolve))
    refused(await result, 'attachment_too_large')
    expect(await heard).toMatch(/^HTTP\/1.1 413 .*Connection: close.*attachment_too_large/s)
    socket.destroy()
  })

  test('take less than 64 MB for 20 uploads of 25 MiB at once, and wait for the store', async () => {
    let storing = 0
    let most = 0
    options = {
      store: async () => {
        most = Math.max(most, ++storing)
        await sleep(1)
        storing--
      },
    }
    const body = Buffer.concat(whole)
    const upload = async () => {
      const socket = open()
      const answer = new Promise<string>((resolve) => socket.once('data', (data) => resolve(String(data))))
      socket.write(headOf({ length: before.length + body.length + after.length }))
      socket.write(before)
      for (let at = 0; at < body.length; at += chunkBytes) {
        await new Promise((resolve) => socket.write(body.subarray(at, at + chunkBytes), resolve))
      }
      socket.write(after)
      expect(await answer).toMatch(/^HTTP\/1.1 200/)
      socket.destroy()
    }
    await Promise.all([upload(), upload()])
    const base = process.memoryUsage().rss
    let peak = base
    const timer = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss)
    }, 5)
    await Promise.all(Array.from({ length: 20 }, upload))
    clearInterval(timer)
    expect(most).toBeGreaterThan(1)
    expect((peak - base) / 1e6).toBeLessThan(64)
  }, 60_000)
})

describe('a client', () => {
  const start = partOf({ ...file, content: 'x'.repeat(1_000) })

  test('408 when it is too slow', async () => {
    options = { timeoutMs: 100 }
    const socket = open()
    const result = new Promise<FormResult>((resolve) => {
      seen = resolve
    })
    socket.write(headOf({ length: 100_000 }) + start)
    const drip = setInterval(() => socket.write('x'), 10)
    refused(await result, 'request_timeout')
    clearInterval(drip)
    socket.destroy()
  })

  test.each(['destroy', 'resetAndDestroy', 'end'] as const)(
    '400 immediately when it goes away: %s',
    timed,
    async (leave) => {
      for (const sentSoFar of ['', start.slice(0, 30), start, start + 'x'.repeat(600_000)]) {
        const socket = open()
        const result = new Promise<FormResult>((resolve) => {
          seen = resolve
        })
        await new Promise((resolve) => socket.write(headOf({ length: 10_000_000 }) + sentSoFar, resolve))
        await sleep(20)
        const left = performance.now()
        socket[leave]()
        const { error, listeners } = await result
        expect(error).toMatchObject({
          code: 'invalid_request',
          message: 'The body ended before its declared length.',
        })
        expect(listeners).toBe(0)
        expect(performance.now() - left).toBeLessThan(1_000)
        socket.destroy()
      }
    },
  )

  test('may leave while its chunk is being stored', async () => {
    const stored = Promise.withResolvers<void>()
    const storing = Promise.withResolvers<void>()
    options = {
      store: async () => {
        storing.resolve()
        await stored.promise
      },
    }
    const socket = open()
    const result = new Promise<FormResult>((resolve) => {
      seen = resolve
    })
    socket.write(headOf({ length: 10_000_000 }) + start + 'x'.repeat(600_000))
    socket.write(formOf({ ...file, content: 'x'.repeat(600_000) }))
    await storing.promise
    socket.destroy()
    await sleep(20)
    stored.resolve()
    expect((await result).error).toBeInstanceOf(ApiError)
  })

  test('gets the error of the store', async () => {
    options = { store: () => Promise.reject(new ApiError('store_unavailable')) }
    refused(await send([formOf(account, file)]), 'store_unavailable')
  })

  test('that left before its body was read is not waited for', async () => {
    const late = createServer()
    await new Promise<void>((resolve) => late.listen(0, '127.0.0.1', resolve))
    const socket = connect((late.address() as AddressInfo).port, '127.0.0.1')
    socket.on('error', () => {}).write(headOf({ length: 1_000 }) + start.slice(0, 100))
    const raw = await new Promise<IncomingMessage>((resolve) => late.once('request', resolve))
    socket.destroy()
    await new Promise((resolve) => raw.once('close', resolve))
    expect((await read(raw)).error).toMatchObject({ message: 'The body ended before its declared length.' })
    late.close()
  })
})

describe('any form', () => {
  const text = fc.string({ unit: 'binary', maxLength: 30 }).filter((value) => !value.includes('\0'))
  const name = text.filter((value) => !/[\r\n]/.test(value))
  // Bytes that look like the form's own delimiters, whole and in part.
  const marks = [
    '\r',
    '\n',
    '\r\n',
    '\r\n\r\n',
    '-',
    '--',
    '\r\n--',
    `\r\n--${boundary.slice(0, 5)}`,
    `--${boundary}`,
    `\r\n--${boundary.slice(0, -1)}`,
  ]
  const content = fc
    .array(fc.oneof(fc.constantFrom(...marks), fc.string({ maxLength: 8 })), { minLength: 1, maxLength: 20 })
    .map((pieces) => Buffer.from(pieces.join('')))
    .filter((bytes) => bytes.length > 0 && !bytes.includes(`\r\n--${boundary}`))
  const fields = fc.record({ account_id: text, chat_id: text, text }, { requiredKeys: [] })

  test('is read the same however the network cuts it, and as Node reads it', async () => {
    await fc.assert(
      fc.asyncProperty(
        fields,
        content,
        name,
        fc.nat(3),
        fc.array(fc.nat(1_000), { maxLength: 12 }),
        async (values, bytes, file_name, place, cuts) => {
          const parts: Part[] = Object.entries(values).map(([field, value]) => ({
            name: field,
            content: utf8(value ?? ''),
          }))
          const quoted = utf8(file_name.replaceAll(/["\\]/g, '\\$&'))
          parts.splice(place, 0, { name: 'attachments', file: quoted, type: 'image/png', content: bytes })
          const body = formOf(...parts)
          const places = [...new Set([0, ...cuts.map((cut) => cut % body.length), body.length])].sort(
            (a, b) => a - b,
          )
          const pieces = places.slice(1).map((end, at) => body.slice(places[at], end))
          const result = await send(pieces)
          expect(result.error).toBeUndefined()
          expect(result.form?.fields).toEqual(values)
          expect(result.form?.attachment.file_name).toBe(file_name || 'file')
          expect(result.file.equals(bytes)).toBe(true)
          // A second opinion, from Node's own parser, which also mistakes a boundary in the middle of a line.
          if (bytes.includes(`--${boundary}`)) return
          const plain = formOf(
            ...parts.map((part) => (part.file === undefined ? part : { ...part, file: 'x' })),
          )
          const headers = { 'content-type': `multipart/form-data; boundary=${boundary}` }
          const other = (await new Response(Buffer.from(plain, 'latin1'), { headers }).formData()).get(
            'attachments',
          )
          expect(Buffer.from(await (other as File).arrayBuffer()).equals(result.file)).toBe(true)
        },
      ),
      { numRuns: 300, endOnFailure: true },
    )
  }, 60_000)

  test('with broken bytes is read or refused, with no other result', async () => {
    const sound = Buffer.from(formOf(account, { name: 'text', content: 'hello' }, file))
    const damage = fc.record({
      changes: fc.array(fc.tuple(fc.nat(sound.length - 1), fc.nat(255)), { maxLength: 6 }),
      cut: fc.option(fc.nat(sound.length), { freq: 3 }),
      split: fc.nat(sound.length),
    })
    await fc.assert(
      fc.asyncProperty(damage, async ({ changes, cut, split }) => {
        const bytes = Buffer.from(sound)
        for (const [at, byte] of changes) bytes[at] = byte
        const broken = bytes.subarray(0, cut ?? bytes.length)
        const outcomes = []
        for (const pieces of [[broken], [broken.subarray(0, split), broken.subarray(split)]]) {
          const { form, error, file: stored } = await send(pieces)
          if (error) expect(error).toMatchObject({ name: 'ApiError', status: 400 })
          const { file_id: _, ...attachment } = form?.attachment ?? { file_id: '' }
          outcomes.push(
            error ? String(error) : { fields: form?.fields, attachment, stored: stored.toString('hex') },
          )
        }
        expect(outcomes[1]).toEqual(outcomes[0])
      }),
      { numRuns: 400, endOnFailure: true },
    )
  }, 60_000)
})
