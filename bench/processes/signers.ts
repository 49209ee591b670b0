/** 200 people who sign in at the same time, in a process of their own: what answers take up here is not the service's. */
import { parseArgs } from 'node:util'

const { values } = parseArgs({
  options: { url: { type: 'string' }, password: { type: 'string' }, count: { type: 'string' } },
})
const { url = '', password = '', count = '0' } = values

async function signIn(at: number): Promise<number> {
  const answer = await fetch(`${url}/dashboard/api/sign-in`, {
    method: 'POST',
    headers: { origin: url, 'content-type': 'application/json' },
    body: JSON.stringify({ email: `person${at}@example.org`, password }),
  })
  await answer.arrayBuffer()
  return answer.status
}

const statuses = await Promise.all(Array.from({ length: Number(count) }, (_, at) => signIn(at)))
console.log(JSON.stringify(statuses))
