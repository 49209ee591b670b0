/** What a check of `parley doctor` reports. */

export interface Finding {
  readonly level: 'ok' | 'warning' | 'fault'
  /** What was found, as a sentence. It never holds a secret, a text, or the name of a person or a chat. */
  readonly found: string
  /** What the operator has to do; null if it is ok. */
  readonly todo: string | null
}

export const ok = (found: string): Finding => ({ level: 'ok', found, todo: null })
export const warning = (found: string, todo: string): Finding => ({ level: 'warning', found, todo })
export const fault = (found: string, todo: string): Finding => ({ level: 'fault', found, todo })

/** A row of a table of checks. It returns every problem, or one finding that says what is fine. */
export interface Check<Subject> {
  readonly name: string
  look(subject: Subject): Promise<Finding | readonly Finding[]>
}

/** Every problem, or else what is fine. */
export function orOk(problems: readonly Finding[], found: string): readonly Finding[] {
  return problems.length > 0 ? problems : [ok(found)]
}

const namedMax = 5

/** The first few of many names. */
export function some(names: readonly string[]): string {
  const rest = names.length - namedMax
  return names.slice(0, namedMax).join(', ') + (rest > 0 ? ` and ${rest} more` : '')
}

export function counted(count: number, one: string, many = `${one}s`): string {
  return count === 1 ? `1 ${one}` : `${count} ${many}`
}

export function mebibytes(bytes: number): string {
  return `${Math.floor(bytes / 1024 ** 2)} MiB`
}
