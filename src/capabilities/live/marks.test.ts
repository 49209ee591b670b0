/** Pages also receive marks of changes that no page requested: updates, outcomes, accounts, agents, campaigns. */
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { callerOf, routeOf } from '../../../test/harness/agents.ts'
import { signIn } from '../../../test/harness/person.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import type { Tenant } from '../../../test/harness/service.ts'
import { type OpenStream, openStream } from '../../../test/harness/stream.ts'
import { openWorkplace, type Workplace } from '../../../test/harness/worker.ts'
import { setAccountEnabled } from '../accounts/accounts.ts'
import { performApproved } from '../approvals/approvals.ts'

let place: Workplace
let tenant: Tenant
let stream: OpenStream
let account_id: string
let chat_id: string
beforeAll(async () => {
  place = await openWorkplace()
  tenant = await place.service.tenant()
  await place.work()
  account_id = await place.connected(tenant)
  const person_id = place.person()
  chat_id = `platform:chat:${person_id}`
  place.write(account_id, person_id, 'hello')
  await place.untilStored(account_id, 1)
  stream = await openStream(place.service, await signIn(place.service, tenant.user_id))
})
afterAll(async () => {
  stream.close()
  await place.close()
})

describe('a page learns', () => {
  test('that a person wrote', async () => {
    const person_id = place.person('Otto')
    place.write(account_id, person_id, 'a secret text')
    const mark = await stream.received({ kind: 'messages', chat_id: `platform:chat:${person_id}` })
    const { workspace_id } = tenant
    expect(mark).toEqual({
      workspace_id,
      kind: 'messages',
      account_id,
      chat_id: `platform:chat:${person_id}`,
    })
    expect(JSON.stringify(stream.marks)).not.toMatch(/secret|Otto/)
  })

  test('that a person asked to stop, so that an open suppression list shows it', async () => {
    place.write(account_id, place.person('Opal'), 'Stop')
    const { workspace_id } = tenant
    expect(await stream.received({ kind: 'suppressions' })).toEqual({ workspace_id, kind: 'suppressions' })
  })

  test('how a send ended, also one of another caller', async () => {
    // The route's own mark says the same, so the send is refused before it marks anything.
    place.fault({ on: 'send', fault: 'refuse', error: 'blocked_by_person', account_id })
    const body = { account_id, chat_id, text: 'hi' }
    const answer = await place.service.post('/messages', {
      key: tenant.key,
      body,
      headers: { 'idempotency-key': 'one' },
    })
    expect(answer.status).toBeGreaterThanOrEqual(400)
    await stream.received({ kind: 'operations', account_id, chat_id })
  })

  test('that an operator disabled an account', async () => {
    const marks = () =>
      stream.marks.filter((mark) => mark.kind === 'accounts' && mark.account_id === account_id)
    const before = marks().length
    await setAccountEnabled(place.service.app, 'system', { id: account_id, enabled: false })
    await until('the mark arrives', hangMs, () => marks().length > before)
    await setAccountEnabled(place.service.app, 'system', { id: account_id, enabled: true })
    await place.untilStatus(account_id, 'READY')
  })

  test("that an agent with the user's key waits for an approval, and other users do not", async () => {
    await place.untilStatus(account_id, 'READY')
    await place.service.settle()
    const colleague = await place.service.tenant('Other')
    const other = await openStream(place.service, await signIn(place.service, colleague.user_id))
    const input = { account_id, chat_id, text: 'may I?' }
    const asked = { input, approval_token: undefined, client_name: undefined, base_url: 'http://localhost' }
    await until('the account is live', hangMs, async () => {
      const reply = await performApproved(
        place.service.app,
        routeOf('send_message'),
        callerOf(tenant),
        asked,
      ).catch(() => undefined)
      return reply?.status === 403
    })
    const { user_id } = tenant
    expect(await stream.received({ kind: 'approvals' })).toEqual({
      workspace_id: null,
      kind: 'approvals',
      user_id,
    })
    place.service.app.wake.mark({ workspace_id: null, kind: 'gates' })
    await other.received({ kind: 'gates' })
    expect(other.marks.map(({ kind }) => kind)).toEqual(['gates'])
    other.close()
  })
})
