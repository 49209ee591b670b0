/** What this browser remembers about how its user works. */

const name = 'parley.answering-marks-read'

/** On unless it was switched off. */
export function answeringMarksRead(): boolean {
  return localStorage.getItem(name) !== 'off'
}

export function setAnsweringMarksRead(on: boolean): void {
  localStorage.setItem(name, on ? 'on' : 'off')
}
