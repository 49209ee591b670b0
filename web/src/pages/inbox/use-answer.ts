/** The answer to a chat that is being written, with its files. */
import { useState } from 'react'
import type { ChatRef } from '../../data/chats.ts'
import { type Keeper, keep } from '../../data/kept.ts'
import { useSession } from '../../data/place.ts'
import { placeOf } from '../../data/sending.ts'
import { type Chosen, type RefusedFile, sortFiles } from './chosen-files.ts'

const same = (text: string) => text

export interface Answer extends Keeper<string> {
  /** Adds files; returns those that it does not take. */
  readonly attach: (chosen: readonly Chosen[]) => readonly RefusedFile[]
  readonly removeFile: (file: File) => void
}

/** The one of an open chat: what shows it follows its `shown`, so that a letter renders no more than its field. */
export function useAnswer(chat: ChatRef): Answer {
  const { user } = useSession()
  const { workspace_id } = chat
  const [answer] = useState(() => {
    const draft = keep({ user_id: user.id, workspace_id, kind: 'chat', of: placeOf(chat) }, '')
    const attach = (chosen: readonly Chosen[]) => {
      const { taken, refused } = sortFiles(chosen, draft.shown.get().kept.files.length)
      if (taken.length > 0) draft.change(same, (before) => [...before, ...taken])
      return refused
    }
    const removeFile = (file: File) => draft.change(same, (before) => before.filter((each) => each !== file))
    return { ...draft, attach, removeFile }
  })
  return answer
}
