/** The answer to a chat that is being written, with its files. */
import type { ChatRef } from '../../data/chats.ts'
import { useSession } from '../../data/place.ts'
import { placeOf } from '../../data/sending.ts'
import { type KeptPlace, useKept } from '../../data/use-kept.ts'
import { type Chosen, type RefusedFile, sortFiles } from './chosen-files.ts'

const same = (text: string) => text

interface AnswerDraft extends KeptPlace<string> {
  /** Adds files; returns those that it does not take. */
  readonly attach: (chosen: readonly Chosen[]) => readonly RefusedFile[]
  readonly removeFile: (file: File) => void
}

export function useAnswer(chat: ChatRef): AnswerDraft {
  const { user } = useSession()
  const { workspace_id } = chat
  const draft = useKept({ user_id: user.id, workspace_id, kind: 'chat', of: placeOf(chat) }, '')
  const attach = (chosen: readonly Chosen[]) => {
    const { taken, refused } = sortFiles(chosen, draft.shown.get().kept.files.length)
    if (taken.length > 0) draft.change(same, (before) => [...before, ...taken])
    return refused
  }
  const removeFile = (file: File) => draft.change(same, (before) => before.filter((each) => each !== file))
  return { ...draft, attach, removeFile }
}
