/**
 * What a file is, by its first bytes: its name and the type that its sender gave prove nothing. A type that is not listed here
 * is never shown by a browser, only saved.
 */

const saved = 'application/octet-stream'

const inline = [
  ['image/png', (head) => startsWith(head, [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a])],
  ['image/jpeg', (head) => startsWith(head, [0xff, 0xd8, 0xff])],
  ['image/webp', (head) => textAt(head, 0, 4) === 'RIFF' && textAt(head, 8, 4) === 'WEBP'],
  ['image/gif', (head) => ['GIF87a', 'GIF89a'].includes(textAt(head, 0, 6))],
  ['audio/ogg', (head) => textAt(head, 0, 4) === 'OggS' && textAt(head, 28, 8) === 'OpusHead'],
  ['audio/mpeg', (head) => textAt(head, 0, 3) === 'ID3' || isMp3Frame(head)],
  ['video/mp4', (head) => textAt(head, 4, 4) === 'ftyp' && mp4Brands.has(textAt(head, 8, 4))],
] as const satisfies readonly (readonly [type: string, is: (head: Buffer) => boolean])[]

/** Other brands are pictures (HEIC, AVIF) or videos that browsers do not play. */
const mp4Brands = new Set(
  'isom iso2 iso3 iso4 iso5 iso6 mp41 mp42 avc1 dash MSNV'.split(' ').concat('M4A ', 'M4V '),
)

export const contentTypes: readonly string[] = [...inline.map(([type]) => type), saved]

interface ContentType {
  readonly type: string
  /** A browser may show it. */
  readonly inline: boolean
}

export function findContentType(head: Buffer): ContentType {
  const known = inline.find(([, is]) => is(head))
  return known ? { type: known[0], inline: true } : { type: saved, inline: false } // guard: only listed types are shown
}

function startsWith(head: Buffer, bytes: readonly number[]): boolean {
  return head.length >= bytes.length && bytes.every((byte, at) => head[at] === byte)
}

function textAt(head: Buffer, at: number, length: number): string {
  return head.toString('latin1', at, at + length)
}

/** A frame header of MPEG audio, layer III, with a bit rate and a sampling rate that exist. */
function isMp3Frame(head: Buffer): boolean {
  const [first = 0, second = 0, third = 0] = head
  const isLayer3 = first === 0xff && (second & 0xe6) === 0xe2 && (second & 0x18) !== 0x08
  return isLayer3 && (third & 0xf0) !== 0xf0 && (third & 0xf0) !== 0 && (third & 0x0c) !== 0x0c
}

/** The file's name for a browser. A stranger chose it: every character that could end the header or hide others is encoded or dropped. */
export function dispositionOf({ inline: shown }: ContentType, file_name: string): string {
  const name =
    file_name
      .replaceAll(/[\p{C}\p{Z}/\\]+/gu, ' ')
      .trim()
      .slice(0, 200)
      .toWellFormed() || 'file'
  const encoded = encodeURIComponent(name).replaceAll(
    /['()*]/g,
    (mark) => `%${mark.charCodeAt(0).toString(16)}`,
  )
  return `${shown ? 'inline' : 'attachment'}; filename*=UTF-8''${encoded}`
}
