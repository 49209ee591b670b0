/** Where an answer or a note is written. A message never looks sent before it is. */
import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Lock, Paperclip, Slash, X } from 'lucide-react'
import { type KeyboardEvent, useRef, useState } from 'react'
import { ExactLine } from '../../exact-text.tsx'
import { type ChatPlace, isStored } from '../../outbox.ts'
import { useSession } from '../../place.ts'
import type { Workspace } from '../../queries.ts'
import { Button } from '../../ui/button.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { Notice } from '../../ui/notice.tsx'
import { Countdown } from '../../ui/time.tsx'
import type { Account } from '../accounts/account-queries.ts'
import { closedBecause } from './closed-composer.tsx'
import { type ChatRef, timelineQuery, workspaceQuery } from './inbox-queries.ts'
import { NoteForm } from './note-form.tsx'
import { SavedReplies } from './saved-replies.tsx'
import { dismissFailure, placeKey, sendDraft, useSending } from './sending.ts'
import { useDraft } from './use-draft.ts'

const textMax = 4096
const fileBytesMax = 25 * 1024 * 1024

interface ComposerProps {
  mode: 'answer' | 'note'
  setMode: (mode: 'answer' | 'note') => void
  chat: ChatRef
  workspace: Workspace
  account: Account | undefined
  name: string
  /** Called at each change, so that others see the typing. */
  onTyped: () => void
}

export function Composer(props: ComposerProps) {
  return props.mode === 'note' ? (
    <NoteForm chat={props.chat} onClose={() => props.setMode('answer')} />
  ) : (
    <Answer {...props} onNote={() => props.setMode('note')} />
  )
}

function Answer({ chat, workspace, account, name, onTyped, onNote }: ComposerProps & { onNote: () => void }) {
  const { user } = useSession()
  const [place] = useState<ChatPlace>({ user_id: user.id, ...chat })
  const { draft, isLoaded, isSaved, change, clear } = useDraft(place)
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const field = useRef<HTMLTextAreaElement>(null)
  const [picking, setPicking] = useState(false)
  const [refusal, setRefusal] = useState<string>()
  const overtaken = useOvertaken(chat, draft.begun_at)
  const [warned, setWarned] = useState<string>()
  const closed = closedBecause(state, account)
  const length = [...draft.text].length
  const fault = length > textMax ? `${length} characters: a message has at most 4,096.` : refusal
  const isEmpty = draft.text.trim() === '' && draft.file === null
  const send = async () => {
    if (closed || fault || isEmpty || !isLoaded) return
    if (overtaken && warned !== overtaken.id) return setWarned(overtaken.id)
    clear()
    setWarned(undefined)
    field.current?.focus()
    await sendDraft(draft)
  }
  const attach = (file: File | undefined) => {
    if (!file) return
    setRefusal(refusalOf(file))
    if (refusalOf(file) === undefined) change({ file })
  }
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault()
      void send()
    }
    if (event.key === '/' && draft.text === '') {
      event.preventDefault()
      setPicking(true)
    }
    if (event.key === 'Escape') field.current?.blur()
  }
  return (
    <div className="relative shrink-0">
      <SendNotice chat={chat} />
      {warned !== undefined && overtaken && (
        <div className="mx-3.5 mb-1.5 flex items-center gap-2 rounded-lg bg-warn-wash px-3 py-2" role="alert">
          <p className="min-w-0 flex-1">
            <bdi>{overtaken.name}</bdi> has answered since you began. Send yours too?
          </p>
          <Button size="small" onClick={() => void send()}>
            Send too
          </Button>
        </div>
      )}
      {picking && (
        <SavedReplies
          workspace_id={workspace.id}
          text={draft.text}
          onPick={(text) => {
            change({ text: draft.text === '' ? text : `${draft.text}${text}` })
            setPicking(false)
            field.current?.focus()
          }}
          onClose={() => {
            setPicking(false)
            field.current?.focus()
          }}
        />
      )}
      <div
        className="mx-2 mb-2 mt-1 rounded-xl bg-surface ring-1 ring-line-strong focus-within:ring-2 focus-within:ring-accent
          min-[761px]:mx-3.5 min-[761px]:mb-3.5 min-[761px]:mt-1.5"
      >
        <textarea
          ref={field}
          data-composer
          aria-label={name === '' ? 'Answer' : `Answer to ${name.slice(0, 80)}`}
          value={draft.text}
          placeholder={closed ? '' : 'Write an answer'}
          rows={2}
          dir="auto"
          onChange={(event) => {
            onTyped()
            setRefusal(undefined)
            change({ text: event.target.value })
          }}
          onKeyDown={onKeyDown}
          onPaste={(event) => attach(event.clipboardData.files[0])}
          className="field-sizing-content block max-h-48 min-h-13.5 w-full resize-none rounded-xl bg-transparent px-3.25 pb-0.5 pt-2.5 text-[14.5px]/[21px] outline-none"
        />
        {draft.file && <FileChip file={draft.file} onRemove={() => change({ file: null })} />}
        {fault && (
          <p role="alert" className="px-3.25 text-xs text-danger">
            {fault}
          </p>
        )}
        {closed && <p className="px-3.25 py-1 text-soft">{closed}</p>}
        <div className="flex items-center gap-0.5 px-1.5 pb-1.5 pl-2">
          <AttachButton onFile={attach} />
          <IconButton label="Saved replies" keys="/" data-replies onClick={() => setPicking(!picking)}>
            <Slash aria-hidden className="size-4" />
          </IconButton>
          <IconButton label="Write a note" keys="N" onClick={onNote} data-note>
            <Lock aria-hidden className="size-4" />
          </IconButton>
          <span className="ml-2 min-w-0 flex-1 truncate text-xs text-muted">
            {!isStored() &&
              !isEmpty &&
              'This browser stores no drafts: this one is lost when you close the tab.'}
            {isStored() && !isEmpty && isSaved && 'Draft saved'}
          </span>
          <Button
            kind="primary"
            className="!h-11 min-[761px]:!h-8"
            disabled={Boolean(closed) || isEmpty || Boolean(fault)}
            onClick={() => void send()}
          >
            Send <Keys keys="⌘↵" onAccent />
          </Button>
        </div>
      </div>
    </div>
  )
}

