/** Every keyboard shortcut of the page; `?` opens it. */
import { Dialog } from './dialog.tsx'
import { keysHere } from './key-cap.tsx'

export interface KeyWords {
  readonly keys: string
  readonly does: string
}

const inboxKeys: readonly KeyWords[] = [
  { keys: 'J', does: 'Next chat' },
  { keys: 'K', does: 'Previous chat' },
  { keys: 'Enter', does: 'Open the chat' },
  { keys: 'Esc', does: 'Back to the list' },
  { keys: 'R', does: 'Answer' },
  { keys: 'N', does: 'Write a note' },
  { keys: 'M', does: 'Move to another stage' },
  { keys: 'E', does: 'Mark read and go to the next chat' },
  { keys: 'U', does: 'Mark unread' },
  { keys: '/', does: 'Insert a saved reply' },
  { keys: 'Z', does: 'Undo' },
  { keys: '⌘↵', does: 'Send' },
]

const keysEverywhere: readonly KeyWords[] = [
  { keys: '⌘K', does: 'Search, or go to a page' },
  { keys: 'G I', does: 'Go to the inbox' },
  { keys: 'G P', does: 'Go to the pipeline' },
  { keys: 'G C', does: 'Go to the contacts' },
  { keys: 'G A', does: 'Go to the accounts' },
  { keys: 'G S', does: 'Go to the campaigns, as an admin' },
  { keys: '?', does: 'Show these keys' },
]

interface KeyListProps {
  onClose: () => void
  /** Of the page. */
  keys: readonly KeyWords[] | undefined
}

export function KeyList({ onClose, keys: ofPage = inboxKeys }: KeyListProps) {
  return (
    <Dialog open onClose={onClose} title="Keys">
      <dl className="-mx-6 grid min-h-0 grid-cols-[auto_minmax(0,1fr)] gap-x-4 gap-y-1.5 overflow-y-auto px-6">
        {[...ofPage, ...keysEverywhere].map(({ keys, does }) => (
          <div key={keys} className="contents">
            <dt className="flex justify-end gap-1">
              {keysHere(keys)
                .split(' ')
                .map((each) => (
                  <kbd
                    key={each}
                    className="min-w-6 rounded-[5px] px-1.5 text-center font-sans text-xs font-medium text-soft ring-1 ring-inset ring-line"
                  >
                    {each}
                  </kbd>
                ))}
            </dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
