/** One contact: opens its chat, or starts it after showing what the account may still do today. */
import { useQuery } from '@tanstack/react-query'
import { Link, useNavigate } from '@tanstack/react-router'
import { ChevronLeft, ContactRound, MessageCircle } from 'lucide-react'
import { type ReactNode, useEffect, useRef } from 'react'
import { accountsQuery } from '../../data/accounts.ts'
import { Refused } from '../../data/api.ts'
import { chatQuery, workspaceQuery } from '../../data/chats.ts'
import { type Contact, chatOf, useStartChat } from '../../data/contacts.ts'
import type { Workspace } from '../../data/queries.ts'
import { Button, buttonClass } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Face } from '../../ui/face.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { Failure } from '../../ui/notice.tsx'
import { PersonLink } from '../../ui/person-link.tsx'
import { Late, Loading } from '../../ui/states.tsx'
import { StartLimits, whyNotStart } from './start-limits.tsx'

interface PanelProps {
  workspace: Workspace
  account_id: string
  provider_id: string
  /** Undefined if the list does not have it, as after a link to it. */
  contact: Contact | undefined
  onClose: () => void
}

export function ContactPanel({ workspace, account_id, provider_id, contact, onClose }: PanelProps) {
  const chat = chatOf(workspace.id, { account_id, provider_id })
  const query = useQuery(chatQuery(chat))
  const known = query.data?.chat
  const isNew = query.error instanceof Refused && query.error.status === 404
  const name = contact?.name ?? known?.name
  return (
    <div className="grid content-start gap-4.5 p-4">
      <BackButton onClose={onClose} />
      {name === undefined ? (
        <h2 className="text-base font-semibold">{isNew ? 'This contact is not in the list' : 'Contact'}</h2>
      ) : (
        <Person
          name={name}
          username={contact?.username ?? known?.username ?? null}
          of={`${account_id}${chat.chat_id}`}
        />
      )}
      {query.isPending && (
        <Late>
          <Loading rows={2} />
        </Late>
      )}
      {query.error && !isNew && <Failure error={query.error} />}
      {known && <OpenChat workspace_id={workspace.id} chat_id={known.id} account_id={account_id} />}
      <PersonLink workspace_id={workspace.id} q={chat.chat_id} />
      {isNew && contact && <StartWith workspace={workspace} contact={contact} />}
      {isNew && !contact && (
        <p className="text-muted">Find the person by name; the list shows who is known now.</p>
      )}
    </div>
  )
}

function Person({ name, username, of }: { name: string; username: string | null; of: string }) {
  return (
    <div className="flex min-w-0 items-center gap-3">
      <Face name={name} of={of} size="large" />
      <div className="min-w-0">
        <h2 className="line-clamp-2 text-base/5 font-semibold [overflow-wrap:anywhere]">
          <ExactLine text={name} empty="No name" />
        </h2>
        {username !== null && (
          <p className="truncate text-xs text-muted">
            <ExactLine text={`@${username}`} cut />
          </p>
        )}
      </div>
    </div>
  )
}

/** On a narrow screen the list is behind the contact. */
export function BackButton({ onClose }: { onClose: () => void }) {
  return (
    <Button kind="quiet" className="-ml-2.5 justify-self-start min-[761px]:hidden" onClick={onClose}>
      <ChevronLeft aria-hidden className="size-4" />
      Back to the contacts
    </Button>
  )
}

/** The hand goes there next, unless it is typing a name. */
function useNextFocus<E extends HTMLElement>() {
  const next = useRef<E>(null)
  useEffect(() => {
    const from = document.activeElement
    if (from === document.body || from?.closest('[data-contact]'))
      next.current?.focus({ preventScroll: true })
  }, [])
  return next
}

function OpenChat({
  workspace_id,
  chat_id,
  account_id,
}: {
  workspace_id: string
  chat_id: string
  account_id: string
}) {
  const next = useNextFocus<HTMLAnchorElement>()
  return (
    <Link
      ref={next}
      to="/w/$workspace_id/inbox"
      params={{ workspace_id }}
      search={{ chat: chat_id, of: account_id }}
      className={buttonClass({ kind: 'primary' })}
    >
      <MessageCircle aria-hidden className="size-4" />
      Open chat <Keys keys="↵" onAccent />
    </Link>
  )
}

function StartWith({ workspace, contact }: { workspace: Workspace; contact: Contact }) {
  const { data: accounts } = useQuery(accountsQuery(workspace.id))
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const account = accounts?.accounts.find(({ id }) => id === contact.account_id)
  const start = useStartChat(useOpenInbox())
  const next = useNextFocus<HTMLButtonElement>()
  const because = whyNotStart(state, account)
  const { username, provider_id, account_id } = contact
  const identifier = username === null ? provider_id : `@${username}`
  return (
    <>
      {account && <StartLimits account={account} />}
      <StartButton
        ref={next}
        busy={start.isPending}
        because={because}
        onStart={() => start.mutate({ workspace_id: workspace.id, account_id, identifier })}
      />
      <StartFailure error={start.error} unnamed={username === null} />
    </>
  )
}

export function useOpenInbox() {
  const navigate = useNavigate()
  return ({
    workspace_id,
    account_id,
    chat_id,
  }: {
    workspace_id: string
    account_id: string
    chat_id: string
  }) =>
    void navigate({
      to: '/w/$workspace_id/inbox',
      params: { workspace_id },
      search: { chat: chat_id, of: account_id },
    })
}

interface StartButtonProps {
  ref?: React.Ref<HTMLButtonElement>
  type?: 'submit'
  busy: boolean
  /** Why it cannot be done now. */
  because: ReactNode
  onStart?: () => void
}

/** Stays focusable while it is closed, so that the reason below it is found by keyboard too. */
export function StartButton({ busy, because, onStart, ...rest }: StartButtonProps) {
  const isClosed = because !== undefined
  return (
    <div className="grid gap-1.5">
      <Button {...rest} kind="primary" busy={busy} disabled={isClosed} {...(onStart && { onClick: onStart })}>
        Start chat <Keys keys="↵" onAccent />
      </Button>
      <p className="text-xs text-muted">
        {because ?? 'Looks the person up and opens the chat. Nothing is sent.'}
      </p>
    </div>
  )
}

export function StartFailure({ error, unnamed = false }: { error: unknown; unnamed?: boolean }) {
  if (unnamed && error instanceof Refused && error.code === 'unsupported_identifier') {
    return (
      <p role="alert" className="rounded-lg bg-warn-wash px-3.5 py-2.5">
        This person has no username. To message people without one, ask the operator to turn on “extended”.
      </p>
    )
  }
  return <Failure error={error} />
}

export function NobodyChosen() {
  return (
    <div className="grid h-full place-content-center justify-items-center p-8 text-center">
      <ContactRound aria-hidden className="mb-3 size-6 text-muted" />
      <p className="text-muted">Choose a person to open or start the chat.</p>
    </div>
  )
}
