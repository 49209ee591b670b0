/** A note for the team, written where answers are written, and never mistaken for one. */
import { useQueryClient } from '@tanstack/react-query'
import { Lock } from 'lucide-react'
import { useState } from 'react'
import { useChange } from '../../queries.ts'
import { Button } from '../../ui/button.tsx'
import { Keys } from '../../ui/key-cap.tsx'
import { Failure } from '../../ui/notice.tsx'
import { type ChatRef, refreshChat } from './inbox-queries.ts'

const noteMax = 4096

export function NoteForm({ chat, onClose }: { chat: ChatRef; onClose: () => void }) {
  const [text, setText] = useState('')
  const client = useQueryClient()
  const add = useChange('POST /w/{workspace_id}/chats/{chat_id}/notes', [])
  const { workspace_id, account_id, chat_id } = chat
  const length = [...text].length
  const canAdd = text.trim() !== '' && length <= noteMax && !add.isPending
  const submit = () => {
    if (!canAdd) return
    add.mutate(
      { params: { workspace_id, chat_id }, body: { account_id, text } },
      {
        onSuccess: async () => {
          await refreshChat(client, chat)
          onClose()
        },
      },
    )
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
        onChange={(event) => setText(event.target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter' && (event.metaKey || event.ctrlKey)) {
            event.preventDefault()
            submit()
          }
          if (event.key === 'Escape') onClose()
        }}
        className="field-sizing-content block max-h-48 min-h-13.5 w-full resize-none rounded-xl bg-transparent px-3.25 py-1.5 text-[14.5px]/[21px] outline-none"
      />
      {length > noteMax && (
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
        <Button kind="quiet" className="!h-11 min-[761px]:!h-8" onClick={onClose}>
          Cancel
        </Button>
        <Button className="!h-11 min-[761px]:!h-8" busy={add.isPending} disabled={!canAdd} onClick={submit}>
          Add note <Keys keys="⌘↵" />
        </Button>
      </div>
    </div>
  )
}
