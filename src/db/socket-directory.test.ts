import { chmod, chown, mkdir, mkdtemp, readdir, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openSocketDirectory } from './socket-directory.ts'

const owner = process.getuid?.()
let root: string
let number = 0
const outside: string[] = []
beforeAll(async () => {
  root = await mkdtemp(join(tmpdir(), 'parley-socket-'))
})
afterAll(async () => {
  for (const directory of outside) await rm(directory, { recursive: true, force: true })
  await rm(root, { recursive: true, force: true })
})

/** A data directory whose path leaves room for the socket, or one whose path is too long. */
async function makeDirectory(depth: 'shallow' | 'deep'): Promise<string> {
  const directory = join(root, `${++number}`, depth === 'deep' ? 'd'.repeat(90) : '')
  await mkdir(directory, { recursive: true, mode: 0o700 })
  return directory.replace(/\/$/, '')
}

async function open(data_dir: string): Promise<string> {
  const directory = await openSocketDirectory(data_dir, owner)
  if (!directory.startsWith(data_dir)) outside.push(directory)
  return directory
}

describe('the folder of the socket', () => {
  test('is in the data directory if its path leaves room for it', async () => {
    const data_dir = await makeDirectory('shallow')
    expect(await open(data_dir)).toBe(join(data_dir, 'socket'))
    expect((await stat(join(data_dir, 'socket'))).mode & 0o777).toBe(0o700)
    expect(await open(data_dir)).toBe(join(data_dir, 'socket'))
  })

  test('has a name that cannot be guessed, and that the data directory stores', async () => {
    const [one, other] = [await makeDirectory('deep'), await makeDirectory('deep')]
    const [first, second] = [await open(one), await open(other)]
    expect(dirname(first)).toBe(tmpdir())
    expect(basename(first)).toMatch(/^parley-[0-9a-f]{32}$/)
    expect(first).not.toBe(second)
    expect(first.length).toBeLessThan(100)
    expect(await open(one)).toBe(first)
    // The last process to leave has removed it.
    await rm(first, { recursive: true })
    expect(await open(one)).toBe(first)
  })

  test('is another one for a copy of the data directory', async () => {
    const data_dir = await makeDirectory('deep')
    const first = await open(data_dir)
    await rename(data_dir, `${data_dir}e`)
    expect(await open(`${data_dir}e`)).not.toBe(first)
  })

  test('is the same for several processes that start at once', async () => {
    const data_dir = await makeDirectory('deep')
    const found = await Promise.all(Array.from({ length: 8 }, () => open(data_dir)))
    expect(new Set(found).size).toBe(1)
    expect(await readdir(data_dir)).toEqual(['socket.path'])
  })
})

describe.each(['shallow', 'deep'] as const)(
  'a folder in a %s data directory that is not ours alone',
  (depth) => {
    const refusals: Readonly<Record<string, (directory: string) => Promise<void>>> = {
      'it is a link': async (directory) => {
        const elsewhere = await mkdtemp(join(root, 'elsewhere-'))
        await symlink(elsewhere, directory)
      },
      'it is not a folder': (directory) => writeFile(directory, ''),
      'other users can enter it': async (directory) => {
        await mkdir(directory)
        await chmod(directory, 0o755)
      },
    }
    test.each(Object.entries(refusals))('is refused: %s', async (reason, make) => {
      const data_dir = await makeDirectory(depth)
      const directory = await open(data_dir)
      await rm(directory, { recursive: true })
      await make(directory)
      await expect(open(data_dir)).rejects.toThrow(`${reason}. Find out who created it, and remove it.`)
    })

    // Only root can create what belongs to another user.
    test.runIf(owner === 0)('is refused: it belongs to another user', async () => {
      const data_dir = await makeDirectory(depth)
      const directory = await open(data_dir)
      await chown(directory, 65_534, 65_534)
      await expect(open(data_dir)).rejects.toThrow('it belongs to another user')
    })
  },
)
