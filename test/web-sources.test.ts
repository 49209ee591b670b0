/** What the dashboard's sources may not say, found in the elements that they write. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseAst } from 'vite'
import { expect, test } from 'vitest'

const source = join(import.meta.dirname, '..', 'web', 'src')

interface Node {
  readonly type: string
  readonly start: number
  readonly end: number
}

const isNode = (value: unknown): value is Node =>
  typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'

function childrenOf(node: Node): Node[] {
  return Object.values(node).flat().filter(isNode)
}

/** An element as it is written: its name, the text of its attributes, and the elements within it. */
interface Written {
  readonly name: string
  readonly attributes: Readonly<Record<string, string>>
  readonly within: readonly Written[]
  readonly place: string
}

/** Every element of a file, also those within others. */
function elementsIn(file: string, text: string): Written[] {
  const read = (node: Node): Written[] => {
    const within = childrenOf(node).flatMap(read)
    if (node.type !== 'JSXElement') return within
    const { openingElement } = node as Node & { openingElement: Node & { name: Node; attributes: Node[] } }
    const { name, attributes } = openingElement
    const slice = ({ start, end }: Node) => text.slice(start, end)
    const named = attributes.map((each): [string, string] => {
      const [key = '', ...value] = slice(each).split('=')
      return [key, value.join('=')]
    })
    const line = text.slice(0, node.start).split('\n').length
    return [
      { name: slice(name), attributes: Object.fromEntries(named), within, place: `${file}:${line}` },
      ...within,
    ]
  }
  return read(parseAst(text, { lang: 'tsx' }) as unknown as Node)
}

const written = globSync('**/*.tsx', { cwd: source }).flatMap((file) =>
  elementsIn(file, readFileSync(join(source, file), 'utf8')),
)

const isTruncated = ({ attributes }: Written) => /\btruncate\b/.test(attributes.className ?? '')

/** Text of a person that an element truncates which does not know its direction. */
function wronglyCut(elements: readonly Written[]): string[] {
  return elements
    .filter(isTruncated)
    .flatMap(({ within }) =>
      within
        .filter(
          (each) =>
            (each.name === 'ExactLine' && !('cut' in each.attributes)) ||
            (each.name === 'bdi' && !isTruncated(each)),
        )
        .map(({ place }) => place),
    )
}

test('the elements are found', () => {
  expect(written.length).toBeGreaterThan(1_000)
  expect(written.filter(isTruncated).length).toBeGreaterThan(40)
  expect(written.filter(({ name }) => name === 'ExactLine').length).toBeGreaterThan(50)
})

test('text that may run from right to left is cut at its own end, by the element that knows its direction', () => {
  const seen = (text: string) => wronglyCut(elementsIn('a.tsx', text))
  expect(seen('const a = <p className="truncate"><ExactLine text={name} /></p>')).toEqual(['a.tsx:1'])
  expect(seen('const a = <p className={`truncate`}>{c && <bdi>{c}</bdi>}</p>')).toEqual(['a.tsx:1'])
  expect(seen('const a = <p className="truncate"><ExactLine text={name} cut /></p>')).toEqual([])
  expect(wronglyCut(written)).toEqual([])
})

const ownHeight = /(?:^|[\s"'`:!])(?:(?:min-|max-)?h|size)-(?!full\b)/

/** Buttons, and links that look like one, whose use says how high they are. */
function wronglyHigh(elements: readonly Written[]): string[] {
  return elements
    .filter(({ name, attributes }) => name === 'Button' || attributes.className?.includes('buttonClass('))
    .filter(({ attributes }) => ownHeight.test(attributes.className ?? ''))
    .map(({ place }) => place)
}

test('a button has one of three sizes, each as high as a finger needs, and no use changes it', () => {
  const text = readFileSync(join(source, 'ui', 'button.tsx'), 'utf8')
  const sizes = /const sizes[^{]*\{([^}]*)\}/.exec(text)?.[1]?.match(/'[^']*'/g) ?? []
  expect(sizes).toHaveLength(3)
  for (const size of sizes) expect(size).toMatch(/[ ']((pointer-coarse:)?h-11)[ ']/)
  const seen = (text: string) => wronglyHigh(elementsIn('a.tsx', text))
  expect(seen('const a = <Button className="ml-2 min-[761px]:!h-8">Send</Button>')).toEqual(['a.tsx:1'])
  expect(seen('const a = <Link className={buttonClass() + " pointer-coarse:h-11"} />')).toEqual(['a.tsx:1'])
  expect(seen('const a = <Button size="small" className="w-full">Send</Button>')).toEqual([])
  expect(wronglyHigh(written)).toEqual([])
})
