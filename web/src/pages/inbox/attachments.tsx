/** Files of a message. Nothing loads before it is visible, and a file that is gone says so. */
import { Download, FileText, ImageOff } from 'lucide-react'
import { type ReactNode, useEffect, useRef, useState } from 'react'
import type { Attachment } from '../../data/api-types.ts'
import type { ChatRef, TimelineMessage } from '../../data/chats.ts'
import { ExactLine } from '../../ui/exact-text.tsx'
import { LazyDialog } from '../../ui/lazy-dialog.tsx'
import { sizeOf } from './chosen-files.ts'

interface AttachmentsProps {
  message: TimelineMessage
  chat: ChatRef
}

export function Attachments({ message, chat }: AttachmentsProps) {
  if (message.attachments.length === 0) return null
  return (
    <div className={`mb-1 grid gap-1 ${message.is_sender ? 'justify-items-end' : 'justify-items-start'}`}>
      {message.attachments.map((file) => (
        <OneFile key={file.index} file={file} url={urlOf(chat, message.id, file.index)} />
      ))}
    </div>
  )
}

function urlOf({ workspace_id, chat_id, account_id }: ChatRef, message_id: string, index: number): string {
  const path = [workspace_id, 'chats', chat_id, 'messages', message_id, 'attachments', String(index)]
  return `/dashboard/api/w/${path.map(encodeURIComponent).join('/')}?account_id=${encodeURIComponent(account_id)}`
}

interface FileProps {
  file: Attachment
  url: string
}

function OneFile({ file, url }: FileProps) {
  const [missing, setMissing] = useState<string>()
  const [isOpaque, setOpaque] = useState(false)
  if (missing !== undefined) return <Missing file={file} sentence={missing} />
  // It is there, but the browser cannot show it: it can still be saved.
  if (isOpaque) return <FileButton file={file} url={url} onMissing={setMissing} />
  const onError = () =>
    void explain(url).then((sentence) => (sentence === undefined ? setOpaque(true) : setMissing(sentence)))
  if (file.kind === 'photo' || file.kind === 'sticker')
    return <Photo file={file} url={url} onError={onError} />
  if (file.kind === 'voice') {
    return (
      // biome-ignore lint/a11y/useMediaCaption: messages have no captions.
      <audio
        controls
        preload="none"
        src={url}
        onError={onError}
        aria-label={`Voice message${secondsOf(file)}`}
        className="h-10 w-72 max-w-full"
      />
    )
  }
  if (file.kind === 'video') {
    return (
      // biome-ignore lint/a11y/useMediaCaption: messages have no captions.
      <video
        controls
        preload="none"
        src={url}
        onError={onError}
        aria-label={`Video${secondsOf(file)}`}
        style={{ aspectRatio: ratioOf(file) }}
        className="max-h-80 w-80 max-w-full rounded-xl bg-sunken"
      />
    )
  }
  return <FileButton file={file} url={url} onMissing={setMissing} />
}

const secondsOf = ({ seconds }: Attachment) =>
  seconds === undefined ? '' : `, ${seconds} ${seconds === 1 ? 'second' : 'seconds'}`
const ratioOf = ({ width, height }: Attachment) => (width && height ? `${width} / ${height}` : '4 / 3')

/** A thumbnail of known proportions, so that nothing moves when it arrives. */
function Photo({ file, url, onError }: FileProps & { onError: () => void }) {
  const [isOpen, setOpen] = useState(false)
  const isSticker = file.kind === 'sticker'
  const image = (
    // The box has its size before the picture arrives.
    <img
      src={url}
      alt={isSticker ? 'Sticker' : 'Photo'}
      onError={onError}
      className="size-full object-contain"
    />
  )
  const box = `block overflow-hidden rounded-xl bg-sunken ${isSticker ? 'w-32' : 'w-64'} max-h-80 max-w-full`
  const thumbnail = (
    <InSight className={box} ratio={ratioOf(file)}>
      {image}
    </InSight>
  )
  if (isSticker) return thumbnail
  return (
    <>
      <button
        type="button"
        aria-label="Open the photo"
        onClick={() => setOpen(true)}
        className="max-w-full rounded-xl"
      >
        {thumbnail}
      </button>
      <LazyDialog open={isOpen} onClose={() => setOpen(false)} title="Photo">
        <img src={url} alt="" className="max-h-[72dvh] w-full rounded-lg object-contain" />
        <p className="mt-3 flex justify-end">
          <a
            href={url}
            download={file.file_name}
            className="font-medium text-accent underline underline-offset-3"
          >
            Download, {sizeOf(file.size)}
          </a>
        </p>
      </LazyDialog>
    </>
  )
}

/** Renders its content, and so requests a picture, once it is visible. */
function InSight({ className, ratio, children }: { className: string; ratio: string; children: ReactNode }) {
  const place = useRef<HTMLSpanElement>(null)
  const [isSeen, setSeen] = useState(false)
  useEffect(() => {
    if (!place.current) return
    const observer = new IntersectionObserver(([entry]) => {
      if (!entry?.isIntersecting) return
      setSeen(true)
      observer.disconnect()
    })
    observer.observe(place.current)
    return () => observer.disconnect()
  }, [])
  return (
    <span ref={place} className={className} style={{ aspectRatio: ratio }}>
      {isSeen && children}
    </span>
  )
}

function FileButton({ file, url, onMissing }: FileProps & { onMissing: (sentence: string) => void }) {
  const save = async () => {
    const sentence = await explain(url)
    if (sentence !== undefined) return onMissing(sentence)
    const link = document.createElement('a')
    link.href = url
    link.download = file.file_name
    link.click()
  }
  return (
    <button
      type="button"
      onClick={() => void save()}
      className="flex w-72 max-w-full items-center gap-2.5 rounded-xl px-3 py-2 text-left ring-1 ring-inset ring-line hover:bg-hover"
    >
      <FileText aria-hidden className="size-4.5 shrink-0 text-muted" />
      <FileWords file={file} />
      <Download aria-hidden className="size-4 shrink-0 text-muted" />
      <span className="sr-only">Download</span>
    </button>
  )
}

function FileWords({ file, more }: { file: Attachment; more?: string }) {
  return (
    <span className="min-w-0 flex-1">
      <span className="block truncate font-medium text-ink">
        <ExactLine text={file.file_name} empty="A file without a name" cut />
      </span>
      <span className="block text-xs text-muted [overflow-wrap:anywhere]">
        {more ?? `${file.media_type.slice(0, 60)}, ${sizeOf(file.size)}`}
      </span>
    </span>
  )
}

function Missing({ file, sentence }: { file: Attachment; sentence: string }) {
  return (
    <p
      role="note"
      className="flex w-72 max-w-full items-center gap-2.5 rounded-xl px-3 py-2 ring-1 ring-inset ring-line"
    >
      <ImageOff aria-hidden className="size-4.5 shrink-0 text-muted" />
      <FileWords file={file} more={sentence} />
    </p>
  )
}

/** Why the file cannot be loaded, in the service's words; undefined if it can. */
async function explain(url: string): Promise<string | undefined> {
  const response = await fetch(url, { headers: { range: 'bytes=0-0' } }).catch(() => undefined)
  if (!response) return 'Parley cannot be reached.'
  if (response.ok) return undefined
  const body = (await response.json().catch(() => undefined)) as { error?: string } | undefined
  return body?.error ?? 'This file cannot be loaded right now.'
}
