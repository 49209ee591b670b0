/** What the address of the page says. */
export interface PipelineSearch {
  view?: 'table'
  /** Only chats of this account. */
  account?: string
  /** Only chats with `value` in this column. */
  column?: string
  value?: string
  /** The stage that the table, or a narrow board, shows. */
  stage?: string
  /** What an admin edits. */
  edit?: 'stages' | 'columns'
}

export type Go = (search: PipelineSearch) => void
