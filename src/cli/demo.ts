/**
 * The demo workspace of the first start: two sandbox accounts, forty people with histories, and some who go on
 * writing. Everything in it is made up.
 */
import type { App } from '../app.ts'
import { createAccount } from '../capabilities/accounts/accounts.ts'
import { addColumn } from '../capabilities/columns/columns.ts'
import { markDemo, readDemo, setAllowed, setGates } from '../capabilities/gates/gates.ts'
import { createKey } from '../capabilities/keys/keys.ts'
import { addStages } from '../capabilities/pipeline/pipeline.ts'
import { createUser, makeSetupToken } from '../capabilities/users/users.ts'
import { createWorkspace, listWorkspaces } from '../capabilities/workspaces/workspaces.ts'
import { scopes } from '../contract.ts'
import { type Behaviour, draw } from '../platform/sandbox/people.ts'
import { writeMessage } from '../platform/sandbox/person-acts.ts'
import type { World } from '../platform/sandbox/world.ts'
import { columns, conversations, firstNames, lastNames, news, stages } from './demo-texts.ts'

export interface Demo {
  readonly key: string
  readonly setup_token: string
}

const peopleCount = 40
const accountNames = ['Sales', 'Support']
const behaviours: readonly Behaviour[] = [
  'replies',
  'reads',
  'replies',
  'silent',
  'stops',
  'replies',
  'blocks',
  'reads',
]

/** Undefined when somebody was here before. */
export async function makeDemo(app: App, world: World): Promise<Demo | undefined> {
  const cutOff = (await readDemo(app.db)) === 'begun'
  if (!cutOff && (await listWorkspaces(app.db)).length > 0) return undefined
  await markDemo(app, 'begun')
  const workspace = await createWorkspace(app, 'system', { name: 'Demo' })
  const user = await createUser(app, 'system', {
    email: 'operator@localhost',
    workspace_id: workspace.id,
    operator: true,
  })
  await app.db.transaction(async (tx) => {
    await addStages(tx, workspace.id, stages)
    for (const column of columns) await addColumn(tx, workspace.id, column)
  })
  const people = Array.from({ length: peopleCount }, (_, at) => addPerson(world, at))
  for (const [at, name] of accountNames.entries()) {
    const account = await createAccount(app, 'system', {
      workspace_id: workspace.id,
      platform: 'sandbox',
      name,
    })
    world.addAccount({ account_id: account.id, name: `${name} at Demo` })
    const theirs = people.filter((_, person) => person % accountNames.length === at)
    for (const person_id of theirs) converse(world, account.id, person_id)
    world.addGroup({ account_id: account.id, name: `${name} team`, members: theirs.slice(0, 5) })
  }
  const { key } = await createKey(app, 'system', {
    workspace_id: workspace.id,
    user_id: user.id,
    name: 'demo key',
    scopes,
  })
  await setAllowed(app, 'system', { list: 'campaign_user', id: user.id, allowed: true })
  await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace.id, allowed: true })
  const setup_token = await makeSetupToken(app, 'system', user.id)
  // Last: the API opens once everything behind it is there.
  await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
  await markDemo(app, 'done')
  return { key, setup_token }
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
    // Numbers that no network gives out.
    ...(at % 3 === 0 && { phone: `+1555010${String(at).padStart(4, '0')}` }),
    behaviour: behaviours[at % behaviours.length],
    delay_seconds: 4 + (at % 9) * 3,
  })
  return person_id
}

/** One conversation, told backwards from some time in the last two months. */
function converse(world: World, account_id: string, person_id: number): void {
  const random = (n: number) => draw(world.seed + person_id, n)
  const lines = conversations[Math.floor(random(0) * conversations.length)] ?? []
  const said = lines.slice(0, 2 + Math.floor(random(1) * (lines.length - 1)))
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

/** Somebody writes now and then, so that a demo that is left open stays alive. */
export function keepTalking(world: World): { stop(): void } {
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
    if (chat && text) writeMessage(world, { ...chat, text })
    next()
  }
  next()
  return { stop: () => clearTimeout(timer) }
}
