/**
 * Characters that are invisible, reverse the writing direction, or have no defined look: those that Unicode calls ignorable,
 * control, format, private or unassigned, the other line ends, and blank symbols.
 */
const hidden = String.raw`[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{16fe4}\u{13440}]`

/** Visible by their effect: line breaks and tabs, and within an emoji its style, the keycap sign and the joiner. */
const seen = [
  String.raw`[\n\t]`,
  String.raw`(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]`,
  String.raw`(?<=[0-9#*])\ufe0f(?=\u20e3)`,
  String.raw`(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})`,
]

const between = new RegExp(`(?!${seen.join('|')})(${hidden})`, 'u')

/** Splits the text: every second part is a single character to show as its code. */
export function splitHidden(text: string): string[] {
  return text.split(between)
}

/** In Unicode's notation, such as U+202E. */
export function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}
