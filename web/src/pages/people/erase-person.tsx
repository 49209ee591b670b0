/** Erasing a person: the button, and how far it has come. For admins and owners. */
import { useQuery } from '@tanstack/react-query'
import { lazy, Suspense, useState } from 'react'
import { erasureQuery } from '../../data/people.ts'
import { Button } from '../../ui/button.tsx'
import { Notice } from '../../ui/notice.tsx'
import { Time } from '../../ui/time.tsx'
import type { EraseProps } from './erase-dialog.tsx'

const EraseDialog = lazy(async () => ({ default: (await import('./erase-dialog.tsx')).EraseDialog }))

export function ErasePerson({ workspace_id, person }: EraseProps) {
  const [isOpen, setOpen] = useState(false)
  const { data } = useQuery(erasureQuery(workspace_id, person.id))
  const isUnderWay = data?.erasure != null && data.erasure.state !== 'done'
  return (
    <>
      <Button size="small" kind="danger" disabled={isUnderWay} onClick={() => setOpen(true)}>
        Erase…
      </Button>
      {isOpen && (
        <Suspense>
          <EraseDialog workspace_id={workspace_id} person={person} onClose={() => setOpen(false)} />
        </Suspense>
      )}
    </>
  )
}

/** Above the page while an erasure runs, and afterwards that there was one. */
export function ErasureState({ workspace_id, person_id }: { workspace_id: string; person_id: string }) {
  const { data } = useQuery(erasureQuery(workspace_id, person_id))
  const erasure = data?.erasure
  if (!erasure) return null
  if (erasure.done_at !== null) {
    return (
      <Notice tone="good">
        This person was erased, <Time at={erasure.done_at} />. What is shown here came later, or stays.
      </Notice>
    )
  }
  const { cleared, total } = erasure
  const doneOfTotal = `${Math.min(cleared, total).toLocaleString('en')} of ${total.toLocaleString('en')}`
  return (
    <Notice
      tone="info"
      after={
        <progress
          aria-label="Cleared"
          value={Math.min(cleared, total)}
          max={Math.max(total, 1)}
          className="mt-1.5 h-1.5 w-full accent-accent"
        />
      }
    >
      This person is being erased: {doneOfTotal} messages and operations are cleared.
    </Notice>
  )
}
