/**
 * Callers that request the longest possible previews, in their own process. They stand for other machines, so the service gets
 * the processor before them. A line of input says how many call at once and for how many milliseconds; a line of output has the
 * statuses of their answers.
 */
import { getPriority, setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { url: { type: 'string' }, key: { type: 'string' }, account: { type: 'string' } },
})
const { url = '', key = '', account = '' } = values

setPriority(Math.min(19, getPriority() + 10))

const contacts = Array.from({ length: 5_000 }, (_, at) => ({ identifier: `@person_${at}` }))
const steps = Array.from({ length: 5 }, () => ({ branch: 'no_reply', wait_hours: 24, variants: ['Again'] }))

/** Each has a different text, so that no cached play answers it. */
function bodyOf(number: number): string {
  const message_text = `Hello {{name|you}}, this is number ${number}`
  return JSON.stringify({ message_text, daily_quota_per_account: 1, account_id: account, contacts, steps })
}

let asked = 0

async function askAlways(until: number): Promise<number[]> {
  const statuses: number[] = []
  do {
    const answer = await fetch(`${url}/api/v1/campaigns/preview`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      body: bodyOf(++asked),
    })
    await answer.arrayBuffer()
    statuses.push(answer.status)
  } while (performance.now() < until)
  return statuses
}

for await (const line of createInterface({ input: process.stdin })) {
  const [callers = 0, ms = 0] = line.split(' ').map(Number)
  const until = performance.now() + ms
  const all = await Promise.all(Array.from({ length: callers }, () => askAlways(until)))
  console.log(JSON.stringify(all.flat()))
}
