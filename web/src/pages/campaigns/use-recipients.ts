/** The recipients of a campaign page by page. Only the pages in view are read again when something changes. */
import { useQueries } from '@tanstack/react-query'
import { useMemo, useState } from 'react'
import {
  type Recipient,
  type RecipientFilter,
  type RecipientPage,
  recipientsQuery,
} from '../../data/campaigns.ts'
import { queryClient } from '../../data/queries.ts'

/** The rows that are rendered. */
interface RowsInView {
  readonly first: number
  readonly last: number
}

/** How many rows before the end of the list its next page is read. */
const nearEnd = 30

interface RecipientList {
  /** Undefined: the first page is not there yet. */
  readonly recipients: readonly Recipient[] | undefined
  readonly error: Error | null
  readonly onView: (rows: RowsInView) => void
}

/** For one filter: another filter is another list. */
export function useRecipients(filter: RecipientFilter): RecipientList {
  const [wanted, setWanted] = useState(1)
  const [inView, setInView] = useState<RowsInView>({ first: 0, last: 0 })
  const known = knownPages(filter, wanted)
  const { pages, error } = useQueries({
    queries: known.map(({ cursor, page, from }) => {
      const isInView = from <= inView.last && from + (page?.recipients.length ?? 0) >= inView.first
      return { ...recipientsQuery(filter, cursor), enabled: page === undefined || isInView }
    }),
    combine: (results) => ({
      pages: results.map(({ data }) => data),
      error: results.find((result) => result.error)?.error ?? null,
    }),
  })
  const loaded = useMemo(() => pages.flatMap((page) => page?.recipients ?? []), [pages])
  const hasMore = typeof pages.at(-1)?.next_cursor === 'string'
  const isNearEnd = inView.last >= loaded.length - nearEnd
  if (hasMore && isNearEnd && wanted !== known.length + 1) setWanted(known.length + 1)
  return { recipients: pages[0] && loaded, error, onView: setInView }
}

interface KnownPage {
  readonly cursor: string | undefined
  readonly page: RecipientPage | undefined
  /** The index of its first row. */
  readonly from: number
}

/**
 * Each page begins where the one before it ends. With a filter by status that place moves as recipients come and go; the page
 * then reads those after it again, so that it shows nobody twice and leaves nobody out.
 */
function knownPages(filter: RecipientFilter, wanted: number): KnownPage[] {
  const known: KnownPage[] = []
  let cursor: string | undefined
  let from = 0
  while (known.length < wanted) {
    const page = queryClient.getQueryData(recipientsQuery(filter, cursor).queryKey)
    known.push({ cursor, page, from })
    if (typeof page?.next_cursor !== 'string') break
    cursor = page.next_cursor
    from += page.recipients.length
  }
  return known
}
