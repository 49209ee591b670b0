/**
 * People who sign in at the same time, in their own process, so that the memory of the answers does not count as the service's.
 * They stand for other machines, so the service gets the processor before them. A line of input says how many sign in at once;
 * a line of output has the statuses of their answers.
 */
import { getPriority, setPriority } from 'node:os'
import { createInterface } from 'node:readline'
import { parseArgs } from 'node:util'

const { values } = parseArgs({ options: { url: { type: 'string' }, password: { type: 'string' } } })
const { url = '', password = '' } = values

setPriority(Math.min(19, getPriority() + 10))

async function signIn(at: number): Promise<number> {
  const answer = await fetch(`${url}/dashboard/api/sign-in`, {
    method: 'POST',
    headers: {
      origin: url,
      'content-type': 'application/json',
      // Each from a different address, or they would share one address's attempts.
      'x-forwarded-for': `198.18.${at >> 8}.${at & 255}`,
    },
    body: JSON.stringify({ email: `person${at}@example.org`, password }),
  })
  await answer.arrayBuffer()
  return answer.status
}

for await (const count of createInterface({ input: process.stdin })) {
  const statuses = await Promise.all(Array.from({ length: Number(count) }, (_, at) => signIn(at)))
  console.log(JSON.stringify(statuses))
}
