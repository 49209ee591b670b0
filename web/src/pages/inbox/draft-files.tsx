/** The files of an answer that is being written: what each is, and why it is not taken or was not sent. */
import { FileText, ImageOff, TriangleAlert, X } from 'lucide-react'
import { type RefObject, useCallback, useRef, useState } from 'react'
import { ExactLine } from '../../ui/exact-text.tsx'
import { IconButton } from '../../ui/icon-button.tsx'
import { focusAfter, type RefusedFile, sizeOf } from './chosen-files.ts'

interface DraftFilesProps {
  files: readonly File[]
  refused: readonly RefusedFile[]
  /** Why the service did not take the first of them. */
  failure: string | undefined
  onRemove: (file: File) => void
  onDismiss: (refused: RefusedFile) => void
  /** Takes the focus once nothing is left to remove. */
  field: RefObject<HTMLElement | null>
}

export function DraftFiles({ files, refused, failure, onRemove, onDismiss, field }: DraftFilesProps) {
  const list = useRef<HTMLUListElement>(null)
  const remove = (at: number, act: () => void) => {
    const buttons = [...(list.current?.querySelectorAll('button') ?? [])]
    focusAfter(at, { files: files.length, buttons, field: field.current })?.focus()
    act()
  }
  return (
    <>
      <p role="status" className="sr-only">
        {files.length > 0 && `${files.length} ${files.length === 1 ? 'file' : 'files'} attached`}
      </p>
      {files.length + refused.length > 0 && (
        <ul
          ref={list}
          aria-label="Files"
          className="mx-2.5 mb-1 grid max-h-44 grid-cols-[repeat(auto-fill,minmax(10.5rem,1fr))] gap-1.5 overflow-y-auto p-0.5"
        >
          {files.map((file, at) => (
            <Row
              // biome-ignore lint/suspicious/noArrayIndexKey: two files may be alike, and the focus stays at its place.
              key={at}
              name={file.name}
              size={file.size}
              preview={<Preview file={file} />}
              why={at === 0 ? failure : undefined}
              onRemove={() => remove(at, () => onRemove(file))}
            />
          ))}
          {refused.map((each, at) => (
            <Row
              // biome-ignore lint/suspicious/noArrayIndexKey: see above.
              key={at}
              name={each.name}
              size={each.size}
              preview={<TriangleAlert aria-hidden className="size-4.5 text-danger" />}
              why={each.why}
              isRefused
              onRemove={() => remove(files.length + at, () => onDismiss(each))}
            />
          ))}
        </ul>
      )}
    </>
  )
}

interface RowProps {
  name: string
  size: number
  preview: React.ReactNode
  why: string | undefined
  isRefused?: boolean
  onRemove: () => void
}

function Row({ name, size, preview, why, isRefused = false, onRemove }: RowProps) {
  const label = name === '' ? 'the file' : name.slice(0, 80)
  return (
    <li
      ref={why === undefined ? undefined : showRow}
      className={`flex min-h-11 min-w-0 items-center forced-colors:border gap-2 rounded-lg py-1 pl-1.5 pr-1 ${why === undefined ? 'bg-sunken' : 'bg-danger-wash'}`}
    >
      <span className="grid size-9 shrink-0 place-items-center overflow-hidden rounded-md text-muted">
        {preview}
      </span>
      <span className="min-w-0 flex-1 text-xs">
        <span className="block truncate text-[13px] text-ink">
          <ExactLine text={name} empty="A file without a name" cut />
        </span>
        {why === undefined ? (
          <span className="text-muted">{sizeOf(size)}</span>
        ) : (
          <span role="alert" className="text-danger">
            {isRefused && 'Not attached. '}
            {why}
          </span>
        )}
      </span>
      <IconButton label={isRefused ? `Dismiss ${label}` : `Remove ${label}`} onClick={onRemove}>
        <X aria-hidden className="size-3.5" />
      </IconButton>
    </li>
  )
}

/** A sentence that appears below the last visible row is seen. */
const showRow = (row: HTMLLIElement | null) => row?.scrollIntoView({ block: 'nearest' })

/** Twice as many pixels as it is wide, for sharp screens. */
const previewPx = 72

/** A small picture of an image; of what the browser cannot draw, a sign. */
function Preview({ file }: { file: File }) {
  const [undrawn, setUndrawn] = useState<File>()
  const draw = useCallback(
    (canvas: HTMLCanvasElement | null) => {
      if (canvas) void drawImage(canvas, file).then((isDrawn) => !isDrawn && setUndrawn(file))
    },
    [file],
  )
  const isImage = /^image\//.test(file.type)
  if (!isImage || undrawn === file) {
    const Sign = isImage ? ImageOff : FileText
    return <Sign aria-hidden className="size-4.5" />
  }
  return <canvas ref={draw} aria-hidden width={previewPx} height={previewPx} className="size-full" />
}

/** Whether the browser can: some know no HEIC, and a picture may be damaged. */
async function drawImage(canvas: HTMLCanvasElement, file: File): Promise<boolean> {
  const image = await createImageBitmap(file, { resizeHeight: previewPx, resizeQuality: 'medium' }).catch(
    () => null,
  )
  if (!image) return false
  const side = Math.min(image.width, image.height)
  const context = canvas.getContext('2d')
  context?.clearRect(0, 0, previewPx, previewPx)
  context?.drawImage(
    image,
    (image.width - side) / 2,
    (image.height - side) / 2,
    side,
    side,
    0,
    0,
    previewPx,
    previewPx,
  )
  image.close()
  return true
}
