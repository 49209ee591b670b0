/** Connects an agent: creates its key, then shows the exact configuration for the user's client. */
import { useState } from 'react'
import type { Answer } from '../../data/api.ts'
import { useHere, useSession } from '../../data/place.ts'
import { Code, Secret } from '../../ui/copy.tsx'
import { KeyForm } from '../../ui/key-form.tsx'
import { Notice } from '../../ui/notice.tsx'
import { Page, Section } from '../../ui/page.tsx'
import { clients, keyPlace } from './agent-clients.ts'

type CreatedKey = Answer<'POST /w/{workspace_id}/keys'>

export function ConnectPage() {
  const workspace = useHere()
  const { base_url } = useSession()
  const [made, setMade] = useState<CreatedKey>()
  return (
    <Page
      title="Connect an agent"
      about="Claude, Cursor and every other MCP client can read chats here and ask to write. What they want to send or change waits for you in Approvals."
      narrow
    >
      <Section
        title="1. Create a key"
        about="For agents only: it works nowhere else, and writes nothing without your approval."
      >
        {made ? (
          <div className="grid gap-3">
            <Secret value={made.secret} label={`The key ${made.key.name}`} />
            <Notice tone="warn">
              It is shown this once, and is filled in below until you leave this page.
            </Notice>
          </div>
        ) : (
          <KeyForm agent workspace={workspace} onMade={setMade} />
        )}
      </Section>
      <Section
        title="2. Add Parley to your client"
        about={made ? 'With your new key in it, ready to paste.' : 'Put your key where the dots are.'}
      >
        <Configuration base_url={base_url} secret={made?.secret ?? keyPlace} />
      </Section>
      <Section title="3. Try it">
        <p className="max-w-[64ch] text-soft">
          Ask it: <q>Who am I on Parley, and which chats are unread?</q> Then let it answer one of them. It
          will stop and give you a link; open it, read the text, approve, and paste the token into the
          conversation.
        </p>
      </Section>
    </Page>
  )
}

function Configuration({ base_url, secret }: { base_url: string; secret: string }) {
  const [name, setName] = useState(clients[0]?.name ?? '')
  const client = clients.find((each) => each.name === name)
  return (
    <div className="grid gap-4">
      <fieldset className="flex flex-wrap gap-2">
        <legend className="sr-only">Client</legend>
        {clients.map((each) => (
          <label
            key={each.name}
            className="rounded-lg px-3 py-1.5 text-soft ring-1 ring-inset ring-line has-checked:bg-accent-wash
              has-checked:font-medium has-checked:text-ink has-checked:ring-accent has-focus-visible:outline-2 has-focus-visible:outline-accent hover:bg-hover"
          >
            <input
              type="radio"
              name="client"
              className="sr-only"
              checked={name === each.name}
              onChange={() => setName(each.name)}
            />
            {each.name}
          </label>
        ))}
      </fieldset>
      {client && (
        <>
          <p className="text-muted">{client.about}</p>
          <Code label={client.place} text={client.configure(`${base_url}/api/mcp`, secret)} />
        </>
      )}
    </div>
  )
}
