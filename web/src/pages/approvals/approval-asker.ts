/** Who asks for an approval. */

interface AskingClient {
  readonly key: { readonly name: string }
  readonly client_name: string | null
}

/** The key's name first, because its user chose it. Nothing verifies a client's name for itself. */
export function askersOf({ key, client_name }: AskingClient): readonly string[] {
  // guard: the key is named first
  return client_name === null ? [key.name] : [key.name, readableName(client_name)]
}

/** `claude-code/2.1` as "Claude Code 2.1". A name of any other form stays as it is. */
function readableName(name: string): string {
  const [, words, version] = /^([a-z][a-z0-9]*(?:-[a-z0-9]+)*)\/([0-9][0-9.]*)$/.exec(name) ?? []
  if (words === undefined) return name
  const title = words
    .split('-')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join(' ')
  return `${title} ${version}`
}
