/** Whether the person of a chat is on the suppression list, and why; suppresses and releases them. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { UserX } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { type ChatDetail, type ChatRef, chatSuppressionQuery } from '../../data/chats.ts'
import type { Workspace } from '../../data/queries.ts'
import type { ChatSuppression } from '../../data/suppressions.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { useClock } from '../../ui/time.tsx'
import { askedText, nameOfEntry, suppressedWords } from './suppression-words.ts'

const SuppressDialog = lazy(async () => ({
  default: (await import('./suppression-dialogs.tsx')).SuppressDialog,
}))
const ReleaseDialog = lazy(async () => ({
  default: (await import('./suppression-dialogs.tsx')).ReleaseDialog,
}))

interface SuppressionProps {
  chat: ChatRef
  detail: ChatDetail
  workspace: Workspace
}

/** In the head of the chat: one line. */
export function SuppressedLine({ chat }: Pick<SuppressionProps, 'chat'>) {
  const { date } = useClock()
  const { data: [first] = [] } = useQuery(chatSuppressionQuery(chat))
  if (!first) return null
  return (
    <span className="max-w-full shrink-0 truncate font-medium text-warn">
      <UserX aria-hidden className="-mt-0.5 mr-1 inline size-3.5" />
      {suppressedWords(first, date)},
    </span>
  )
}

/** At the side: every entry, with the message that asked, and what can be done. */
export function Suppression({ chat, detail, workspace }: SuppressionProps) {
  const { data: entries } = useQuery(chatSuppressionQuery(chat))
  const [open, setOpen] = useState<'suppress' | 'release'>()
  if (detail.kind !== 'private' || !entries) return null
  const close = () => setOpen(undefined)
  return (
    <section aria-label="Suppression">
      {entries.length > 0 && (
        <ul className="grid gap-1.5">
          {entries.map((entry) => (
            <Entry key={`${entry.kind} ${entry.value}`} entry={entry} chat={chat} />
          ))}
        </ul>
      )}
      {entries.length === 0 && (
        <Button kind="quiet" size="small" className="-ml-2.5" onClick={() => setOpen('suppress')}>
          <UserX aria-hidden className="size-3.5" />
          Suppress…
        </Button>
      )}
      {entries.length > 0 && workspace.role !== 'member' && (
        <Button kind="quiet" size="small" className="mt-1 -ml-2.5" onClick={() => setOpen('release')}>
          Release…
        </Button>
      )}
      <Suspense>
        {open === 'suppress' && <SuppressDialog chat={chat} name={detail.name} onClose={close} />}
        {open === 'release' && (
          <ReleaseDialog chat={chat} name={detail.name} entries={entries} onClose={close} />
        )}
      </Suspense>
    </section>
  )
}

function Entry({ entry, chat }: { entry: ChatSuppression; chat: ChatRef }) {
  const { date } = useClock()
  const text = askedText(entry)
  const { chat_id, account_id, message_id } = entry.evidence
  return (
    <li className="rounded-[10px] bg-warn-wash px-2.75 py-2">
      <p className="font-medium text-warn">{suppressedWords(entry, date)}</p>
      {text !== undefined && (
        <Link
          to="/w/$workspace_id/inbox"
          params={{ workspace_id: chat.workspace_id }}
          search={{ chat: String(chat_id), of: String(account_id), message: String(message_id) }}
          className="block text-ink underline decoration-line-strong underline-offset-3 [overflow-wrap:anywhere]"
        >
          “<ExactText text={text} />”
        </Link>
      )}
      {entry.kind !== 'platform_id' && (
        <p className="text-xs text-soft">
          As <ExactLine text={nameOfEntry(entry)} />
        </p>
      )}
    </li>
  )
}
