import { afterEach, expect, test, vi } from 'vitest'

afterEach(() => void vi.unstubAllGlobals())

test('a file that is dropped beside what takes files does not replace the page', async () => {
  const page = new EventTarget()
  const FileField = class {
    readonly type = 'file'
  }
  vi.stubGlobal('addEventListener', page.addEventListener.bind(page))
  vi.stubGlobal('HTMLInputElement', FileField)
  // By a name that the compiler does not follow: the service's own types know no browser.
  const path = './dropped-files.ts'
  const { keepPageOnDrop } = await import(path)
  keepPageOnDrop()
  const drop = (kind: string, { types = ['Files'], target = {}, taken = false } = {}) => {
    const dataTransfer = { types, dropEffect: 'copy' }
    const event = new Event(kind, { cancelable: true })
    Object.defineProperties(event, { target: { value: target }, dataTransfer: { value: dataTransfer } })
    if (taken) event.preventDefault()
    page.dispatchEvent(event)
    return [event.defaultPrevented, dataTransfer.dropEffect]
  }
  expect([drop('dragover'), drop('drop')]).toEqual([
    [true, 'none'],
    [true, 'none'],
  ])
  expect(drop('drop', { types: ['text/plain'] })).toEqual([false, 'copy'])
  expect(drop('drop', { target: new FileField() })).toEqual([false, 'copy'])
  // What takes files has taken it.
  expect(drop('drop', { taken: true })).toEqual([true, 'copy'])
})
