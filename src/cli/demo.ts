/**
 * The demo workspace that the first start makes: two sandbox accounts, and forty people with histories. Everything in it is
 * made up.
 */
import type { App } from '../app.ts'
import { createAccount } from '../capabilities/accounts/accounts.ts'
import { seedCampaign } from '../capabilities/campaigns/campaigns.ts'
import { addColumn, type NewColumn } from '../capabilities/columns/columns.ts'
import { markDemo, readDemo, setAllowed, setGates } from '../capabilities/gates/gates.ts'
import { createKey } from '../capabilities/keys/keys.ts'
import { addStages, type NewStage } from '../capabilities/pipeline/pipeline.ts'
import { createUser, makeSetupLink } from '../capabilities/users/users.ts'
import { createWorkspace, listWorkspaces } from '../capabilities/workspaces/workspaces.ts'
import { everydayScopes } from '../contract.ts'
import { exampleAccountId, exampleColumnId } from '../lib/examples.ts'
import type { DemoPeople } from '../platform/module.ts'

export interface Demo {
  readonly key: string
  /** The operator opens it to choose a password. */
  readonly setup_link: string
}

const peopleCount = 40
const accountNames = ['Sales', 'Support']
const stages: readonly NewStage[] = [
  { key: 'contacted', label: 'Contacted' },
  { key: 'qualified', label: 'Qualified' },
  { key: 'proposal', label: 'Proposal sent' },
  { key: 'won', label: 'Won', terminal: true },
  { key: 'lost', label: 'Lost', terminal: true },
]

const columns: readonly NewColumn[] = [
  {
    name: 'Plan',
    type: 'select',
    options: [
      { value: 'Starter', color: 'gray' },
      { value: 'Team', color: 'blue' },
      { value: 'Enterprise', color: 'purple' },
    ],
  },
  {
    name: 'Interests',
    type: 'multi_select',
    options: [
      { value: 'API', color: 'green' },
      { value: 'Campaigns', color: 'orange' },
      { value: 'Support', color: 'teal' },
    ],
  },
  { name: 'Deal size', type: 'number' },
  { name: 'Next step', type: 'date' },
  { name: 'Website', type: 'url' },
  { name: 'Decides', type: 'checkbox' },
  { name: 'Notes', type: 'text' },
]

/** How many people of the first account the demo's campaign writes to: the last ones, because README uses the first. */
const campaignPeople = 6

/** A running campaign, so that the demo has one to show. */
const campaign = {
  name: 'Welcome back',
  message_text: 'Hello {{name|there}}, we have something new for you. Shall I tell you more?',
  steps: [
    {
      branch: 'no_reply' as const,
      wait_hours: 24,
      variants: ['Did you have a moment to think about it?', 'Is there anything I can help with?'],
    },
  ],
}

/** Whether this database is a demo, or the next start may make it one. */
export async function isDemo(app: App): Promise<boolean> {
  const state = await readDemo(app.db)
  if (state !== undefined) return state !== 'declined'
  return (await listWorkspaces(app.db)).length === 0
}

/** False if the database is already in use, or if the first start declined the demo and the caller has not `asked` for it. */
export async function isDemoDue(app: App, asked = false): Promise<boolean> {
  const state = await readDemo(app.db)
  if (state === 'declined' && !asked) return false
  return state === 'begun' || (await listWorkspaces(app.db)).length === 0
}

/** Undefined if the database is already in use, or if the first start declined the demo and the caller has not `asked` for it. */
export async function makeDemo(
  app: App,
  { platform, demo, asked = false }: { platform: string; demo: DemoPeople; asked?: boolean },
): Promise<Demo | undefined> {
  if (!(await isDemoDue(app, asked))) return undefined
  // A start that was killed half-way has already used the ids of the examples.
  const fresh = (await readDemo(app.db)) !== 'begun'
  await markDemo(app, 'begun')
  const workspace = await createWorkspace(app, 'system', { name: 'Demo' })
  const user = await createUser(app, 'system', {
    email: 'operator@localhost',
    workspace_id: workspace.id,
    operator: true,
  })
  await app.db.transaction(async (tx) => {
    await addStages(tx, workspace.id, stages)
    for (const [at, column] of columns.entries()) {
      await addColumn(tx, workspace.id, column, fresh && at === 0 ? exampleColumnId : undefined)
    }
  })
  const people = demo.addPeople(peopleCount)
  for (const [at, name] of accountNames.entries()) {
    const account = await createAccount(app, 'system', {
      workspace_id: workspace.id,
      platform,
      name,
      ...(fresh && at === 0 && { id: exampleAccountId }),
    })
    const theirs = people.filter((_, person) => person % accountNames.length === at)
    demo.addAccount({ account_id: account.id, name }, theirs)
    if (at > 0) continue
    const contacts = theirs.slice(-campaignPeople).map((person) => ({ identifier: String(person) }))
    const caller = { workspace_id: workspace.id, user_id: user.id }
    await seedCampaign(app, caller, { ...campaign, account_id: account.id, contacts })
  }
  const { key } = await createKey(app, 'system', {
    workspace_id: workspace.id,
    user_id: user.id,
    name: 'demo key',
    scopes: everydayScopes,
  })
  const { setup_link } = await makeSetupLink(app, 'system', user.id)
  await setAllowed(app, 'system', { list: 'campaign_user', id: user.id, allowed: true })
  await setAllowed(app, 'system', { list: 'campaign_workspace', id: workspace.id, allowed: true })
  // Last: the API opens only when the demo is complete.
  await setGates(app, 'system', { names: ['all', 'extended'], enabled: true })
  await markDemo(app, 'done')
  return { key, setup_link }
}
