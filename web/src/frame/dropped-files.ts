/** A file that is dropped beside what takes files never replaces the page. */

const isField = (target: EventTarget | null) => target instanceof HTMLInputElement && target.type === 'file'

/** Runs after what takes the file. */
function refuse(event: DragEvent): void {
  const { dataTransfer, target, defaultPrevented } = event
  if (defaultPrevented || isField(target) || !dataTransfer?.types.includes('Files')) return
  event.preventDefault() // guard: a dropped file leaves the page
  dataTransfer.dropEffect = 'none'
}

export function keepPageOnDrop(): void {
  addEventListener('dragover', refuse)
  addEventListener('drop', refuse)
}
