/** What the address of the page says. */
import type { SuppressionFilter } from '../../data/suppressions.ts'

export interface SuppressionSearch extends SuppressionFilter {
  open?: 'add' | 'import'
}

export type Go = (search: SuppressionSearch) => void