function refusalOf(file: File): string | undefined {
  if (file.size === 0) return `${file.name.slice(0, 80)} is empty. Choose another file.`
  if (file.size > fileBytesMax)
    return `${file.name.slice(0, 80)} is larger than 25 MiB. Choose a smaller file.`
  return undefined
}

/** Another user's answer that the platform accepted after this draft was started. */
function useOvertaken(chat: ChatRef, begun_at: string): { id: string; name: string } | undefined {
  const { user } = useSession()
  const own = [user.name, user.email.split('@')[0]]
  const client = useQueryClient()
  const pages = client.getQueryData(timelineQuery(chat).queryKey)?.pages ?? []
  for (const item of pages.flatMap(({ items }) => items).toReversed()) {
    if (item.type !== 'message' || !item.is_sender || item.at <= begun_at) continue
    if (item.by?.kind === 'user' && !own.includes(item.by.name ?? '')) {
      return { id: item.id, name: item.by.name ?? 'Another member' }
    }
  }
  return undefined
}

/** Why the last attempt failed. The text is in the composer again. */
function SendNotice({ chat }: { chat: ChatRef }) {
  const { failures } = useSending()
  const failure = failures.get(placeKey(chat))
  if (!failure) return null
  return (
    <div className="mx-3.5 mb-1.5 flex items-start gap-1">
      <div className="min-w-0 flex-1">
        <Notice tone="danger">
          Not sent: {failure.sentence} Your text is below.
          {failure.until !== null && (
            <>
              {' '}
              The platform allows the next attempt in{' '}
              <Countdown calm until={failure.until} label="Next attempt" />
            </>
          )}
        </Notice>
      </div>
      <IconButton label="Dismiss" onClick={() => dismissFailure(chat)}>
        <X aria-hidden className="size-4" />
      </IconButton>
    </div>
  )
}

function FileChip({ file, onRemove }: { file: File; onRemove: () => void }) {
  return (
    <p className="mx-2.5 mb-1 flex items-center gap-2 rounded-lg bg-sunken py-1 pl-2.5 pr-1">
      <Paperclip aria-hidden className="size-3.5 shrink-0 text-muted" />
      <span className="min-w-0 flex-1 truncate">
        <ExactLine text={file.name} empty="A file without a name" />
      </span>
      <span className="shrink-0 text-xs text-muted">
        {Math.ceil(file.size / 1_000).toLocaleString('en')} kB
      </span>
      <IconButton label="Remove the file" onClick={onRemove}>
        <X aria-hidden className="size-3.5" />
      </IconButton>
    </p>
  )
}

function AttachButton({ onFile }: { onFile: (file: File | undefined) => void }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <IconButton label="Attach a file" onClick={() => input.current?.click()}>
        <Paperclip aria-hidden className="size-4" />
      </IconButton>
      <input
        ref={input}
        type="file"
        tabIndex={-1}
        aria-label="File"
        className="hidden"
        onChange={(event) => {
          onFile(event.target.files?.[0])
          // So that the same file can be chosen again.
          event.target.value = ''
        }}
      />
    </>
  )
}

interface IconButtonProps extends React.ComponentProps<'button'> {
  label: string
  keys?: string
}

export function IconButton({ label, keys, ...rest }: IconButtonProps) {
  return (
    <button
      type="button"
      aria-label={label}
      title={keys === undefined ? label : `${label} (${keys})`}
      {...rest}
      className="grid size-7 shrink-0 place-items-center rounded-md text-soft hover:bg-hover hover:text-ink pointer-coarse:size-11"
    />
  )
}
