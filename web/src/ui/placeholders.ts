/** Placeholders while a user writes: how they are inserted and replaced, and what is wrong with a text. Pure. */
import { textMax } from '../../../src/rules/limits.ts'
import {
  findPlaceholders,
  forms,
  type Placeholder,
  type PlaceholderForm,
  parseTemplate,
  type Values,
  type Word,
} from '../../../src/rules/placeholders.ts'
import { isWellFormed, lengthOf } from '../../../src/rules/text.ts'

export function placeholder(form: PlaceholderForm, word: Word, fallback?: string): string {
  const { open, close } = forms[form]
  return `${open}${word}${fallback === undefined ? '' : `|${fallback}`}${close}`
}

/** The text with every placeholder replaced. */
export function replacePlaceholders(
  text: string,
  form: PlaceholderForm,
  by: (found: Placeholder) => string,
): string {
  let [out, from] = ['', 0]
  for (const found of findPlaceholders(text, form).known) {
    out += text.slice(from, found.index) + by(found)
    from = found.index + found.whole.length
  }
  return out + text.slice(from)
}

/** The same text in the other form. A word that the other form lacks stays, and is then an error at the field. */
export function toForm(text: string, form: PlaceholderForm): string {
  const other = form === 'brackets' ? 'braces' : 'brackets'
  return replacePlaceholders(text, other, ({ word, fallback }) => placeholder(form, word, fallback))
}

/** What would be refused of a text, for the people who would get it. */
export function faultOfText(
  text: string,
  form: PlaceholderForm,
  people: readonly Values[],
): string | undefined {
  const { unknown } = findPlaceholders(text, form)
  if (unknown !== undefined) {
    const known = forms[form].words.map((word) => placeholder(form, word))
    return `${unknown.slice(0, 60)} is not a placeholder here. Use ${known.join(' or ')}.`
  }
  if (!isWellFormed(text)) return 'The text has a character that cannot be sent.'
  const { length, name } = longestFor(text, form, people)
  if (length <= textMax) return undefined
  const whose = name === null ? '' : ` with the name “${[...name].slice(0, 40).join('')}”`
  return `${length.toLocaleString('en')} characters${whose}: a message has at most ${textMax.toLocaleString('en')}.`
}

/** The length of the text for the recipient with the longest values, and that recipient's name. */
function longestFor(text: string, form: PlaceholderForm, people: readonly Values[]) {
  const { parts, text_length } = parseTemplate(text, form)
  const filled = parts.filter((part) => typeof part === 'object')
  let longest = { length: text_length, name: null as string | null }
  if (filled.length === 0) return longest
  for (const person of people) {
    const length = filled.reduce(
      (sum, { word, fallback }) => sum + lengthOf(person[word]?.trim() || (fallback ?? '')),
      text_length,
    )
    if (length > longest.length) longest = { length, name: person.name }
  }
  return longest
}
