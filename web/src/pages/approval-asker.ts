/** Who asks for an approval. */

interface AskingClient {
  readonly key: { readonly name: string }
  readonly client_name: string | null
}

/** The key's name first, because its user chose it. Nothing verifies a client's name for itself. */
export function askersOf({ key, client_name }: AskingClient): readonly string[] {
  return client_name === null ? [key.name] : [key.name, client_name]
}
