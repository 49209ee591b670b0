/** Builds the posting lists of a new segment. */
import { setImmediate as nextTurn } from 'node:timers/promises'
import { tokenise } from '../../../lib/tokens.ts'
import { isGroup } from './condition.ts'
import type { DocKey } from './doc-keys.ts'
import { stride } from './posting-lists.ts'
import { chatTerm, positionTerm, senderTerm } from './terms.ts'

export interface Document extends DocKey {
  readonly sender_id: string | null
  readonly text: string
}

/** Characters of a message that are indexed: four times as many as a caller can send. */
const textMax = 16_384

/** By term: docIds, or occurrences if the term has positions. */
export type PostingLists = ReadonlyMap<string, ArrayLike<number>>

/** Builds the lists of these documents, newest first; a document's index is its docId. Yields to requests in between. */
export async function indexDocuments(documents: readonly Document[]): Promise<PostingLists> {
  const indexer = new Indexer()
  for (const [docId, document] of documents.entries()) {
    if (docId % documentsInTurn === 0) await nextTurn()
    indexer.add(document, docId)
  }
  return indexer.lists
}

const documentsInTurn = 200

class Indexer {
  readonly lists = new Map<string, number[]>()
  /** By word, the list of its docIds and of its occurrences: one look-up per token. */
  readonly #words = new Map<string, { readonly docIds: number[]; readonly occurrences: number[] }>()

  add({ chat_id, sender_id, text }: Document, docId: number): void {
    this.#listOf(chatTerm(chat_id)).push(docId)
    // In a private chat, the chat identifies the sender.
    if (isGroup(chat_id) && sender_id !== null) this.#listOf(senderTerm(sender_id)).push(docId)
    let position = 0
    for (const { word } of tokenise(text.slice(0, textMax))) {
      let lists = this.#words.get(word)
      if (!lists) {
        lists = { docIds: this.#listOf(word), occurrences: this.#listOf(positionTerm(word)) }
        this.#words.set(word, lists)
      }
      if (lists.docIds.at(-1) !== docId) lists.docIds.push(docId)
      lists.occurrences.push(docId * stride + position++)
    }
  }

  #listOf(term: string): number[] {
    const list = this.lists.get(term) ?? []
    if (list.length === 0) this.lists.set(term, list)
    return list
  }
}
