/** The saved replies: find one, insert it, or save the current text as a new one. */

import { useQuery } from '@tanstack/react-query'
import { Plus } from 'lucide-react'
import { useState } from 'react'
import { savedReplyTitleMax, textMax } from '../../../src/rules/limits.ts'
import { lengthOf } from '../../../src/rules/text.ts'
import { savedRepliesQuery } from '../data/chats.ts'
import { useSession } from '../data/place.ts'
import { useChange } from '../data/queries.ts'
import { shown, useKept } from '../data/use-kept.ts'
import { Button } from './button.tsx'
import { ExactLine } from './exact-text.tsx'
import { Finder } from './finder.tsx'
import { TextInput } from './form.tsx'
import { Failure } from './notice.tsx'

export interface SavedRepliesProps {
  workspace_id: string
  /** What is in the composer, to save as a reply. */
  text: string
  /** Opens below its place instead of above, where the text is. */
  below?: boolean
  onPick: (text: string) => void
  onClose: () => void
}

const shownMax = 50

export function SavedRepliesPanel({ workspace_id, text, below = false, onPick, onClose }: SavedRepliesProps) {
  const query = useQuery(savedRepliesQuery(workspace_id))
  const [wanted, setWanted] = useState('')
  const [isNew, setNew] = useState(false)
  const words = wanted.toLowerCase().trim()
  const replies = (query.data?.saved_replies ?? [])
    .filter((reply) => `${reply.title} ${reply.text}`.toLowerCase().includes(words))
    .slice(0, shownMax)
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
        <Finder
          autoFocus
          label="Find a saved reply"
          placeholder="Find a saved reply"
          text={wanted}
          onFind={setWanted}
          fieldClass="m-1.5 h-9 rounded-lg px-2"
          beside={
            <Button size="small" kind="quiet" className="mr-1.5" onClick={() => setNew(true)}>
              <Plus aria-hidden className="size-3.5" />
              New
            </Button>
          }
          note={
            <>
              <Failure error={query.error} />
              {replies.length === 0 && query.data && (
                <p className="px-3.5 py-3 text-muted">
                  {query.data.saved_replies.length === 0
                    ? 'No saved replies yet. Write one once, and insert it from then on.'
                    : 'No saved reply contains these words.'}
                </p>
              )}
            </>
          }
          listLabel="Saved replies"
          items={replies}
          keyOf={({ id }) => id}
          itemClass="py-1.5"
          onChoose={(reply) => onPick(reply.text)}
        >
          {(reply) => (
            <>
              <p className="truncate font-medium">
                <ExactLine text={reply.title} cut />
              </p>
              <p className="truncate text-xs text-muted">
                <ExactLine text={reply.text} cut />
              </p>
            </>
          )}
        </Finder>
      )}
    </div>
  )
}

/** Only what was typed: the text begins with that of the composer. */
interface NewReplyText {
  readonly title?: string
  readonly text?: string
}

interface NewReplyProps {
  workspace_id: string
  text: string
  onDone: () => void
}

function NewReply({ workspace_id, text: given, onDone }: NewReplyProps) {
  const { user } = useSession()
  const place = { user_id: user.id, workspace_id, kind: 'reply', of: 'new' } as const
  const { kept, change, discard } = useKept<NewReplyText>(place, {})
  const { title = '', text = given } = kept.value
  const create = useChange('POST /w/{workspace_id}/saved_replies', ['saved_replies'])
  const fits =
    title.trim() !== '' &&
    lengthOf(title) <= savedReplyTitleMax &&
    text.trim() !== '' &&
    lengthOf(text) <= textMax
  return (
    <form
      className="grid gap-2 p-3"
      onSubmit={(event) => {
        event.preventDefault()
        if (fits && !create.isPending) {
          void create
            .mutateAsync({ params: { workspace_id }, body: { title, text } })
            .then(() => discard(kept).then(onDone), shown)
        }
      }}
    >
      <TextInput
        autoFocus
        aria-label="Title"
        placeholder="Title, such as Opening hours"
        value={title}
        onChange={(typed) => change((each) => ({ ...each, title: typed }))}
      />
      <textarea
        aria-label="Text of the reply"
        placeholder="Text"
        value={text}
        rows={4}
        dir="auto"
        onChange={(event) => {
          const typed = event.target.value
          change((each) => ({ ...each, text: typed }))
        }}
        className="w-full resize-none rounded-lg bg-surface px-3 py-2 text-sm ring-1 ring-inset ring-line-strong focus:outline-2 focus:-outline-offset-1 focus:outline-accent"
      />
      <Failure error={create.error} />
      <div className="flex justify-end gap-1.5">
        <Button size="small" kind="quiet" onClick={onDone}>
          Close
        </Button>
        <Button type="submit" size="small" kind="primary" busy={create.isPending} disabled={!fits}>
          {create.error ? 'Try again' : 'Save reply'}
        </Button>
      </div>
    </form>
  )
}
