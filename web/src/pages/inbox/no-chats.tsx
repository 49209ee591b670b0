/** An empty list of chats says what would be here, and what to do. */
import { useQuery } from '@tanstack/react-query'
import { Inbox } from 'lucide-react'
import { accountsQuery } from '../../data/accounts.ts'
import type { View } from '../../data/chats.ts'

import { AccountsLink } from '../../ui/accounts-link.tsx'
import { AsApi } from '../../ui/as-api.tsx'

export function NoChats({ view, workspace_id }: { view: View; workspace_id: string }) {
  const { data } = useQuery(accountsQuery(workspace_id))
  const [account] = data?.accounts ?? []
  const none = data?.accounts.length === 0
  const words: Readonly<Record<View, readonly [string, string]>> = {
    all: none
      ? ['No account is connected', 'Connect the account your team writes from, and its chats appear here.']
      : [
          'No chats yet',
          'Nobody has written yet. Write to your account from your phone, and it appears here.',
        ],
    unread: ['Everything is read', 'New messages appear here until someone marks their chat read.'],
    unanswered: ['Nothing to answer', 'Chats waiting for your answer appear here.'],
    mine: ['No chat is assigned to you', 'Chats assigned to you appear here until they are done.'],
  }
  const [title, about] = words[view]
  return (
    <div className="grid justify-items-center px-6 py-14 text-center">
      <span className="mb-4 grid size-11 place-items-center rounded-xl bg-accent-wash text-accent">
        <Inbox aria-hidden className="size-5" />
      </span>
      <h2 className="text-base font-semibold">{title}</h2>
      <p className="mt-1 max-w-[36ch] text-muted">{about}</p>
      {view === 'all' && none && (
        <div className="mt-5">
          <AccountsLink workspace_id={workspace_id} button />
        </div>
      )}
      {view === 'all' && account && (
        <div className="mt-5">
          <AsApi
            of="The chats"
            requests={[{ does: 'Read the chats', method: 'GET', path: `/chats?account_id=${account.id}` }]}
          />
        </div>
      )}
    </div>
  )
}
