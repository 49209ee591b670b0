/** A field that finds as one types. `/` focuses it; Enter and the arrow down lead to the first result. */
import { Search } from 'lucide-react'
import { type KeyboardEvent, useEffect, useEffectEvent, useState } from 'react'
import { Keys } from './key-cap.tsx'

/** A request waits until the user pauses. */
const pauseMs = 200

interface FindFieldProps {
  label: string
  placeholder?: string
  /** What is searched for now. */
  value: string | undefined
  /** The service refuses longer ones. */
  lengthMax: number
  onFind: (text: string | undefined) => void
  /** Selects the first result. */
  first?: string
  className: string
  inputClass?: string
}

export function FindField({ label, placeholder = label, lengthMax, first, ...props }: FindFieldProps) {
  const [text, setText] = useState(props.value ?? '')
  const wanted = text.trim()
  const find = useEffectEvent((words: string) => {
    if (words !== (props.value ?? '')) props.onFind(words === '' ? undefined : words)
  })
  useEffect(() => {
    const timer = setTimeout(() => find(wanted), pauseMs)
    return () => clearTimeout(timer)
  }, [wanted])
  const onKeyDown = (event: KeyboardEvent<HTMLInputElement>) => {
    if (first === undefined || event.nativeEvent.isComposing) return
    if (event.key === 'Escape') event.currentTarget.blur()
    if (event.key !== 'Enter' && event.key !== 'ArrowDown') return
    event.preventDefault()
    document.querySelector<HTMLElement>(first)?.focus()
  }
  return (
    <label
      className={`flex min-w-0 items-center gap-2 rounded-lg px-2.5 text-muted ring-1 ring-inset ring-line ${props.className}`}
    >
      <Search aria-hidden className="size-4 shrink-0" />
      <input
        data-find
        type="search"
        aria-label={label}
        placeholder={placeholder}
        maxLength={lengthMax}
        autoComplete="off"
        spellCheck={false}
        value={text}
        onChange={(event) => setText(event.target.value)}
        onKeyDown={onKeyDown}
        className={`min-w-0 flex-1 bg-transparent text-ink outline-none ${props.inputClass ?? ''}`}
      />
      <Keys keys="/" />
    </label>
  )
}
