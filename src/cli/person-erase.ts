/** `parley person erase`: shows what an erasure would remove, and erases once that is confirmed. */
import type { Command } from 'commander'
import { previewErasure, requestErasure } from '../capabilities/erasing/erasing.ts'
import { requireWorkspace } from '../capabilities/workspaces/workspaces.ts'
import { workspaceHelp } from './help.ts'
import { verb } from './verbs.ts'

interface EraseOptions {
  readonly workspace: string
  readonly preview?: string
  readonly contactAllowed: boolean
}

export function addEraseVerb(person: Command): void {
  verb<EraseOptions>(
    person,
    'erase <id>',
    'erase a person; without --preview it only shows what would go and what stays',
    async (app, actor, { workspace, preview, contactAllowed: contact_allowed }, person_id = '') => {
      const { id: workspace_id } = await requireWorkspace(app.db, workspace)
      if (preview === undefined) return previewErasure(app.db, workspace_id, person_id)
      const wanted = { workspace_id, person_id, preview, contact_allowed }
      return app.db.transaction((tx) => requestErasure(app, tx, actor, wanted))
    },
  )
    .requiredOption('--workspace <id>', workspaceHelp)
    .option('--preview <hash>', 'erase what this preview has shown; it cannot be undone')
    .option(
      '--contact-allowed',
      'the person may be contacted again: the suppression list does not refuse them',
      false,
    )
    .addHelpText(
      'after',
      `
A worker removes what is stored of the person; the same command without --preview says how far it has come. Their number on the
platform stays, and that operations happened.`,
    )
}
