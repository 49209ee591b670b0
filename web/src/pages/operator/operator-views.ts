/** The parts of the operators' page, as its address names them. */
import type { AuditFilter } from '../../data/operator.ts'

export const views = ['gates', 'sending', 'people', 'attention', 'audit', 'system'] as const
export type View = (typeof views)[number]

/** The address: the view, and the filters of the audit log. */
export interface OperatorSearch extends AuditFilter {
  view?: View
}
