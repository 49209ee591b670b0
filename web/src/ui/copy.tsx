/** A value to copy: shown whole, copied with one click, selected if the browser does not allow copying. */
import { Check, Copy } from 'lucide-react'
import { useEffect, useRef, useState } from 'react'
import { Button } from './button.tsx'
import { Notice } from './notice.tsx'

const shownMs = 2_000

function CopyButton({ text, label = 'Copy', kind = 'secondary', onCopied }: CopyProps) {
  const [said, setSaid] = useState('')
  useEffect(() => {
    if (!said) return
    const timer = setTimeout(() => setSaid(''), shownMs)
    return () => clearTimeout(timer)
  }, [said])
  const copy = async () => {
    const done = await navigator.clipboard?.writeText(text).then(
      () => true,
      () => false,
    )
    setSaid(done ? 'Copied' : 'Select it and copy')
    onCopied?.(done ?? false)
  }
  return (
    <Button kind={kind} size="small" onClick={() => void copy()}>
      {said === 'Copied' ? (
        <Check aria-hidden className="size-3.5" />
      ) : (
        <Copy aria-hidden className="size-3.5" />
      )}
      <span aria-live="polite">{said || label}</span>
    </Button>
  )
}

interface CopyProps {
  text: string
  label?: string
  kind?: 'primary' | 'secondary'
  onCopied?: (done: boolean) => void
}

interface ShownOnceProps {
  value: string
  label: string
  warning?: string
  /** The button that closes the dialog. */
  done: string
  onClose: () => void
}

/** The content of a sealed dialog: a secret that is never shown again. */
export function ShownOnce({ value, label, warning, done, onClose }: ShownOnceProps) {
  return (
    <div className="grid gap-5">
      <Secret value={value} label={label} />
      {warning && <Notice tone="warn">{warning}</Notice>}
      <div className="flex justify-end">
        <Button onClick={onClose}>{done}</Button>
      </div>
    </div>
  )
}

export const setupLinkWords =
  'It works once, for seven days, and is shown only now. Send it where only they will read it.'

export function SetupLink({ link, onClose }: { link: string; onClose: () => void }) {
  const address = new URL(link, location.origin).href
  return <ShownOnce value={address} label="Set-up link" done="I copied it" onClose={onClose} />
}

/** A secret that is shown only once. */
export function Secret({ value, label }: { value: string; label: string }) {
  const field = useRef<HTMLInputElement>(null)
  return (
    <div className="flex items-center gap-2 rounded-lg bg-sunken p-2 pl-3 ring-1 ring-inset ring-line">
      <input
        ref={field}
        readOnly
        value={value}
        aria-label={label}
        onFocus={(event) => event.target.select()}
        className="min-w-0 flex-1 bg-transparent font-mono text-sm outline-none"
      />
      <CopyButton text={value} kind="primary" onCopied={(done) => !done && field.current?.select()} />
    </div>
  )
}

/** Code with its own Copy button. Long lines wrap, so nothing scrolls sideways. */
export function Code({ text, label }: { text: string; label: string }) {
  return (
    <figure className="overflow-hidden rounded-lg bg-sunken ring-1 ring-inset ring-line">
      <figcaption className="flex items-center justify-between gap-3 border-b border-line py-1.5 pl-3.5 pr-1.5 text-xs text-muted">
        <span className="min-w-0 truncate">{label}</span>
        <CopyButton text={text} />
      </figcaption>
      <pre className="whitespace-pre-wrap p-3.5 font-mono text-xs leading-5 text-ink [overflow-wrap:anywhere]">
        {text}
      </pre>
    </figure>
  )
}
