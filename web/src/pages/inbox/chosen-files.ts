/** Which files a draft takes: those that a person chose, pasted or dropped. */
import { fileBytesMax, filesMax } from '../../../../src/rules/limits.ts'

export interface RefusedFile {
  readonly name: string
  readonly size: number
  readonly why: string
}

/** What is a folder, and cannot be sent. */
export type Chosen = File | { readonly folder: string }

/** `had`: how many files the draft has. */
export function sortFiles(
  chosen: readonly Chosen[],
  had: number,
): { taken: readonly File[]; refused: readonly RefusedFile[] } {
  const taken: File[] = []
  const refused: RefusedFile[] = []
  for (const each of chosen) {
    const why = refusalOf(each, had + taken.length)
    if (why === undefined && each instanceof File) taken.push(each)
    else if (each instanceof File) refused.push({ name: each.name, size: each.size, why: why ?? '' })
    else refused.push({ name: each.folder, size: 0, why: why ?? '' })
  }
  return { taken, refused }
}

function refusalOf(chosen: Chosen, had: number): string | undefined {
  if (!(chosen instanceof File)) return 'This is a folder. Attach the files in it.'
  if (chosen.size === 0) return 'This file is empty.'
  if (chosen.size > fileBytesMax) return 'This file is larger than 25 MiB.'
  if (had >= filesMax) return `At most ${filesMax} files go at once. Send these first.` // guard: files of a draft counted
  return undefined
}

/** Spreadsheets and word processors put a picture beside the text that is meant. */
export function filesPasted({ files, types }: Pick<DataTransfer, 'files' | 'types'>): readonly File[] {
  const isText = types.includes('text/plain') && types.includes('text/html')
  return isText ? [] : [...files] // guard: a copied text is pasted as text
}

export function filesDropped({ items, files }: Pick<DataTransfer, 'items' | 'files'>): readonly Chosen[] {
  const entries = [...items].filter(({ kind }) => kind === 'file').map((item) => item.webkitGetAsEntry())
  return [...files].map((file, at) => (entries[at]?.isDirectory ? { folder: file.name } : file))
}

/** Whether what is dragged has files. Their names are not known before they are dropped. */
export const hasFiles = ({ types }: Pick<DataTransfer, 'types'>) => types.includes('Files')

export function sizeOf(bytes: number): string {
  if (bytes === 1) return '1 byte'
  const power = bytes < 1_000 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(bytes) / 3))
  const value = bytes / 1_000 ** power
  return `${power === 0 || value >= 100 ? Math.round(value) : value.toFixed(1)} ${units[power]}`
}

const units = ['bytes', 'kB', 'MB', 'GB']

interface Focusable<E> {
  readonly files: number
  /** Those that remove a file, then those that dismiss one that was not taken. */
  readonly buttons: readonly E[]
  /** Takes the focus once nothing is left to remove. */
  readonly field: E | null
}

/** What takes the focus as the file at this place goes; undefined: the next file takes the place, and has it. */
export function focusAfter<E>(at: number, { files, buttons, field }: Focusable<E>): E | null | undefined {
  const isLast = at === files - 1 || at === buttons.length - 1
  return isLast ? (buttons[at + 1] ?? buttons[at - 1] ?? field) : undefined // guard: the focus stays among the files
}
