/** A note for the team, written where answers are written, and never mistaken for one. */

import { useMutation, useQueryClient } from '@tanstack/react-query'
import { Lock } from 'lucide-react'
import { textMax } from '../../../../src/rules/limits.ts'
import { lengthOf } from '../../../../src/rules/text.ts'
import { ask } from '../../data/api.ts'
import { type ChatRef, refreshChat } from '../../data/chats.ts'
import { useSession } from '../../data/place.ts'
import { placeOf } from '../../data/sending.ts'
import { useKept } from '../../data/use-kept.ts'
import { Button } from '../../ui/button.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { Failure } from '../../ui/notice.tsx'

export function NoteForm({ chat, onClose }: { chat: ChatRef; onClose: () => void }) {
  const { user } = useSession()
  const { workspace_id, account_id, chat_id } = chat
  const { kept, change, discard } = useKept(
    { user_id: user.id, workspace_id, kind: 'note', of: placeOf(chat) },
    '',
  )
  const text = kept.value
  const client = useQueryClient()
  const add = useMutation({
    // The same key until the text changes: after a lost answer the note is not written twice.
    mutationFn: () =>
      ask(
        'POST /w/{workspace_id}/chats/{chat_id}/notes',
        { params: { workspace_id, chat_id }, body: { account_id, text } },
        { key: kept.key },
      ),
    onSuccess: async () => {
      await discard(kept)
      await refreshChat(client, chat)
      onClose()
    },
  })
  const length = lengthOf(text)
  const canAdd = text.trim() !== '' && length <= textMax && !add.isPending
  const submit = () => {
    if (canAdd) add.mutate()
  }
  return (
    <div className="mx-2 mb-2 mt-1 shrink-0 rounded-xl bg-warn-wash ring-1 ring-line-strong min-[761px]:mx-3.5 min-[761px]:mb-3.5 min-[761px]:mt-1.5">
      <p className="flex items-center gap-1.5 px-3.25 pt-2 text-xs text-soft">
        <Lock aria-hidden className="size-3.5" />A note for the team. The other side never sees it.
      </p>
      <textarea
        // biome-ignore lint/a11y/noAutofocus: the user has just asked to write here.
        autoFocus
        aria-label="Note for the team"
        value={text}
        rows={2}
        dir="auto"
        readOnly={add.isPending}
        onChange={(event) => {
          const typed = event.target.value
          change(() => typed)
        }}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
            event.preventDefault()
            submit()
          }
          if (event.key === 'Escape') onClose()
        }}
        className="field-sizing-content block max-h-48 min-h-13.5 w-full resize-none rounded-xl bg-transparent px-3.25 py-1.5 text-[14.5px]/[21px] outline-none"
      />
      {length > textMax && (
        <p role="alert" className="px-3.25 text-xs text-danger">
          {length} characters: a note has at most 4,096.
        </p>
      )}
      {add.error && (
        <div className="px-2.5">
          <Failure error={add.error} />
        </div>
      )}
      <div className="flex justify-end gap-1.5 px-1.5 pb-1.5">
        <Button kind="quiet" onClick={onClose}>
          Close
        </Button>
        <Button busy={add.isPending} disabled={!canAdd} onClick={submit}>
          {add.error ? 'Try again' : 'Add note'} <Keys keys="⌘↵" />
        </Button>
      </div>
    </div>
  )
}
