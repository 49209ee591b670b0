import { appendFile, mkdir, mkdtemp, open, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { beginErasures, erasureListIn, keepErasures, readErasures } from './erasure-list.ts'

let directory: string
let path: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'parley-erasures-'))
  path = erasureListIn(directory)
})
afterEach(() => rm(directory, { recursive: true, force: true }))

test('a list that has begun is there, and empty; one that has not is missing', async () => {
  expect(await readErasures(path)).toBeUndefined()
  await beginErasures(directory)
  expect(await readErasures(path)).toEqual({ erasures: [], damaged: 0 })
  expect((await stat(path)).mode & 0o777).toBe(0o600)
})

test('resolves once the lines are flushed, and then the directory that names the file', async () => {
  const file = await open(directory, 'r')
  const handles = Object.getPrototypeOf(file)
  await file.close()
  const flushed: string[] = []
  const spies = (['datasync', 'sync'] as const).map((name) => {
    const flush = handles[name]
    return vi.spyOn(handles, name).mockImplementation(async function (this: typeof file) {
      flushed.push((await this.stat()).isDirectory() ? 'directory' : await readFile(path, 'utf8'))
      return flush.call(this)
    })
  })
  try {
    await keepErasures(path, [{ id: 'a' }])
    expect(flushed).toEqual([expect.stringContaining('"id":"a"'), 'directory'])
  } finally {
    for (const spy of spies) spy.mockRestore()
  }
})

test('erasures are appended, by several processes at once, and each is read once', async () => {
  await Promise.all([keepErasures(path, [{ id: 'a' }, { id: 'b' }]), keepErasures(path, [{ id: 'c' }])])
  await keepErasures(path, [{ id: 'b' }])
  const { erasures, damaged } = (await readErasures(path)) ?? {}
  expect(erasures?.map(({ id }) => id).toSorted()).toEqual(['a', 'b', 'c'])
  expect(damaged).toBe(0)
})

test('a line that a crash cut off is no erasure, and the next one is read; a flipped one is counted', async () => {
  await keepErasures(path, [{ id: 'a' }])
  await appendFile(path, '{"id":"cut of')
  expect(await readErasures(path)).toEqual({ erasures: [{ id: 'a' }], damaged: 0 })
  await keepErasures(path, [{ id: 'b' }])
  await appendFile(path, '{"id":"flipped"} 00000000\n')
  expect(await readErasures(path)).toEqual({ erasures: [{ id: 'a' }, { id: 'b' }], damaged: 2 })
})

test('a list that cannot be read is not missing', async () => {
  await mkdir(path)
  await expect(readErasures(path)).rejects.toMatchObject({ code: 'EISDIR' })
})
