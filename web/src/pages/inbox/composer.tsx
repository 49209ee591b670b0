/** Where an answer or a note is written. A message never looks sent before it is. */

import { useQuery, useQueryClient } from '@tanstack/react-query'
import { Lock, Paperclip, Slash, X } from 'lucide-react'
import { type KeyboardEvent, useRef, useState } from 'react'
import { filesMax, textMax } from '../../../../src/rules/limits.ts'
import { lengthOf } from '../../../../src/rules/text.ts'
import type { Account } from '../../data/accounts.ts'
import { isStored } from '../../data/browser-store.ts'
import { type ChatRef, timelineQuery, workspaceQuery } from '../../data/chats.ts'
import { useSession } from '../../data/place.ts'
import type { Workspace } from '../../data/queries.ts'
import { dismissFailure, failureKey, placeOf, sendDraft, useSending } from '../../data/sending.ts'
import { serviceTimeOf } from '../../data/service-clock.ts'
import { useShared } from '../../data/shared-state.ts'
import { useKept } from '../../data/use-kept.ts'
import { Button } from '../../ui/button.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { Notice } from '../../ui/notice.tsx'
import { SavedReplies } from '../../ui/saved-replies.tsx'
import { Countdown } from '../../ui/time.tsx'
import { type Chosen, filesPasted, type RefusedFile } from './chosen-files.ts'
import { closedBecause } from './closed-composer.tsx'
import { DraftFiles } from './draft-files.tsx'
import { NoteForm } from './note-form.tsx'
import { overtakenBy } from './overtaken.ts'
import type { Answer } from './use-answer.ts'

interface ComposerProps {
  mode: 'answer' | 'note'
  setMode: (mode: 'answer' | 'note') => void
  chat: ChatRef
  answer: Answer
  workspace: Workspace
  account: Account | undefined
  name: string
  /** Files that the answer did not take. */
  refused: readonly RefusedFile[]
  setRefused: (refused: readonly RefusedFile[]) => void
  /** Called at each change, so that others see the typing. */
  onTyped: () => void
}

export function Composer(props: ComposerProps) {
  return props.mode === 'note' ? (
    <NoteForm chat={props.chat} onClose={() => props.setMode('answer')} />
  ) : (
    <AnswerForm {...props} onNote={() => props.setMode('note')} />
  )
}

function AnswerForm({
  chat,
  answer,
  workspace,
  account,
  name,
  refused,
  setRefused,
  onTyped,
  onNote,
}: ComposerProps & { onNote: () => void }) {
  const { user } = useSession()
  const { change, clear, attach, removeFile } = answer
  const { kept, isLoaded, isSaved } = useShared(answer.shown)
  const { value: text, files } = kept
  const at = { user_id: user.id, workspace_id: chat.workspace_id, of: placeOf(chat) }
  const note = useKept({ ...at, kind: 'note' }, '').kept.value
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const field = useRef<HTMLTextAreaElement>(null)
  const [picking, setPicking] = useState(false)
  const failure = useSending().failures.get(failureKey(chat))
  const overtaken = useOvertaken(chat, kept.begun_at)
  const [warned, setWarned] = useState<string>()
  const closed = closedBecause(state, account)
  const length = lengthOf(text)
  const fault = faultOf(length, files.length)
  const isEmpty = text.trim() === '' && files.length === 0
  const send = async () => {
    if (closed || fault || isEmpty || !isLoaded) return
    if (overtaken && warned !== overtaken.id) return setWarned(overtaken.id)
    clear()
    setWarned(undefined)
    field.current?.focus()
    await sendDraft(kept)
  }
  const take = (chosen: readonly Chosen[]) => setRefused(attach(chosen))
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
      event.preventDefault()
      void send()
    }
    if (event.key === '/' && text === '') {
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
          text={text}
          onPick={(reply) => {
            change((before) => `${before}${reply}`)
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
          value={text}
          placeholder={closed ? '' : 'Write an answer'}
          rows={2}
          dir="auto"
          onChange={(event) => {
            onTyped()
            const typed = event.target.value
            change(() => typed)
          }}
          onKeyDown={onKeyDown}
          onPaste={(event) => {
            const pasted = filesPasted(event.clipboardData)
            if (pasted.length === 0) return
            event.preventDefault()
            take(pasted)
          }}
          className="field-sizing-content block max-h-48 min-h-13.5 w-full resize-none rounded-xl bg-transparent px-3.25 pb-0.5 pt-2.5 text-[14.5px]/[21px] outline-none"
        />
        <DraftFiles
          files={files}
          refused={refused}
          failure={failure?.file === files[0]?.name ? failure?.sentence : undefined}
          onRemove={removeFile}
          onDismiss={(dismissed) => setRefused(refused.filter((each) => each !== dismissed))}
          field={field}
        />
        {fault && (
          <p role="alert" className="px-3.25 text-xs text-danger">
            {fault}
          </p>
        )}
        {closed && <p className="px-3.25 py-1 text-soft">{closed}</p>}
        <div className="flex items-center gap-0.5 px-1.5 pb-1.5 pl-2">
          <AttachButton onFiles={take} />
          <IconButton label="Saved replies" keys="/" data-replies onClick={() => setPicking(!picking)}>
            <Slash aria-hidden className="size-4" />
          </IconButton>
          <IconButton
            label={note === '' ? 'Write a note' : 'Go on with your note'}
            keys="N"
            onClick={onNote}
            data-note
          >
            <Lock aria-hidden className={`size-4 ${note === '' ? '' : 'text-warn'}`} />
          </IconButton>
          <span className="ml-2 min-w-0 flex-1 truncate text-xs text-muted">
            {!isStored() && !isEmpty && 'This browser can’t save drafts. Closing the tab discards this one.'}
            {isStored() && !isEmpty && isSaved && 'Draft saved'}
          </span>
          <Button
            kind="primary"
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

function faultOf(length: number, files: number): string | undefined {
  if (length > textMax) return `${length} characters: a message has at most 4,096.`
  return files > filesMax ? `${files} files: at most ${filesMax} go at once. Remove some.` : undefined
}

/** Another user's answer that the platform accepted after this draft was started. */
function useOvertaken(chat: ChatRef, begun_at: string): { id: string; name: string } | undefined {
  const { user } = useSession()
  const client = useQueryClient()
  const pages = client.getQueryData(timelineQuery(chat).queryKey)?.pages ?? []
  const items = pages.flatMap((page) => page.items)
  return overtakenBy(items, { user_id: user.id, since: serviceTimeOf(begun_at) })
}

/** Why the last attempt failed. The text is in the composer again. */
function SendNotice({ chat }: { chat: ChatRef }) {
  const { failures } = useSending()
  const failure = failures.get(failureKey(chat))
  if (!failure) return null
  return (
    <div className="mx-3.5 mb-1.5 flex items-start gap-1">
      <div className="min-w-0 flex-1">
        <Notice tone="danger">
          Not sent: {failure.sentence}{' '}
          {failure.file === null ? 'Your text is below.' : 'What was not sent is below.'}
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

function AttachButton({ onFiles }: { onFiles: (files: readonly File[]) => void }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <IconButton label="Attach files" onClick={() => input.current?.click()}>
        <Paperclip aria-hidden className="size-4" />
      </IconButton>
      <input
        ref={input}
        type="file"
        multiple
        tabIndex={-1}
        aria-label="Files"
        className="hidden"
        onChange={(event) => {
          onFiles([...(event.target.files ?? [])])
          // So that the same file can be chosen again.
          event.target.value = ''
        }}
      />
    </>
  )
}
