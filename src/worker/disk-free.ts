/** How much of the disk is free, for operators. */
import { statfs } from 'node:fs/promises'

/** Returns what the call before has read, so that a disk that hangs stops no heartbeat. Null: unknown yet. */
export function watchDisk(directory: string): () => number | null {
  let free: number | null = null
  return () => {
    void statfs(directory).then(
      ({ bavail, bsize }) => {
        free = bavail * bsize
      },
      () => {
        free = null
      },
    )
    return free
  }
}
