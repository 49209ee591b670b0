/** What the address of the page says. */
import type { Contact } from '../../data/contacts.ts'

export interface ContactsSearch {
  /** The beginning of a name. */
  q?: string
  /** Only contacts of this account. */
  account?: string
  /** The chosen contact, and the account that knows it. */
  contact?: string
  of?: string
  /** A chat with someone new, instead of a contact. */
  start?: string
}

export type Go = (search: ContactsSearch) => void

export const idsOf = ({ provider_id, account_id }: Contact) => ({ contact: provider_id, of: account_id })
