/** An empty list of chats says what would be here, and what to do. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { Inbox } from 'lucide-react'
import { useSession } from '../../place.ts'
import { curlOf } from '../../ui/as-api-text.ts'
import { buttonClass } from '../../ui/button.tsx'
import { Code } from '../../ui/copy.tsx'
import { accountsQuery } from '../accounts/account-queries.ts'
import type { View } from './inbox-queries.ts'

export function NoChats({ view, workspace_id }: { view: View; workspace_id: string }) {
  const { base_url } = useSession()
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
    unanswered: ['Everyone has an answer', 'Chats whose last message is theirs appear here.'],
    mine: [
      'No chat is assigned to you',
      'Open a chat and assign it to yourself: it stays here until it is done.',
    ],
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
        <Link
          to="/w/$workspace_id/accounts"
          params={{ workspace_id }}
          className={`mt-5 ${buttonClass({ kind: 'primary' })}`}
        >
          Go to Accounts
        </Link>
      )}
      {view === 'all' && account && (
        <div className="mt-5 w-full text-left">
          <Code
            label="A program reads the chats"
            text={curlOf(base_url, { method: 'GET', path: `/chats?account_id=${account.id}` })}
          />
        </div>
      )}
    </div>
  )
}
