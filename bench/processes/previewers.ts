/**
 * Callers that ask for the longest previews there can be, in a process of their own. They stand for other
 * machines, so they wait for the processor behind the service. A line of input says how many ask at once and for how many
 * milliseconds, and a line of output has the statuses that they were answered.
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

/** Each has another text, so that none is answered out of a play that is kept. */
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
