/** The people of the demo: who they are, what they said in the past, and who keeps writing. */
import { examplePerson } from '../../lib/examples.ts'
import type { DemoPeople } from '../module.ts'
import { conversations, exampleConversation, firstNames, lastNames, news } from './demo-texts.ts'
import { type Behaviour, draw } from './people.ts'
import { writeMessage } from './person-acts.ts'
import type { World } from './world.ts'

const behaviours: readonly Behaviour[] = [
  'replies',
  'reads',
  'replies',
  'silent',
  'reads',
  'replies',
  'blocks',
  'reads',
]

/** The only person who answers STOP: the first contact of the demo's campaign, so that the demo shows one opt-out. */
const stopsAt = 28

export function demoPeople(world: World): DemoPeople {
  return {
    addPeople: (count) =>
      Array.from({ length: count }, (_, at) => (at === 0 && addExample(world)) || addPerson(world, at)),
    addAccount({ account_id, name }, people) {
      world.addAccount({ account_id, name: `${name} at Demo` })
      for (const person_id of people) converse(world, account_id, person_id)
      world.addGroup({ account_id, name: `${name} team`, members: people.slice(0, 5) })
    },
    keepTalking: () => keepTalking(world),
  }
}

/** Undefined if an earlier start, killed before the demo was complete, already made them. */
function addExample(world: World): number | undefined {
  const { person_id, ...named } = examplePerson
  if (world.state.people.has(person_id)) return undefined
  return world.addPerson({ ...named, behaviour: 'replies', delay_seconds: 4 }, person_id).person_id
}

function addPerson(world: World, at: number): number {
  const first = firstNames[at % firstNames.length] ?? ''
  const last = lastNames[(at * 7) % lastNames.length] ?? ''
  const plain = `${first}_${last}`
    .normalize('NFKD')
    .replaceAll(/[^A-Za-z_]/g, '')
    .toLowerCase()
  const { person_id } = world.addPerson({
    name: `${first} ${last}`,
    ...(at % 5 !== 4 && { username: `${plain}_${world.state.last_person_id + 1}` }),
    // Numbers that no network assigns.
    ...(at % 3 === 0 && { phone: `+1555010${String(at).padStart(4, '0')}` }),
    behaviour: at === stopsAt ? 'stops' : behaviours[at % behaviours.length],
    delay_seconds: 4 + (at % 9) * 3,
  })
  return person_id
}

/** One conversation, dated backwards from some time in the last two months. */
function converse(world: World, account_id: string, person_id: number): void {
  const random = (n: number) => draw(world.seed + person_id, n)
  const lines = conversations[Math.floor(random(0) * conversations.length)] ?? []
  const some = lines.slice(0, 2 + Math.floor(random(1) * (lines.length - 1)))
  const said = person_id === examplePerson.person_id ? exampleConversation : some
  const ended = world.clock.now().getTime() - Math.floor(random(2) ** 3 * 60 * 86_400_000) - 60_000
  const gapMs = 20 * 60_000 + Math.floor(random(3) * 8 * 3_600_000)
  for (const [at, { ours, text }] of said.entries()) {
    world.seedMessage({
      account_id,
      chat_id: person_id,
      person_id: ours ? null : person_id,
      text,
      at: new Date(ended - (said.length - 1 - at) * gapMs),
    })
  }
}

const pauseMs = { least: 45_000, most: 240_000 }

/** Makes a person write now and then, so that an open demo stays alive. */
function keepTalking(world: World): { stop(): void } {
  let timer: NodeJS.Timeout
  const next = () => {
    timer = setTimeout(speak, pauseMs.least + Math.random() * (pauseMs.most - pauseMs.least)).unref()
  }
  const speak = () => {
    const chats = [...world.state.accounts.values()].flatMap(({ account_id, boxes }) =>
      [...boxes.keys()].filter((chat_id) => chat_id > 0).map((person_id) => ({ account_id, person_id })),
    )
    const chat = chats[Math.floor(Math.random() * chats.length)]
    const text = news[Math.floor(Math.random() * news.length)]
    try {
      if (chat && text) writeMessage(world, { ...chat, text })
    } catch {
      // A sandbox that cannot write, for example on a full disk, must not end the service: the person writes another time.
    }
    next()
  }
  next()
  return { stop: () => clearTimeout(timer) }
}
