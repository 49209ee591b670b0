/** Which data directories are not trusted: another user could have put the secret or the database there. */
import { execFile } from 'node:child_process'
import { chmod, chown, lchown, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { mountSmallDisk } from '../../test/harness/small-disk.ts'
import { openDataDirectory } from './data-directory.ts'
import { layOut } from './embedded-cluster.ts'
import { keepSecret } from './secret-file.ts'

let data_dir: string
beforeEach(async () => {
  data_dir = await mkdtemp(join(tmpdir(), 'parley-directory-'))
})
afterEach(async () => {
  vi.restoreAllMocks()
  await rm(data_dir, { recursive: true, force: true })
})

const secret = 'a secret for tests that is long enough'

test.each(['777', '1777', '703'])(
  'refuses a directory of mode %s, which every user may write to, and changes nothing in it',
  async (mode) => {
    await chmod(data_dir, Number.parseInt(mode, 8))
    await expect(layOut(data_dir)).rejects.toThrow(
      `Every user of this machine can write to the data directory ${data_dir}. Run \`chmod o-w ${data_dir}\``,
    )
    expect(await readdir(data_dir)).toEqual([])
  },
)

test('accepts a directory that a group may write to', async () => {
  await chmod(data_dir, 0o775)
  expect(await layOut(data_dir)).toMatchObject({ data_dir })
})

test('creates nothing with `existing` where there is no cluster', async () => {
  const missing = join(data_dir, 'missing')
  for (const directory of [missing, data_dir]) {
    await expect(layOut(directory, { existing: true })).rejects.toThrow(`There is no Parley in ${directory}.`)
  }
  expect(await readdir(data_dir)).toEqual([])
})

const disk = await mountSmallDisk(1)
afterAll(() => disk?.remove())

test.runIf(disk !== undefined)(
  'a data directory on a disk that is read-only is not called full',
  async () => {
    await promisify(execFile)('mount', ['-o', 'remount,ro', disk?.path ?? ''])
    for (const directory of [join(disk?.path ?? '', 'data'), join(disk?.path ?? '', 'deep', 'data')]) {
      await expect(openDataDirectory(directory)).rejects.toThrow(
        `The disk of the data directory ${directory} is read-only. Mount it for writing,`,
      )
    }
  },
)

describe('a secret of another user', () => {
  const another = 12_345
  const root = process.getuid?.() === 0

  test('makes the directory refused, before anything is created in it', async () => {
    const file = join(data_dir, 'secret')
    await writeFile(file, secret, { mode: 0o600 })
    const { uid } = root ? { uid: another } : await stat(file)
    // Only root can give a file to another user. A test without root runs as another user than the file's.
    if (root) await chown(file, another, another)
    else vi.spyOn(process, 'getuid').mockReturnValue(another)
    await expect(layOut(data_dir)).rejects.toThrow(
      `${file} belongs to another user of this machine (uid ${uid}), who can change it.`,
    )
    expect(await readdir(data_dir)).toEqual(['secret'])
  })

  test.runIf(root)(
    'is not read through a link of our own, and a link of theirs is not followed',
    async () => {
      const [theirs, ours] = [join(data_dir, 'theirs'), join(data_dir, 'ours')]
      for (const file of [theirs, ours]) await writeFile(file, secret, { mode: 0o600 })
      await chown(theirs, another, another)
      await symlink(theirs, join(data_dir, 'postgres.password'))
      await expect(keepSecret(join(data_dir, 'postgres.password'))).rejects.toThrow('belongs to another user')
      await symlink(ours, join(data_dir, 'linked'))
      expect(await keepSecret(join(data_dir, 'linked'))).toBe(secret)
      await lchown(join(data_dir, 'linked'), another, another)
      await expect(keepSecret(join(data_dir, 'linked'))).rejects.toThrow('belongs to another user')
    },
  )
})
