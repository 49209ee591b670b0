/** At a terminal, says what is in progress once it takes longer than a second. Writes to stderr: stdout is for results. */
const waitMs = 1_000

export async function withProgress<T>(label: string, work: Promise<T>): Promise<T> {
  if (!process.stderr.isTTY) return work
  const startedAt = performance.now()
  const show = () => {
    const seconds = Math.floor((performance.now() - startedAt) / 1000)
    if (seconds > 0) process.stderr.write(`\r\x1b[K${label}… ${seconds} s`)
  }
  const timer = setInterval(show, waitMs)
  try {
    return await work
  } finally {
    clearInterval(timer)
    if (performance.now() - startedAt > waitMs) process.stderr.write('\r\x1b[K')
  }
}
