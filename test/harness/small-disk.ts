/** A disk that a test can fill: a small file system in memory, if this process may mount one. */
import { execFile } from 'node:child_process'
import { mkdtemp, open, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

interface SmallDisk {
  readonly path: string
  /** Leaves no byte free. */
  fill(): Promise<void>
  /** Frees the space again. */
  empty(): Promise<void>
  remove(): Promise<void>
}

/** Undefined if mounting is not allowed. */
export async function mountSmallDisk(megabytes: number): Promise<SmallDisk | undefined> {
  const path = await mkdtemp(join(tmpdir(), 'parley-disk-'))
  const options = `size=${megabytes}m,mode=0755`
  const mounted = await run('mount', ['-t', 'tmpfs', '-o', options, 'tmpfs', path]).then(
    () => true,
    () => false,
  )
  if (!mounted) {
    await rm(path, { recursive: true })
    return undefined
  }
  const filler = join(path, 'filler')
  return {
    path,
    async fill() {
      const file = await open(filler, 'a')
      // Smaller and smaller pieces, so that even the last page is full to the byte.
      for (const size of [64 * 1024, 1024, 1]) {
        const piece = Buffer.alloc(size)
        while (await file.write(piece).then(({ bytesWritten }) => bytesWritten === size, isFull));
      }
      await file.close()
    },
    empty: () => rm(filler, { force: true }),
    async remove() {
      await run('umount', ['-l', path])
      await rm(path, { recursive: true })
    },
  }
}

function isFull(error: NodeJS.ErrnoException): false {
  if (error.code === 'ENOSPC') return false
  throw error
}
