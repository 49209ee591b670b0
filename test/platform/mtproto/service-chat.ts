/** The chat 777000, in which Telegram itself writes to an account. */
import { writeMessage } from '../../../src/platform/sandbox/person-acts.ts'
import type { World } from '../../../src/platform/sandbox/world.ts'

export const serviceId = 777000

export function writeFromTelegram(world: World, account_id: string, text: string): number {
  if (!world.state.people.has(serviceId)) world.addPerson({ name: 'Telegram', phone: '42777' }, serviceId)
  return writeMessage(world, { account_id, person_id: serviceId, text })
}
