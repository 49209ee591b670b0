/** Shows how far long work has come: a bar at a terminal, otherwise a line at the end. */
export async function bar<T>(
  label: string,
  total: number,
  work: (tick: (by: number) => void) => Promise<T>,
): Promise<T> {
  const startedAt = performance.now()
  const seconds = () => Math.round((performance.now() - startedAt) / 1000)
  let done = 0
  let shownAt = 0
  const show = () => {
    const part = total === 0 ? 1 : Math.min(1, done / total)
    const filled = '█'.repeat(Math.round(part * 30)).padEnd(30, '░')
    process.stderr.write(`\r${label.padEnd(10)} ${filled} ${Math.floor(part * 100)} % ${seconds()} s`)
  }
  const result = await work((by) => {
    done += by
    if (!process.stderr.isTTY || performance.now() - shownAt < 200) return
    shownAt = performance.now()
    show()
  })
  done = total
  if (process.stderr.isTTY) {
    show()
    process.stderr.write('\n')
  } else console.log(`${label}: ${total.toLocaleString('en')} in ${seconds()} s`)
  return result
}
