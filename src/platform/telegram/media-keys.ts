/**
 * The keys for downloads: the account's own, which only a login writes, and one for each other data centre that has files,
 * kept in the same blob because Telegram rations how often a login may be exported.
 */
import type { ITelegramStorageProvider } from '@mtcute/core'
import type { AccountStore } from '../port.ts'
import {
  addForeignKey,
  findForeignKey,
  findOwnDc,
  openForeignStorage,
  openSessionStorage,
} from './storage.ts'

export class MediaKeys {
  readonly #store: AccountStore
  #blob: Uint8Array

  constructor(store: AccountStore, blob: Uint8Array) {
    this.#store = store
    this.#blob = blob
  }

  isOwn(dc: number): boolean {
    return findOwnDc(this.#blob) === dc
  }

  has(dc: number): boolean {
    return findForeignKey(this.#blob, dc) !== undefined
  }

  ownStorage(): ITelegramStorageProvider {
    const storage = openSessionStorage(this.#blob)
    if (!storage) throw new Error('The login is not ours.')
    return storage
  }

  /** With the kept key, or empty: connecting then makes one. */
  foreignStorage(dc: number): ITelegramStorageProvider {
    return openForeignStorage(dc, findForeignKey(this.#blob, dc))
  }

  async keep(dc: number, storage: ITelegramStorageProvider): Promise<void> {
    const key = await storage.authKeys.get(dc)
    // Only a login writes the account's own key.
    if (!key || this.isOwn(dc)) return
    this.#blob = addForeignKey(this.#blob, dc, key)
    // If it cannot be stored, the next session exports the login again.
    await this.#store.writeSession(this.#blob).catch(() => {})
  }
}
