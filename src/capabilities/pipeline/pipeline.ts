/** The stages that chats move through. */
import { sql, type Tx } from '../../db/sql.ts'

export interface NewStage {
  readonly key: string
  readonly label: string
  readonly terminal?: boolean
}

/** The stage every chat starts in. It cannot be hidden or deleted. */
export const defaultStage: NewStage = { key: 'new', label: 'New' }

/** Adds stages at the end, in this order. */
export async function addStages(tx: Tx, workspace_id: string, stages: readonly NewStage[]): Promise<void> {
  await tx.run(sql`
    insert into stages (workspace_id, key, label, terminal, position)
    select ${workspace_id}, key, label, terminal,
      place + coalesce((select max(position) from stages where workspace_id = ${workspace_id}), -1)
    from unnest(${stages.map(({ key }) => key)}::text[], ${stages.map(({ label }) => label)}::text[],
      ${stages.map(({ terminal = false }) => terminal)}::boolean[])
      with ordinality as stage (key, label, terminal, place)`)
}
