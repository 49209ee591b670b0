/** Saved replies above the composer: find one, insert it, or save the current text as a new one. */
import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { type KeyboardEvent, useId, useState } from 'react'
import { ExactLine } from '../../exact-text.tsx'
import { useChange } from '../../queries.ts'
import { Button } from '../../ui/button.tsx'
import { TextInput } from '../../ui/form.tsx'
import { Failure } from '../../ui/notice.tsx'
import { savedRepliesQuery } from './inbox-queries.ts'

interface SavedRepliesProps {
  workspace_id: string
  /** What is in the composer, to save as a reply. */
  text: string
  /** Opens below its place instead of above, where the text is. */
  below?: boolean
  onPick: (text: string) => void
  onClose: () => void
}

const shownMax = 50

export function SavedReplies({ workspace_id, text, below = false, onPick, onClose }: SavedRepliesProps) {
  const query = useQuery(savedRepliesQuery(workspace_id))
  const [wanted, setWanted] = useState('')
  const [at, setAt] = useState(0)
  const [isNew, setNew] = useState(false)
  const list = useId()
  const words = wanted.toLowerCase().trim()
  const replies = (query.data?.saved_replies ?? [])
    .filter((reply) => `${reply.title} ${reply.text}`.toLowerCase().includes(words))
    .slice(0, shownMax)
  const onKeyDown = (event: KeyboardEvent) => {
    const steps: Readonly<Record<string, number>> = { ArrowDown: 1, ArrowUp: -1 }
    const step = steps[event.key]
    if (step !== undefined && replies.length > 0) {
      event.preventDefault()
      setAt((before) => (before + step + replies.length) % replies.length)
    }
    const chosen = replies[at]
    if (event.key === 'Enter' && chosen) {
      event.preventDefault()
      onPick(chosen.text)
    }
  }
  return (
    // biome-ignore lint/a11y/noStaticElementInteractions: Escape closes it from every field inside.
    <div
      onKeyDown={(event) => {
        if (event.key !== 'Escape') return
        event.stopPropagation()
        onClose()
      }}
      className={`absolute inset-x-2 z-20 flex max-h-80 flex-col rounded-xl bg-raised shadow-float min-[761px]:inset-x-3.5
        ${below ? 'top-full mt-1' : 'bottom-full mb-1'}`}
    >
      {isNew ? (
        <NewReply workspace_id={workspace_id} text={text} onDone={onClose} />
      ) : (
        <>
          <div className="flex items-center gap-1.5 border-b border-line p-1.5">
            <input
              // biome-ignore lint/a11y/noAutofocus: the user has just asked for it.
              autoFocus
              role="combobox"
              aria-label="Find a saved reply"
              aria-expanded
              aria-controls={list}
              aria-activedescendant={replies[at] ? `${list}-${at}` : undefined}
              placeholder="Find a saved reply"
              value={wanted}
              onChange={(event) => {
                setWanted(event.target.value)
                setAt(0)
              }}
              onKeyDown={onKeyDown}
              className="h-9 min-w-0 flex-1 rounded-lg bg-transparent px-2 outline-none"
            />
            <Button size="small" kind="quiet" onClick={() => setNew(true)}>
              <Plus aria-hidden className="size-3.5" />
              New
            </Button>
          </div>
          <Failure error={query.error} />
          {replies.length === 0 && query.data && (
            <p className="px-3.5 py-3 text-muted">
              {query.data.saved_replies.length === 0
                ? 'No saved replies yet. Write one once, and insert it from then on.'
                : 'No saved reply contains these words.'}
            </p>
          )}
          <div
            id={list}
            role="listbox"
            aria-label="Saved replies"
            tabIndex={-1}
            className="min-h-0 overflow-y-auto p-1.5 empty:hidden"
          >
            {replies.map((reply, index) => (
              // biome-ignore lint/a11y/useKeyWithClickEvents: the combobox above has the keys.
              // biome-ignore lint/a11y/useFocusableInteractive: the combobox above keeps the focus.
              <div
                key={reply.id}
                id={`${list}-${index}`}
                role="option"
                aria-selected={index === at}
                onClick={() => onPick(reply.text)}
                onPointerMove={() => setAt(index)}
                className={`cursor-pointer rounded-lg px-2.5 py-1.5 ${index === at ? 'bg-hover' : ''}`}
              >
                <p className="truncate font-medium">
                  <ExactLine text={reply.title} />
                </p>
                <p className="truncate text-xs text-muted">
                  <ExactLine text={reply.text} />
                </p>
              </div>
            ))}
          </div>
        </>
      )}
    </div>
  )
}

interface NewReplyProps {
  workspace_id: string
  text: string
  onDone: () => void
}

function NewReply({ workspace_id, text: given, onDone }: NewReplyProps) {
  const [title, setTitle] = useState('')
  const [text, setText] = useState(given)
  const create = useChange('POST /w/{workspace_id}/saved_replies', ['saved_replies'])
  const fits =
    title.trim() !== '' && [...title].length <= 100 && text.trim() !== '' && [...text].length <= 4096
  return (
    <form
      className="grid gap-2 p-3"
      onSubmit={(event) => {
        event.preventDefault()
        if (fits && !create.isPending) {
          create.mutate({ params: { workspace_id }, body: { title, text } }, { onSuccess: onDone })
        }
      }}
    >
      <TextInput
        autoFocus
        id={undefined}
        aria-label="Title"
        placeholder="Title, such as Opening hours"
        value={title}
        onChange={(event) => setTitle(event.target.value)}
      />
      <textarea
        aria-label="Text of the reply"
        placeholder="Text"
        value={text}
        rows={4}
        dir="auto"
        onChange={(event) => setText(event.target.value)}
        className="w-full resize-none rounded-lg bg-surface px-3 py-2 text-sm ring-1 ring-inset ring-line-strong focus:outline-2 focus:-outline-offset-1 focus:outline-accent"
      />
      <Failure error={create.error} />
      <div className="flex justify-end gap-1.5">
        <Button size="small" kind="quiet" onClick={onDone}>
          Cancel
        </Button>
        <Button type="submit" size="small" kind="primary" busy={create.isPending} disabled={!fits}>
          Save reply
        </Button>
      </div>
    </form>
  )
}
