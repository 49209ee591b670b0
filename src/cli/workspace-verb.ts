/** A verb about one workspace, which must exist. */
import type { Command } from 'commander'
import type { App } from '../app.ts'
import type { Actor } from '../capabilities/audit/audit.ts'
import { requireWorkspace } from '../capabilities/workspaces/workspaces.ts'
import { workspaceHelp } from './help.ts'
import { type VerbNeeds, verb } from './verbs.ts'

export function workspaceVerb<O extends object>(
  parent: Command,
  usage: string,
  description: string,
  act: (
    app: App,
    actor: Actor,
    asked: { readonly workspace_id: string; readonly options: O },
    ...args: string[]
  ) => Promise<object>,
  needs: VerbNeeds = {},
): Command {
  const inWorkspace = async (
    app: App,
    actor: Actor,
    options: O & { workspace: string },
    ...args: string[]
  ) => {
    const { id } = await requireWorkspace(app.db, options.workspace)
    return act(app, actor, { workspace_id: id, options }, ...args)
  }
  return verb(parent, usage, description, inWorkspace, needs).requiredOption(
    '--workspace <id>',
    workspaceHelp,
  )
}
