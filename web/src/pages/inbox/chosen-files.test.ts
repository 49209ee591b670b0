/** Which files a draft takes, and why it does not take the others. */
import { expect, test } from 'vitest'
import { fileBytesMax, filesMax } from '../../../../src/rules/limits.ts'

// By a name that the compiler does not follow: the service's own types know no browser.
const load = (path: string) => import(path)
const { sortFiles, filesPasted, filesDropped, focusAfter, sizeOf } = await load('./chosen-files.ts')

const fileOf = (name: string, size = 1) => {
  const file = new File(['x'], name)
  Object.defineProperty(file, 'size', { value: size })
  return file
}
const namesOf = (all: readonly { name: string }[]) => all.map(({ name }) => name)

test('files are taken in their order; an empty one, a large one and a folder say why not', () => {
  const { taken, refused } = sortFiles(
    [
      fileOf('b.png'),
      fileOf('empty.txt', 0),
      fileOf('a.png', fileBytesMax),
      fileOf('film.mov', fileBytesMax + 1),
      { folder: 'Pictures' },
    ],
    0,
  )
  expect(namesOf(taken)).toEqual(['b.png', 'a.png'])
  expect(refused).toEqual([
    { name: 'empty.txt', size: 0, why: 'This file is empty.' },
    { name: 'film.mov', size: fileBytesMax + 1, why: 'This file is larger than 25 MiB.' },
    { name: 'Pictures', size: 0, why: 'This is a folder. Attach the files in it.' },
  ])
})

test('a draft has at most ten files, with those that it had', () => {
  const chosen = Array.from({ length: 4 }, (_, n) => fileOf(`${n}.png`))
  const { taken, refused } = sortFiles(chosen, filesMax - 3)
  expect(namesOf(taken)).toEqual(['0.png', '1.png', '2.png'])
  expect(refused).toEqual([{ name: '3.png', size: 1, why: 'At most 10 files go at once. Send these first.' }])
})

test('a picture or file is pasted as one, and a copied text with a picture of it as text', () => {
  const files = [fileOf('image.png')]
  expect(filesPasted({ files, types: ['text/html', 'Files'] })).toEqual(files)
  expect(filesPasted({ files, types: ['text/plain', 'Files'] })).toEqual(files)
  expect(filesPasted({ files, types: ['text/plain', 'text/html', 'Files'] })).toEqual([])
})

test('a folder that is dropped is none of the files', () => {
  const files = [fileOf('a.png'), fileOf('Pictures', 4_096)]
  const items = [
    { kind: 'string', webkitGetAsEntry: () => null },
    { kind: 'file', webkitGetAsEntry: () => ({ isDirectory: false }) },
    { kind: 'file', webkitGetAsEntry: () => ({ isDirectory: true }) },
  ]
  expect(filesDropped({ files, items })).toEqual([files[0], { folder: 'Pictures' }])
})

test('a size has its unit', () => {
  expect([1, 999, 1_500, 250_000, fileBytesMax].map(sizeOf)).toEqual([
    '1 byte',
    '999 bytes',
    '1.5 kB',
    '250 kB',
    '26.2 MB',
  ])
})

test('a file that is removed leaves the focus to the next one, to the last of the others, and then to the text', () => {
  const field = 'text'
  // Two files, and one that was not taken.
  const buttons = ['remove first', 'remove second', 'dismiss']
  expect(focusAfter(0, { files: 2, buttons, field })).toBeUndefined()
  expect(focusAfter(1, { files: 2, buttons, field })).toBe('dismiss')
  expect(focusAfter(2, { files: 2, buttons, field })).toBe('remove second')
  expect(focusAfter(0, { files: 1, buttons: ['remove'], field })).toBe('text')
})
