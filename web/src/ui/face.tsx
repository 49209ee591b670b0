/** A person or chat as a circle with initials, and the colours that people choose for stages and options. */

const tones = ['teal', 'purple', 'orange', 'blue', 'pink', 'green'] as const

/** Each colour as a whole class name, so that the build finds it. */
const colours: Readonly<Record<string, string>> = {
  gray: '[--c:var(--tag-gray)]',
  blue: '[--c:var(--tag-blue)]',
  purple: '[--c:var(--tag-purple)]',
  pink: '[--c:var(--tag-pink)]',
  red: '[--c:var(--tag-red)]',
  orange: '[--c:var(--tag-orange)]',
  yellow: '[--c:var(--tag-yellow)]',
  green: '[--c:var(--tag-green)]',
  teal: '[--c:var(--tag-teal)]',
}

export function colourClass(name: string | null | undefined): string {
  return colours[name ?? 'gray'] ?? '[--c:var(--tag-gray)]'
}

const sizes = { small: 'size-6.5 text-[10.5px]', normal: 'size-9 text-xs', large: 'size-13 text-[17px]' }

/** `of` decides the colour, so that the same chat always has the same one. */
export function Face({ name, of, size = 'normal' }: { name: string; of: string; size?: keyof typeof sizes }) {
  let hash = 0
  for (let at = 0; at < of.length; at++) hash = (hash * 31 + of.charCodeAt(at)) >>> 0
  return (
    <span
      aria-hidden
      className={`grid shrink-0 place-items-center overflow-hidden rounded-full bg-[color-mix(in_oklab,var(--c)_16%,var(--surface))] font-semibold
        text-(--c) ${sizes[size]} ${colourClass(tones[hash % tones.length])}`}
    >
      {initialsOf(name)}
    </span>
  )
}

function initialsOf(name: string): string {
  const words = name.slice(0, 200).match(/[\p{L}\p{N}]+/gu) ?? []
  const letters = words.length > 1 ? [words[0], words.at(-1)] : words.slice(0, 1)
  return letters.map((word) => [...(word ?? '')][0]?.toUpperCase() ?? '').join('') || '?'
}

/** A stage or an option in its colour. */
export function Tag({ colour, children }: { colour: string | null | undefined; children: string }) {
  return (
    <span
      className={`inline-flex h-5.5 max-w-full items-center truncate rounded-[5px] bg-[color-mix(in_oklab,var(--c)_13%,var(--surface))] px-1.5
        text-xs font-medium text-(--c) ${colourClass(colour)}`}
    >
      <bdi className="truncate">{children}</bdi>
    </span>
  )
}
