import { expect, test } from 'vitest'
import { setScene } from '../data-centre-fixture.ts'
import { askCentre } from '../sandbox-fixture.ts'

test('400 for an existing account, or the phone number of one', async () => {
  const { world, stage, account_id } = await setScene()
  const ask = askCentre(stage.centre)
  const phone = '+9996620001'
  await ask('addAccount', { account_id: 'acc_two', name: 'Support', phone })
  const before = world.counts()
  const again: object[] = [
    { account_id, name: 'Sales desk' },
    { account_id: 'acc_three', name: 'Third', phone: '9996620001' },
    { account_id: 'acc_three', name: 'Third', phone: 'x' },
  ]
  for (const input of again) {
    await expect(ask('addAccount', input)).rejects.toMatchObject({ code: 'invalid_request' })
  }
  expect(world.counts()).toEqual(before)
})
