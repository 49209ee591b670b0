/** Where tests keep a PostgreSQL: in memory if there is enough, so that no test waits for a disk flush. */
import { mkdtemp, statfs } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const memory = '/dev/shm'
const bytesMin = 4 * 1024 ** 3

export async function makeScratch(prefix: string): Promise<string> {
  const { bavail, bsize } = await statfs(memory).catch(() => ({ bavail: 0, bsize: 0 }))
  return mkdtemp(join(bavail * bsize >= bytesMin ? memory : tmpdir(), prefix))
}
