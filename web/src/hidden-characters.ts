/**
 * Characters that cannot be seen, that turn the writing around, or of which nobody can say what they look like: whatever
 * Unicode calls ignorable, control, format, private or unassigned, the other line ends, and signs that are blank.
 */
const hidden = String.raw`[\p{C}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\u2800\u{16fe4}\u{13440}]`

/** Seen by what they do: line breaks and tabs, and inside of an emoji its style, the sign of a keycap, and the joiner. */
const seen = [
  String.raw`[\n\t]`,
  String.raw`(?<=\p{Extended_Pictographic})[\ufe0e\ufe0f]`,
  String.raw`(?<=[0-9#*])\ufe0f(?=\u20e3)`,
  String.raw`(?<=[\p{Extended_Pictographic}\p{Emoji_Modifier}\ufe0f])\u200d(?=\p{Extended_Pictographic})`,
]

const between = new RegExp(`(?!${seen.join('|')})(${hidden})`, 'u')

/** The text in parts: every second one is a single character that has to be shown as its code. */
export function splitHidden(text: string): string[] {
  return text.split(between)
}

/** As Unicode writes it, such as U+202E. */
export function codeOf(character: string): string {
  return `U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, '0')}`
}
