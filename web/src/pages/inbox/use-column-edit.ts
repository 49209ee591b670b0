/** The value of one column of a chat while it is edited: it stays in its field until the service has it. */
import { useQueryClient } from '@tanstack/react-query'
import { useEffect, useState } from 'react'
import type { Column } from '../../data/api-types.ts'
import { setColumn } from '../../data/chat-changes.ts'
import { type ChatRef, chatQuery } from '../../data/chats.ts'
import { isAsking } from '../../data/in-turn.ts'
import { useSession } from '../../data/place.ts'
import { placeOf } from '../../data/sending.ts'
import { useKept } from '../../data/use-kept.ts'

type Value = readonly string[]

/** What is wanted, and the value that it replaces. */
interface Edit {
  readonly to: Value
  readonly from: Value
}

export interface ColumnOfChat {
  readonly chat: ChatRef
  readonly column: Column
  readonly value: Value
}

export interface ColumnEdit {
  /** Undefined: as the service has it. */
  readonly to: Value | undefined
  readonly isLoaded: boolean
  readonly isSaving: boolean
  /** Why the service did not take it. */
  readonly failure: unknown
  /** What another user has changed it to meanwhile. */
  readonly other: Value | undefined
  readonly set: (to: Value) => void
  readonly save: () => Promise<void>
  /** Sets and saves it at once. */
  readonly choose: (to: Value) => Promise<void>
  readonly overwrite: () => Promise<void>
  readonly close: () => void
}

/** Several options have no order. */
const isSame = (one: Value, other: Value) =>
  one.length === other.length && one.every((each) => other.includes(each))

const trim = (to: Value) => to.map((each) => each.trim()).filter((each) => each !== '')

export function useColumnEdit({ chat, column, value }: ColumnOfChat): ColumnEdit {
  const { user } = useSession()
  const { workspace_id } = chat
  const of = `${placeOf(chat)} ${column.id}`
  const { kept, isLoaded, change, discard, shown } = useKept<Edit | null>(
    { user_id: user.id, workspace_id, kind: 'column', of },
    null,
  )
  const edit = kept.value
  const [other, setOther] = useState<Value>()
  const [failure, setFailure] = useState<unknown>()
  const [saving, setSaving] = useState(0)
  const client = useQueryClient()
  // A value is typed, unless there are options.
  const wanted = (to: Value) => (column.options.length > 0 ? to : trim(to))
  const set = (to: Value) => change((before) => ({ to, from: before?.from ?? value }))
  const close = () => {
    setOther(undefined)
    setFailure(undefined)
    void discard()
  }
  const work = async (act: () => Promise<void>) => {
    setSaving((count) => count + 1)
    setOther(undefined)
    setFailure(undefined)
    try {
      await act()
    } catch (error) {
      // What the service cannot take stays in its field.
      setFailure(error)
    } finally {
      setSaving((count) => count - 1)
    }
  }
  const write = async () => {
    const asked = shown.get().kept
    if (!asked.value) return
    const { from, to } = asked.value
    const failed = await setColumn(chat, { column, from, to: wanted(to), keeps: true })
    // What is wanted by now has its own request.
    if (shown.get().kept !== asked) return
    if (failed === undefined) await discard(asked)
    else setFailure(failed)
  }
  const save = () =>
    work(async () => {
      const asked = shown.get().kept.value
      if (!asked || isSame(wanted(asked.to), asked.from)) return close()
      const { chat: now } = await client.fetchQuery({ ...chatQuery(chat), staleTime: 0 })
      const stored = now.columns.find(({ column_id }) => column_id === column.id)?.value ?? []
      if (isSame(stored, wanted(asked.to))) return close()
      if (!isSame(stored, asked.from)) return setOther(stored)
      await write()
    })
  const isSaving = saving > 0
  const isDone = edit !== null && !isSame(edit.from, value) && isSame(wanted(edit.to), value)
  useEffect(() => {
    // The service had it before the page was reloaded. While it is asked, the page shows what it may refuse.
    if (isDone && !isSaving && !isAsking(placeOf(chat))) void discard()
  }, [isDone, isSaving, discard, chat])
  return {
    to: isDone ? undefined : edit?.to,
    isLoaded,
    isSaving,
    failure,
    other,
    set,
    save,
    choose: (to) => {
      set(to)
      return work(write)
    },
    overwrite: () => work(write),
    close,
  }
}
