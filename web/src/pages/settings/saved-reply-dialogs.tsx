/** Writes, changes and deletes a saved reply. */
import { useState } from 'react'
import { useChange } from '../../queries.ts'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { Field, Form, TextInput } from '../../ui/form.tsx'
import type { OpenReply, SavedReply } from './saved-replies-section.tsx'

interface DialogsProps {
  open: OpenReply | undefined
  workspace_id: string
  onClose: () => void
}

export function SavedReplyDialogs({ open, workspace_id, onClose }: DialogsProps) {
  const remove = useChange('DELETE /w/{workspace_id}/saved_replies/{saved_reply_id}', ['saved_replies'])
  const deleted = open?.what === 'delete' ? open.reply : undefined
  return (
    <>
      <Dialog
        open={open?.what === 'edit'}
        onClose={onClose}
        title={open?.what === 'edit' && open.reply ? 'Edit the reply' : 'New saved reply'}
      >
        {open?.what === 'edit' && (
          <ReplyForm reply={open.reply} workspace_id={workspace_id} onClose={onClose} />
        )}
      </Dialog>
      <Confirm
        open={deleted !== undefined}
        onClose={onClose}
        title="Delete this saved reply?"
        description="It is deleted for the whole team. This cannot be undone."
        phrase={deleted?.title ?? ''}
        action="Delete"
        busy={remove.isPending}
        error={remove.error}
        onConfirm={() =>
          deleted &&
          remove.mutate({ params: { workspace_id, saved_reply_id: deleted.id } }, { onSuccess: onClose })
        }
      />
    </>
  )
}

const titleMax = 100
const textMax = 4_096

interface ReplyFormProps {
  reply: SavedReply | null
  workspace_id: string
  onClose: () => void
}

function ReplyForm({ reply, workspace_id, onClose }: ReplyFormProps) {
  const create = useChange('POST /w/{workspace_id}/saved_replies', ['saved_replies'])
  const update = useChange('PATCH /w/{workspace_id}/saved_replies/{saved_reply_id}', ['saved_replies'])
  const [title, setTitle] = useState(reply?.title ?? '')
  const [text, setText] = useState(reply?.text ?? '')
  const body = { title: title.trim(), text: text.trim() }
  const fits =
    body.title !== '' &&
    [...body.title].length <= titleMax &&
    body.text !== '' &&
    [...body.text].length <= textMax
  const done = { onSuccess: onClose }
  return (
    <Form
      onSubmit={() =>
        reply
          ? update.mutate({ params: { workspace_id, saved_reply_id: reply.id }, body }, done)
          : create.mutate({ params: { workspace_id }, body }, done)
      }
      busy={create.isPending || update.isPending}
      error={create.error ?? update.error}
      action="Save reply"
      align="end"
      disabled={!fits}
    >
      <Field label="Title">
        <TextInput value={title} autoComplete="off" onChange={(event) => setTitle(event.target.value)} />
      </Field>
      <Field label="Text" help={`At most ${textMax.toLocaleString('en')} characters.`}>
        <ReplyText value={text} onChange={setText} />
      </Field>
    </Form>
  )
}

function ReplyText({ value, onChange }: { value: string; onChange: (value: string) => void }) {
  return (
    <textarea
      aria-label="Text"
      rows={6}
      value={value}
      onChange={(event) => onChange(event.target.value)}
      className="w-full rounded-lg bg-surface px-3 py-2 text-sm text-ink ring-1 ring-inset ring-line-strong hover:ring-muted focus:outline-2 focus:-outline-offset-1 focus:outline-accent"
    />
  )
}
