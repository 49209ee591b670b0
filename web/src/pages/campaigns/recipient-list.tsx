/** The list of recipients, of which only the rows in sight exist. A row opens to its history. */
import { useQuery } from '@tanstack/react-query'
import { ChevronRight } from 'lucide-react'
import { useEffect, useRef } from 'react'
import { accountsQuery } from '../../data/accounts.ts'
import type { Campaign, Recipient, RecipientFilter } from '../../data/campaigns.ts'
import { Badge } from '../../ui/badge.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Face } from '../../ui/face.tsx'
import { Failure } from '../../ui/notice.tsx'
import { stateOf } from '../../ui/recipient-states.ts'
import { useRowWindow } from '../../ui/row-window.ts'
import { useKeys } from '../../ui/shortcuts.ts'
import { Late, Loading } from '../../ui/states.tsx'
import type { CampaignSearch, Go } from './campaign-search.ts'
import { stepName } from './campaign-words.ts'
import { RecipientHistory } from './recipient-history.tsx'
import { useRecipients } from './use-recipients.ts'

interface ListProps {
  filter: RecipientFilter
  steps: Campaign['steps']
  search: CampaignSearch
  go: Go
  place: React.RefObject<HTMLDivElement | null>
}

const rowPx = 44
const noRows: readonly Recipient[] = []
const idOf = ({ id }: Recipient) => id
const columns =
  'min-[761px]:grid-cols-[minmax(9rem,1.1fr)_minmax(4rem,0.6fr)_minmax(6rem,0.8fr)_5.5rem_minmax(0,2.4fr)]'

export function RecipientList({ filter, steps, search, go, place }: ListProps) {
  const { recipients, error, onView } = useRecipients(filter)
  const { data: accounts } = useQuery(accountsQuery(filter.workspace_id))
  const list = useRef<HTMLDivElement>(null)
  const count = recipients?.length ?? 0
  const { items, height, first, last, top, margin, show, measure } = useRowWindow({
    rows: recipients ?? noRows,
    keyOf: idOf,
    place,
    rowPx,
    overscan: 10,
    list,
  })
  useEffect(() => onView({ first, last }), [first, last, onView])
  useRowKeys(count, { first: top, onMove: show })
  const { recipient: open, ...closed } = search
  useKeys(open === undefined ? {} : { Escape: () => go(closed) })
  const nameOf = (id: string | null) => accounts?.accounts.find((each) => each.id === id)?.name
  return (
    <div ref={list} className="relative">
      {error && (
        <div className="px-4 pb-3">
          <Failure error={error} />
        </div>
      )}
      {!recipients && !error && (
        <Late>
          <div className="px-4 pb-3">
            <Loading />
          </div>
        </Late>
      )}
      <p role="status" className={recipients && count === 0 ? 'px-4 pb-4 text-muted' : 'sr-only'}>
        {recipients && count === 0 && 'No recipient fits.'}
      </p>
      {recipients && count > 0 && (
        <>
          <Head />
          <ul aria-label="Recipients" className="relative" style={{ height }}>
            {items.map(({ index, key, start }) => {
              const recipient = recipients[index]
              if (!recipient) return null
              return (
                <li
                  key={key}
                  ref={measure}
                  data-index={index}
                  aria-setsize={-1}
                  aria-posinset={index + 1}
                  className="absolute inset-x-0 border-t border-line"
                  style={{ transform: `translateY(${start - margin}px)` }}
                >
                  <Row
                    recipient={recipient}
                    index={index}
                    account={nameOf(recipient.account_id)}
                    open={recipient.id === open}
                    onToggle={() =>
                      go(recipient.id === open ? closed : { ...closed, recipient: recipient.id })
                    }
                  />
                  {recipient.id === open && (
                    <RecipientHistory
                      workspace_id={filter.workspace_id}
                      recipient={recipient}
                      steps={steps}
                      account={nameOf(recipient.account_id)}
                    />
                  )}
                </li>
              )
            })}
          </ul>
        </>
      )}
    </div>
  )
}

/** Above the columns; each row says the same to a screen reader in its own words. */
function Head() {
  return (
    <div
      aria-hidden
      className={`hidden h-8 items-center gap-x-3 px-4 text-xs font-medium text-muted min-[761px]:grid ${columns}`}
    >
      <span className="pl-6">Person</span>
      <span>From</span>
      <span>Next</span>
      <span>State</span>
      <span>Why not yet</span>
    </div>
  )
}

interface RowProps {
  recipient: Recipient
  index: number
  account: string | undefined
  open: boolean
  onToggle: () => void
}

const isGoingOn = ({ status }: Recipient) =>
  status === 'queued' || status === 'waiting' || status === 'submitting'

function Row({ recipient, index, account, open, onToggle }: RowProps) {
  const [tone, word] = stateOf(recipient)
  return (
    <button
      type="button"
      data-recipient={index}
      aria-expanded={open}
      onClick={onToggle}
      className={`grid min-h-11 w-full grid-cols-[minmax(0,1fr)_max-content] items-center gap-x-3 gap-y-0.5 px-4 py-1.5 text-left -outline-offset-2 hover:bg-hover ${columns}
        ${open ? 'bg-sunken' : ''}`}
    >
      <span className="flex min-w-0 items-center gap-2">
        <ChevronRight aria-hidden className={`size-4 shrink-0 text-muted ${open ? 'rotate-90' : ''}`} />
        <Face name={nameOf(recipient)} of={`${recipient.account_id}${recipient.chat_id}`} size="small" />
        <span className="min-w-0 truncate font-medium">
          <ExactLine text={nameOf(recipient)} empty="No name" cut />
        </span>
      </span>
      <span className="hidden truncate text-soft min-[761px]:block">
        <ExactLine text={account ?? ''} cut />
      </span>
      <span className="hidden truncate text-soft min-[761px]:block">
        {isGoingOn(recipient) && stepName(recipient.step, null, [])}
      </span>
      <span>
        <Badge tone={tone}>{word}</Badge>
      </span>
      <span className="col-span-2 min-w-0 text-soft max-[760px]:pl-6 max-[760px]:text-xs min-[761px]:col-span-1 min-[761px]:line-clamp-2">
        <ExactLine text={recipient.sentence} />
      </span>
    </button>
  )
}

const nameOf = ({ name, identifier }: Recipient) => name || identifier || ''

/** J and K move the focus from row to row, beginning with the first in sight. */
function useRowKeys(
  count: number,
  { first, onMove }: { first: number; onMove: (index: number) => void },
): void {
  const step = (by: number) => {
    const at = document.activeElement?.getAttribute('data-recipient')
    const next = at === null || at === undefined ? first : Math.min(count - 1, Math.max(0, Number(at) + by))
    onMove(next)
    // After the list has rendered the row.
    requestAnimationFrame(() =>
      document.querySelector<HTMLElement>(`[data-recipient="${next}"]`)?.focus({ preventScroll: true }),
    )
  }
  useKeys({ j: () => step(1), k: () => step(-1) })
}
