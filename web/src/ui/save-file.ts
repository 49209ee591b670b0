/** A browser may read the file only after the click has returned. */
const readMs = 60_000

/** Hands a file that the page has made to the browser's downloads. */
export function saveFile(name: string, text: string): void {
  const url = URL.createObjectURL(new Blob([text], { type: 'text/csv' }))
  const link = document.createElement('a')
  link.href = url
  link.download = name
  link.click()
  setTimeout(() => URL.revokeObjectURL(url), readMs)
}
