/** Writes, changes and deletes a saved reply. */

import { savedReplyTitleMax, textMax } from '../../../../src/rules/limits.ts'
import { lengthOf } from '../../../../src/rules/text.ts'
import type { SavedReply } from '../../data/chats.ts'
import { useSession } from '../../data/place.ts'
import { useChange } from '../../data/queries.ts'
import { shown, useKept } from '../../data/use-kept.ts'
import { Confirm, Dialog } from '../../ui/dialog.tsx'
import { DiscardChanges, Field, Form, TextArea, TextField } from '../../ui/form.tsx'

/** Null: a new one. */
export type OpenReply = { what: 'edit'; reply: SavedReply | null } | { what: 'delete'; reply: SavedReply }

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
        change={remove}
        onConfirm={() =>
          deleted &&
          remove.mutate({ params: { workspace_id, saved_reply_id: deleted.id } }, { onSuccess: onClose })
        }
      />
    </>
  )
}

interface ReplyFormProps {
  reply: SavedReply | null
  workspace_id: string
  onClose: () => void
}

function ReplyForm({ reply, workspace_id, onClose }: ReplyFormProps) {
  const create = useChange('POST /w/{workspace_id}/saved_replies', ['saved_replies'])
  const update = useChange('PATCH /w/{workspace_id}/saved_replies/{saved_reply_id}', ['saved_replies'])
  const { user } = useSession()
  const place = { user_id: user.id, workspace_id, kind: 'reply', of: reply?.id ?? 'new' } as const
  const { kept, change, discard } = useKept<{ title?: string; text?: string }>(place, {})
  const { title = reply?.title ?? '', text = reply?.text ?? '' } = kept.value
  const body = { title: title.trim(), text: text.trim() }
  const fits =
    body.title !== '' &&
    lengthOf(body.title) <= savedReplyTitleMax &&
    body.text !== '' &&
    lengthOf(body.text) <= textMax
  const saving = reply ? update : create
  return (
    <Form
      onSubmit={() =>
        void (
          reply
            ? update.mutateAsync({ params: { workspace_id, saved_reply_id: reply.id }, body })
            : create.mutateAsync({ params: { workspace_id }, body })
        ).then(() => discard(kept).then(onClose), shown)
      }
      change={saving}
      action={saving.error ? 'Try again' : 'Save reply'}
      aside={<DiscardChanges of={kept.value} onDiscard={discard} />}
      disabled={!fits}
    >
      <TextField
        label="Title"
        value={title}
        onChange={(typed) => change((each) => ({ ...each, title: typed }))}
      />
      <Field label="Text" help={`At most ${textMax.toLocaleString('en')} characters.`}>
        <TextArea
          aria-label="Text"
          rows={6}
          value={text}
          onChange={(typed) => change((each) => ({ ...each, text: typed }))}
        />
      </Field>
    </Form>
  )
}
