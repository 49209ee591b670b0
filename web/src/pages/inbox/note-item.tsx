/** A note: for the team only, in its place in time. */
import { useQueryClient } from '@tanstack/react-query'
import { Lock, Trash2 } from 'lucide-react'
import { type ChatRef, refreshChat, type TimelineNote } from '../../data/chats.ts'
import { useChange } from '../../data/queries.ts'
import { ExactLine, ExactText } from '../../ui/exact-text.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { Failure } from '../../ui/notice.tsx'
import { useClock } from '../../ui/time.tsx'

export function NoteItem({ note, chat }: { note: TimelineNote; chat: ChatRef }) {
  const { clock } = useClock()
  return (
    <article
      aria-label="Note"
      className="mb-1 mt-3 flex gap-2.25 self-stretch border-l-2 border-line-strong px-3 py-2 text-soft"
    >
      <Lock aria-hidden className="mt-0.75 size-3.5 shrink-0 text-muted" />
      <div className="min-w-0 flex-1">
        <p>
          <span className="font-medium text-ink">
            <ExactLine text={note.author.name} empty="A former member" />
          </span>{' '}
          <span className="text-muted">
            <time dateTime={note.at}>{clock(note.at)}</time>, a note for the team
          </span>
        </p>
        <div dir="auto">
          <ExactText text={note.text} />
        </div>
      </div>
      {note.deletable && <DeleteNote note={note} chat={chat} />}
    </article>
  )
}

export function DeleteNote({ note, chat }: { note: TimelineNote; chat: ChatRef }) {
  const client = useQueryClient()
  const remove = useChange('DELETE /w/{workspace_id}/notes/{note_id}', [])
  return (
    <>
      <IconButton
        label="Delete this note"
        onClick={() =>
          remove.mutate(
            { params: { workspace_id: chat.workspace_id, note_id: note.id } },
            { onSettled: () => refreshChat(client, chat) },
          )
        }
      >
        <Trash2 aria-hidden className="size-3.5" />
      </IconButton>
      <Failure error={remove.error} />
    </>
  )
}
