/** A pasted list or a CSV file: every line that is no contact is named, and one button removes these lines. */

import { useQuery } from '@tanstack/react-query'
import { FileUp } from 'lucide-react'
import { useId, useRef, useState } from 'react'
import { type ContactList, type SkippedLine, withoutLines } from '../../../../src/rules/contact-table.ts'
import { decodeTable } from '../../../../src/rules/csv.ts'
import { accountsQuery } from '../../data/accounts.ts'
import type { Workspace } from '../../data/queries.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import type { CampaignDraft, Change } from './campaign-draft.ts'

export interface WhoListProps {
  workspace: Workspace
  draft: CampaignDraft
  change: Change
  list: ContactList
}

const fileBytesMax = 4 * 1024 * 1024

export function WhoList({ workspace, draft, change, list }: WhoListProps) {
  const [refusal, setRefusal] = useState<string>()
  const id = useId()
  const left = draft.left_out.length
  const take = async (file: File | undefined) => {
    if (!file) return
    const read = await readFile(file)
    setRefusal('sentence' in read ? read.sentence : undefined)
    if ('text' in read) change((each) => ({ ...each, list: read.text, left_out: [] }))
  }
  return (
    <div className="grid gap-2">
      <label htmlFor={id} className="sr-only">
        Contacts, one a line
      </label>
      <textarea
        id={id}
        value={draft.list}
        onChange={(event) => change((each) => ({ ...each, list: event.target.value, left_out: [] }))}
        placeholder={'@ines_keller, Ines\n+49 170 1234567, Jonas'}
        rows={5}
        spellCheck={false}
        aria-describedby={`${id}-help`}
        className="block max-h-64 w-full resize-y rounded-lg bg-surface px-3 py-2 font-mono text-xs leading-5 ring-1 ring-inset ring-line-strong focus:outline-2 focus:-outline-offset-1 focus:outline-accent"
      />
      <div className="flex flex-wrap items-center gap-x-3 gap-y-1.5">
        <FileButton onFile={(file) => void take(file)} />
        <p id={`${id}-help`} className="text-xs text-muted">
          One person per line: username, phone number or link, then a comma and the name. A header row is
          fine.
        </p>
      </div>
      {refusal !== undefined && (
        <p role="alert" className="text-danger">
          {refusal}
        </p>
      )}
      {draft.list !== '' && (
        <p>
          <b className="font-semibold">
            {list.contacts.length.toLocaleString('en')} {list.contacts.length === 1 ? 'contact' : 'contacts'}
          </b>{' '}
          <span className="text-muted">of at most 5,000</span>
          {left > 0 && ` · ${left.toLocaleString('en')} left out`}
        </p>
      )}
      <BadLines
        skipped={list.skipped}
        onRemove={() => change((each) => ({ ...each, list: withoutLines(each.list, list.skipped) }))}
      />
      <Accounts workspace={workspace} draft={draft} change={change} />
    </div>
  )
}

async function readFile(file: File): Promise<{ text: string } | { sentence: string }> {
  const name = file.name.slice(0, 80)
  if (file.size > fileBytesMax)
    return { sentence: `${name} is larger than 4 MiB. Nothing was taken from it.` }
  const read = decodeTable(new Uint8Array(await file.arrayBuffer()))
  return 'text' in read ? read : { sentence: `${name}: ${read.sentence} Nothing was taken from it.` }
}

function FileButton({ onFile }: { onFile: (file: File | undefined) => void }) {
  const input = useRef<HTMLInputElement>(null)
  return (
    <>
      <Button size="small" onClick={() => input.current?.click()}>
        <FileUp aria-hidden className="size-3.5" />
        CSV file
      </Button>
      <input
        ref={input}
        type="file"
        accept=".csv,.txt,text/csv,text/plain"
        tabIndex={-1}
        aria-label="CSV file"
        className="hidden"
        onChange={(event) => {
          onFile(event.target.files?.[0])
          // So that the same file can be chosen again.
          event.target.value = ''
        }}
      />
    </>
  )
}

const shownMax = 50

function BadLines({ skipped, onRemove }: { skipped: readonly SkippedLine[]; onRemove: () => void }) {
  if (skipped.length === 0) return null
  const more = skipped.length - shownMax
  return (
    <div role="alert" className="grid gap-2 rounded-lg bg-danger-wash px-3.5 py-2.5">
      <b className="font-semibold">
        {skipped.length.toLocaleString('en')} {skipped.length === 1 ? 'line is' : 'lines are'} not a contact.
      </b>
      <ul aria-label="Lines that are no contacts" className="grid max-h-40 gap-0.5 overflow-y-auto">
        {skipped.slice(0, shownMax).map(({ line, reason }) => (
          <li key={line} className="flex gap-2">
            <span className="shrink-0 text-muted">Line {line.toLocaleString('en')}</span>
            <span className="min-w-0 [overflow-wrap:anywhere]">
              <ExactLine text={reason} />
            </span>
          </li>
        ))}
        {more > 0 && <li className="text-muted">and {more.toLocaleString('en')} more lines</li>}
      </ul>
      <div>
        <Button size="small" onClick={onRemove}>
          Remove {skipped.length === 1 ? 'this line' : `these ${skipped.length.toLocaleString('en')} lines`}
        </Button>
      </div>
    </div>
  )
}

function Accounts({ workspace, draft, change }: Omit<WhoListProps, 'list'>) {
  const { data } = useQuery(accountsQuery(workspace.id))
  return (
    <fieldset className="flex flex-wrap items-center gap-x-4 gap-y-1">
      <legend className="float-left mr-3 text-muted">Written to by</legend>
      {data?.accounts.map(({ id, name }) => (
        <label key={id} className="flex min-h-8 items-center gap-2 pointer-coarse:min-h-11">
          <input
            type="checkbox"
            checked={draft.accounts.includes(id)}
            onChange={(event) =>
              change((each) => ({
                ...each,
                accounts: event.target.checked
                  ? [...each.accounts, id]
                  : each.accounts.filter((one) => one !== id),
              }))
            }
            className="size-4 accent-accent"
          />
          {name}
        </label>
      ))}
    </fieldset>
  )
}
