/** Starts a chat with someone who is not a contact yet, by username. */
import { useQuery } from '@tanstack/react-query'
import { useState } from 'react'
import { identifierMax } from '../../../../src/rules/identifier.ts'
import { accountsQuery } from '../../data/accounts.ts'
import { workspaceQuery } from '../../data/chats.ts'
import { useStartChat } from '../../data/contacts.ts'
import type { Workspace } from '../../data/queries.ts'
import { SelectField, TextField } from '../../ui/form.tsx'
import { BackButton, StartButton, StartFailure, useOpenInbox } from './contact-panel.tsx'
import { StartLimits, whyNotStart } from './start-limits.tsx'

interface StartProps {
  workspace: Workspace
  /** Of the list's filter. */
  account_id: string | undefined
  onClose: () => void
}

export function StartPanel({ workspace, account_id, onClose }: StartProps) {
  const { data: accounts } = useQuery(accountsQuery(workspace.id))
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const [chosen, setChosen] = useState(account_id)
  const [text, setText] = useState('')
  const start = useStartChat(useOpenInbox())
  const all = accounts?.accounts ?? []
  const account =
    all.find(({ id }) => id === chosen) ?? all.find(({ status }) => status === 'READY') ?? all[0]
  const identifier = text.trim()
  const because = accounts && all.length === 0 ? 'No account is connected.' : whyNotStart(state, account)
  return (
    <form
      className="grid content-start gap-4.5 p-4"
      onSubmit={(event) => {
        event.preventDefault()
        if (!account || identifier === '' || because !== undefined || start.isPending) return
        start.mutate({ workspace_id: workspace.id, account_id: account.id, identifier })
      }}
      onKeyDown={(event) => event.key === 'Escape' && onClose()}
    >
      <BackButton onClose={onClose} />
      <h2 className="text-base font-semibold">Start a chat</h2>
      <TextField
        label="Username"
        help="For example @ines_garcia, or a link to the person."
        autoFocus
        required
        maxLength={identifierMax}
        autoCapitalize="none"
        spellCheck={false}
        value={text}
        onChange={setText}
      />
      {all.length > 1 && (
        <SelectField
          label="From"
          value={account?.id ?? ''}
          options={all.map(({ id, name }) => [id, name])}
          onChange={setChosen}
        />
      )}
      {account && <StartLimits account={account} />}
      <StartButton type="submit" busy={start.isPending} because={because} />
      <StartFailure error={start.error} />
    </form>
  )
}
