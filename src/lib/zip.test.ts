import { describe, expect, test } from 'vitest'
import { readZip } from '../../test/harness/zip.ts'
import { type Piece, writeZip, type ZipEntry } from './zip.ts'

const at = new Date('2026-11-19T04:30:02Z')

async function* contentOf(...pieces: readonly Piece[]): AsyncGenerator<Piece> {
  yield* pieces
}

async function zipped(entries: readonly ZipEntry[], large?: number): Promise<Buffer> {
  const listed = (async function* () {
    yield* entries
  })()
  const pieces: Buffer[] = []
  for await (const piece of writeZip(listed, { at, ...(large !== undefined && { large }) })) {
    pieces.push(Buffer.from(piece as Uint8Array))
  }
  return Buffer.concat(pieces)
}

const entries = (): ZipEntry[] => [
  { name: 'person.json', content: contentOf('{"name":"', 'Ines Garc', 'ía"}') },
  { name: 'empty', content: contentOf() },
  { name: 'files/größe.bin', content: contentOf(Buffer.alloc(300_000, 7), new Uint8Array([1, 2, 3])) },
  { name: 'last', content: contentOf('x') },
]

describe('a ZIP archive', () => {
  test.each([
    ['of 32 bits', undefined],
    ['of 64 bits where an entry is large', 250_000],
    ['of 64 bits throughout', 0],
  ])('%s has every entry with its bytes', async (_, large) => {
    const found = readZip(await zipped(entries(), large))
    expect([...found.keys()]).toEqual(['person.json', 'empty', 'files/größe.bin', 'last'])
    expect(String(found.get('person.json'))).toBe('{"name":"Ines García"}')
    expect(found.get('empty')).toEqual(Buffer.alloc(0))
    expect(found.get('files/größe.bin')).toEqual(
      Buffer.concat([Buffer.alloc(300_000, 7), Buffer.from([1, 2, 3])]),
    )
    expect(String(found.get('last'))).toBe('x')
  })

  test('without entries is empty', async () => {
    expect(readZip(await zipped([]))).toEqual(new Map())
  })

  test('with more entries than 16 bits count has them all', async () => {
    const many = Array.from({ length: 65_600 }, (_, n) => ({ name: `${n}`, content: contentOf() }))
    expect(readZip(await zipped(many)).size).toBe(65_600)
  })

  test('reads an entry only as far as the archive is taken', async () => {
    let read = 0
    const endless = (async function* () {
      for (;;) {
        read++
        yield 'more'
      }
    })()
    const listed = (async function* () {
      yield { name: 'endless', content: endless }
    })()
    const archive = writeZip(listed, { at })
    for (let n = 0; n < 5; n++) await archive.next()
    await archive.return(undefined)
    expect(read).toBe(4)
  })
})
