/** The first start on an empty embedded database: a workspace, an operator and a key to begin with. */
import type { App } from '../app.ts'
import { setGates } from '../capabilities/gates/gates.ts'
import { createKey } from '../capabilities/keys/keys.ts'
import { createUser } from '../capabilities/users/users.ts'
import { createWorkspace, listWorkspaces } from '../capabilities/workspaces/workspaces.ts'
import { scopes } from '../contract.ts'

export interface FirstRun {
  readonly key: string
  readonly workspace_id: string
}

/** Undefined when somebody was here before. */
export async function firstRun(app: App): Promise<FirstRun | undefined> {
  if ((await listWorkspaces(app.db)).length > 0) return undefined
  const workspace = await createWorkspace(app, 'system', { name: 'My workspace' })
  const user = await createUser(app, 'system', {
    email: 'operator@localhost',
    workspace_id: workspace.id,
    operator: true,
  })
  const { key } = await createKey(app, 'system', {
    workspace_id: workspace.id,
    user_id: user.id,
    name: 'first key',
    scopes,
  })
  await setGates(app, 'system', { names: ['rest'], enabled: true })
  return { key, workspace_id: workspace.id }
}
