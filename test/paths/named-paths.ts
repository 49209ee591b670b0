/** The paths that comments and documents name, and which of them no file has. */
import { dirname, join } from 'node:path'

export interface Missing {
  readonly file: string
  readonly line: number
  readonly path: string
}

/** Whose comments are read; Markdown is read whole. */
const commented =
  /\.(tsx?|js|sql|ya?ml|sh|css)$|(^|\/)(Dockerfile|Caddyfile)$|\.(cfg|conf|service)$|^\.ci\/run$/
/** They speak of files of their time, and a released migration never changes. */
const historic = /^CHANGELOG\.md$|^src\/db\/migrations\//

/** Files that a reader or a build makes, files of other programs, and a package with the name of a file. */
const elsewhere = new Set([
  ...['send.sh', 'offer.json', 'npm-shrinkwrap.json', 'web/dist'],
  ...['.cursor/mcp.json', '.vscode/mcp.json', 'ipaddr.js'],
  // In the archive of a person.
  ...['person.json', 'messages.json', 'messages.html', 'files.json'],
])
/** Stands for a name. */
const placeholder = /NNNN|^X\./

const extensions = 'tsx?|js|mjs|sql|md|ya?ml|css|sh|cfg|conf|service|json|backup|html|svg|toml'
/** A file, with or without its folders. */
const file = new RegExp(
  `(?<![\\w/.@:<>{}*$…~-])((?:[\\w.@-]+/)*[\\w@-][\\w.@-]*\\.(?:${extensions}))(?![\\w/*<{-]|\\.\\w)`,
  'g',
)
/** A folder, or a file without its ending. */
const folder = /(?<![\w/.@:<>{}*$…~-])((?:src|web|test|bench|docs|deploy)\/[\w./@-]*\w)(?![\w*<{(-]|\.\w)/g

export function findMissing(files: readonly string[], read: (file: string) => string): Missing[] {
  const known = new Set<string>()
  for (const path of files) {
    const parts = path.split('/')
    for (let from = 0; from < parts.length; from++) {
      // Every ending of the path, and every folder in it.
      known.add(parts.slice(from).join('/'))
      known.add(parts.slice(0, from).join('/'))
      for (let to = from + 1; to < parts.length; to++) known.add(parts.slice(from, to).join('/'))
    }
    known.add(path.replace(/\.\w+$/, ''))
  }
  return files
    .filter((path) => (path.endsWith('.md') || commented.test(path)) && !historic.test(path))
    .flatMap((path) => {
      const lines = path.endsWith('.md') ? proseOf(read(path)) : commentsOf(path, read(path))
      const exists = (named: string) =>
        known.has(/^\.{1,2}\//.test(named) ? join(dirname(path), named) : named) || elsewhere.has(named)
      return lines.flatMap((text, at) =>
        namedIn(text)
          .filter((named) => !exists(named) && !placeholder.test(named.split('/').at(-1) ?? ''))
          .map((named) => ({ file: path, line: at + 1, path: named })),
      )
    })
}

function namedIn(text: string): string[] {
  const plain = text.replaceAll(/\w+:\/\/\S+/g, ' ')
  return [...new Set([...plain.matchAll(file), ...plain.matchAll(folder)].map(([, path = '']) => path))]
}

/** Without the commands and outputs that a page shows: those are of the reader's machine. */
function proseOf(text: string): string[] {
  let shown = false
  return text.split('\n').map((line) => {
    const fence = /^\s*```/.test(line)
    if (fence) shown = !shown
    return fence || shown ? '' : line
  })
}

/** The lines, with nothing but their comments. */
function commentsOf(path: string, text: string): string[] {
  if (path.endsWith('.sql')) return text.split('\n').map((line) => line.split('--').slice(1).join('--'))
  if (!/\.(tsx?|js|css)$/.test(path))
    return text.split('\n').map((line) => /(?:^|\s)#(.*)/.exec(line)?.[1] ?? '')
  let inside = false
  return text.split('\n').map((line) => {
    const block = inside || /^\s*(\{)?\/\*/.test(line)
    inside = block && !line.includes('*/')
    if (block) return line
    return /(?:^|\s)\/\/ ?(.*)/.exec(line)?.[1] ?? ''
  })
}
