/** What a worker gives an adapter in addition to the account itself, kept in memory. */
import type { AccountRef, AccountStore, StoredPeer } from '../../src/platform/port.ts'

export class MemoryAccountStore implements AccountStore {
  session: Uint8Array | null
  readonly peers = new Map<StoredPeer['number'], string>()
  /** How many peers each write had. */
  readonly writes: number[] = []

  constructor(session: Uint8Array | null = null) {
    this.session = session
  }

  async readSession(): Promise<Uint8Array | null> {
    return this.session
  }

  async writeSession(session: Uint8Array): Promise<void> {
    this.session = session
  }

  async listPeers(page: { after: StoredPeer['number'] | null; limit: number }): Promise<StoredPeer[]> {
    const peers = [...this.peers].map(([number, text]) => ({ number, text }))
    return peers
      .sort((a, b) => Number(a.number) - Number(b.number))
      .filter(({ number }) => page.after === null || Number(number) > Number(page.after))
      .slice(0, page.limit)
  }

  async writePeers(peers: readonly StoredPeer[]): Promise<void> {
    this.writes.push(peers.length)
    for (const { number, text } of peers) this.peers.set(number, text)
  }
}

/** An account whose lease always holds, and for which nothing is stored. */
export function heldAccount(
  account: Pick<AccountRef, 'account_id' | 'name'> & Partial<AccountRef>,
): AccountRef {
  return { position: null, held: () => true, store: new MemoryAccountStore(), proxy: null, ...account }
}
