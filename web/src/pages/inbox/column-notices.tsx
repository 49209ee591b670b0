/** Below the value of a column: why the service does not have it yet, and what to do. */
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Failure } from '../../ui/notice.tsx'
import type { ColumnEdit } from './use-column-edit.ts'

interface NoticesProps {
  edit: ColumnEdit
  /** Says so of a value that nothing is under way for, such as after a reload; what is being typed needs no such line. */
  chosen?: boolean
}

export function ColumnNotices({ edit, chosen = false }: NoticesProps) {
  const { to, isLoaded, isSaving, failure, other, save, overwrite, close } = edit
  if (other !== undefined) {
    return (
      <span role="alert" className="grid gap-1 rounded-md bg-warn-wash p-1.5 text-xs">
        <span>
          Meanwhile changed to <ExactLine text={other.join(', ')} empty="empty" />.
        </span>
        <span className="flex flex-wrap gap-1">
          <Button size="small" onClick={() => void overwrite()}>
            Overwrite
          </Button>
          <Button size="small" kind="quiet" onClick={close}>
            Keep theirs
          </Button>
        </span>
      </span>
    )
  }
  const isUnsaved = chosen && isLoaded && !isSaving && to !== undefined
  if (failure === undefined && !isUnsaved) return null
  return (
    <span className="grid gap-1 text-xs">
      {failure === undefined ? (
        <span role="status">This is not saved yet.</span>
      ) : (
        <Failure error={failure} />
      )}
      <span className="flex flex-wrap gap-1">
        <Button size="small" onClick={() => void save()}>
          Try again
        </Button>
        <Button size="small" kind="quiet" onClick={close}>
          Discard
        </Button>
      </span>
    </span>
  )
}
