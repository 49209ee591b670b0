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

/** What people read and what the sources do: without comments, on one line, with one kind of apostrophe. */
const spoken = globSync('**/*.{ts,tsx}', { cwd: source })
  .filter((file) => !file.endsWith('.test.ts'))
  .map((file) => {
    const text = readFileSync(join(source, file), 'utf8')
    const bare = text.replaceAll(/\/\*[\s\S]*?\*\//g, '').replaceAll(/(^|\s)\/\/.*$/gm, '')
    return [file, bare.replaceAll(/\s+/g, ' ').replaceAll('’', "'")] as const
  })

test('no page shows curl: it is under "As API"', () => {
  const showing = spoken.filter(([, text]) => /\bcurl\b/i.test(text)).map(([file]) => file)
  expect(showing.toSorted()).toEqual(['ui/as-api-dialog.tsx', 'ui/as-api-text.ts'])
})

/** Sentences that a native writer replaced, by their most telling words, and the patterns behind them. */
const replaced = [
  ...['who never wrote it may write to', 'comes here by themselves', 'wrong inputs', 'Give it to few'],
  ...['watches the platform', 'Asking again cannot send'],
  ...['Parley was not reached', 'Nobody can know', 'tells the other side', 'Everyone has an answer'],
  ...['whose last message is theirs', 'assign it to yourself', 'Nobody else sees', 'stores no drafts'],
  ...[
    'Nobody of that name',
    'needs the gate',
    'has looked up its',
    'The operator of this instance can open it',
  ],
  ...[
    'Leave out those who cannot',
    'The preview is on its way',
    'too far away to foresee',
    'another campaign that is under way',
  ],
  ...['One a line:', 'an identifier and a name are two', 'as a formula does', 'it cannot be paused, only'],
  ...[
    'Counted, never inferred',
    'Write the first one above',
    'It cannot be taken back',
    'that it would have sent first',
  ],
  ...[
    'The first line names the columns',
    'Nothing held against',
    'This login ends by itself',
    'Telegram is asked',
  ],
  ...['it is asked for here next', 'that wait to be sent now are given up', 'Of chats that are assigned'],
  ...[
    'offers none on this page',
    'Allow them in its settings',
    'is an address of yours',
    'appears here by itself',
  ],
  ...['Answering marks a chat read', 'people who must not be written to'],
  ...[
    'needs a person',
    'needs? a person',
    'by itself',
    '(is|are) closed[.\'"`]',
    'they answered',
    'Ambiguous, not sent again\\.',
  ],
].map((words) => new RegExp(words, 'i'))

test('no sentence that a native writer replaced comes back', () => {
  const found = spoken.flatMap(([file, text]) =>
    replaced.filter((words) => words.test(text)).map((words) => `${file}: ${words.source}`),
  )
  expect(found).toEqual([])
})
