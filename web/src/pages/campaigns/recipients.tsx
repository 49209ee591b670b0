/** The recipients: by status and name, each with its state and why it gets no message now. */
import type { Campaign, CampaignRef, RecipientStatus } from '../../data/campaigns.ts'
import { FindField } from '../../ui/find-field.tsx'
import { KeyHelp } from '../../ui/key-help.tsx'
import type { KeyWords } from '../../ui/key-list.tsx'
import { recipientStates } from '../../ui/recipient-states.ts'
import { useKeys } from '../../ui/shortcuts.ts'
import type { CampaignSearch, Go } from './campaign-search.ts'
import { countAll } from './campaign-words.ts'
import { RecipientList } from './recipient-list.tsx'

const keyHelp: readonly KeyWords[] = [
  { keys: '/', does: 'Find a person' },
  { keys: 'J', does: 'Next recipient' },
  { keys: 'K', does: 'Previous recipient' },
  { keys: 'Enter', does: 'Show or hide what happened to the recipient' },
  { keys: 'Esc', does: 'Hide it' },
]

interface RecipientsProps {
  at: CampaignRef
  campaign: Campaign
  search: CampaignSearch
  go: Go
  /** What scrolls. */
  place: React.RefObject<HTMLDivElement | null>
}

export function Recipients({ at, campaign, search, go, place }: RecipientsProps) {
  const { status, name } = search
  useKeys({ '/': () => document.querySelector<HTMLElement>('[data-find]')?.focus() })
  return (
    <section aria-label="Recipients" className="min-w-0 rounded-xl ring-1 ring-line">
      <header className="flex flex-wrap items-center gap-x-1.5 gap-y-2 px-4 pt-3 pb-2.5">
        <h2 className="mr-1.5 text-sm font-semibold">Recipients</h2>
        <Chips campaign={campaign} search={search} go={go} />
        <Finder search={search} go={go} />
      </header>
      <RecipientList
        key={`${status ?? ''} ${name ?? ''}`}
        filter={{ ...at, status, name }}
        steps={campaign.steps}
        search={search}
        go={go}
        place={place}
      />
      <KeyHelp keys={keyHelp} />
    </section>
  )
}

/** One for each status that someone has, and for the chosen one. */
function Chips({ campaign: { totals, reporting }, search, go }: Omit<RecipientsProps, 'at' | 'place'>) {
  const stopped = reporting.some(({ opted_out }) => opted_out > 0)
  const statuses = (Object.keys(recipientStates) as RecipientStatus[]).filter(
    (each) => totals[each] > 0 || each === search.status,
  )
  const { status: _, recipient: __, ...rest } = search
  return (
    <>
      <Chip pressed={search.status === undefined} onPress={() => go(rest)}>
        All {countAll(totals).toLocaleString('en')}
      </Chip>
      {statuses.map((status) => (
        <Chip key={status} pressed={search.status === status} onPress={() => go({ ...rest, status })}>
          {status === 'replied' && stopped ? 'Replied or asked to stop' : recipientStates[status][1]}{' '}
          {totals[status].toLocaleString('en')}
        </Chip>
      ))}
    </>
  )
}

interface ChipProps {
  pressed: boolean
  onPress: () => void
  children: React.ReactNode
}

function Chip({ pressed, onPress, children }: ChipProps) {
  return (
    <button
      type="button"
      aria-pressed={pressed}
      onClick={onPress}
      className={`h-7 rounded-lg px-2.5 text-xs font-medium whitespace-nowrap pointer-coarse:h-11
        ${pressed ? 'bg-selected text-accent' : 'text-soft ring-1 ring-line ring-inset hover:bg-hover'}`}
    >
      {children}
    </button>
  )
}

/** Longer ones are refused by the service. */
const nameMax = 100

function Finder({ search, go }: Pick<RecipientsProps, 'search' | 'go'>) {
  return (
    <FindField
      label="Find a person"
      value={search.name}
      lengthMax={nameMax}
      first="[data-recipient]"
      onFind={(name) => {
        const { name: _, recipient: __, ...rest } = search
        go(name === undefined ? rest : { ...rest, name })
      }}
      className="h-7 max-[760px]:basis-full min-[761px]:ml-auto pointer-coarse:h-11"
      inputClass="min-[761px]:w-32"
    />
  )
}
