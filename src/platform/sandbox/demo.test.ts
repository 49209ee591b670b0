import { expect, test } from 'vitest'
import { demoPeople } from './demo.ts'
import { openWorld } from './world.ts'

test('one person of the demo answers STOP, and the campaign of the first account writes to that person', async () => {
  const world = openWorld({ data_dir: null })
  const people = demoPeople(world).addPeople(40)
  const stopping = people.filter((id) => world.state.people.get(id)?.behaviour === 'stops')
  // As `cli/demo.ts` distributes them: every second person, and of those the last six.
  const contacts = people.filter((_, at) => at % 2 === 0).slice(-6)
  expect(stopping).toEqual([contacts[0]])
  await world.close()
})
