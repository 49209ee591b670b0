/** One request in full: nothing is shortened, because this is what the user approves. */

import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { ArrowRight, Fingerprint, SearchX } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { ask, Refused } from '../../data/api.ts'
import { keys } from '../../data/keys.ts'
import { type Approval, approvalQuery } from '../../data/queries.ts'
import { Button } from '../../ui/button.tsx'
import { Secret } from '../../ui/copy.tsx'
import { ExactText } from '../../ui/exact-text.tsx'
import { Failure, Notice } from '../../ui/notice.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Countdown, Time } from '../../ui/time.tsx'
import { useTitle } from '../../ui/title.ts'
import { Asker, fieldsOf, Outcome, textOf, valueWords, wishOf } from './approval-words.tsx'

type GrantedToken = { token: string; expires_at: string }

export function OneApproval({ id }: { id: string }) {
  const query = useQuery(approvalQuery(id))
  const missing = query.error instanceof Refused && query.error.status < 500 && query.error.status >= 400
  useTitle('Approval')
  if (missing && !query.data) {
    return (
      <Empty icon={SearchX} title="You cannot see this request">
        It is not there, or it belongs to another person’s key. Sign in as the user whose key the agent uses.
      </Empty>
    )
  }
  return <Loaded query={query}>{({ approval }) => <Request approval={approval} />}</Loaded>
}

function Request({ approval }: { approval: Approval }) {
  const { state, expires_at } = approval
  // Only this component has the token: it is shown once and gone with the page.
  const [granted, setGranted] = useState<GrantedToken>()
  return (
    <article className="overflow-hidden rounded-2xl bg-surface shadow-card ring-1 ring-line">
      <header className="flex flex-wrap items-start justify-between gap-3 border-b border-line px-5 py-4 sm:px-6">
        <div className="min-w-0">
          <h1 className="text-lg font-semibold">
            <Asker approval={approval} /> {wishOf(approval)}
          </h1>
          <p className="text-muted">
            Asked <Time at={approval.created_at} />
            {state === 'waiting' && (
              <>
                {', '}
                <Countdown until={expires_at} label="Time left to decide" /> left
              </>
            )}
          </p>
        </div>
        {state !== 'waiting' && <Outcome approval={approval} />}
      </header>
      <div className="grid gap-6 px-5 py-5 sm:px-6">
        <Change approval={approval} />
        <Facts approval={approval} />
        <Details approval={approval} />
        {state === 'waiting' && !granted && <Decide approval={approval} onGranted={setGranted} />}
        {granted && <Token granted={granted} state={state} />}
        <Ended approval={approval} granted={granted !== undefined} />
      </div>
    </article>
  )
}

/** What would happen: the text as it would be sent, or the old and the new value. */
function Change({ approval }: { approval: Approval }) {
  const { field, from, to } = approval
  const text = textOf(approval)
  if (text !== undefined) {
    return (
      <section aria-label="The exact text">
        <div className="w-fit max-w-full rounded-2xl rounded-bl-md bg-accent-wash px-4 py-3 text-base text-ink">
          <ExactText text={text} />
        </div>
      </section>
    )
  }
  return (
    <section aria-label="The change">
      {field && (
        <p className="mb-2 text-muted">
          <ExactText text={field} />
        </p>
      )}
      <div className="flex flex-wrap items-center gap-3 text-base">
        <span className="rounded-lg bg-sunken px-3 py-2 text-soft">
          <ExactText text={valueWords(from)} />
        </span>
        <ArrowRight role="img" aria-label="becomes" className="size-4 text-muted" />
        <span className="rounded-lg bg-accent-wash px-3 py-2 font-medium">
          <ExactText text={valueWords(to)} />
        </span>
      </div>
    </section>
  )
}

const factGrid = 'grid gap-x-6 gap-y-2.5 sm:grid-cols-[8rem_minmax(0,1fr)]'

function Facts({ approval }: { approval: Approval }) {
  const { key, workspace, account, chat } = approval
  const rest = Object.entries(fieldsOf(approval)).filter(
    ([name]) => !['text', 'account_id', 'chat_id'].includes(name),
  )
  return (
    <dl className={factGrid}>
      <Fact name="Chat">
        <ExactText text={chat.name ?? chat.id} />
      </Fact>
      <Fact name="From account">
        <ExactText text={account.name} /> <Aside>{account.provider}</Aside>
      </Fact>
      <Fact name="Workspace">
        <ExactText text={workspace.name} />
      </Fact>
      <Fact name="Asked by">
        {'The key '}
        <ExactText text={key.name} /> <Aside>{key.prefix}…</Aside>
      </Fact>
      {rest.map(([name, value]) => (
        <Fact key={name} name={name}>
          <ExactText text={typeof value === 'string' ? value : JSON.stringify(value)} />
        </Fact>
      ))}
    </dl>
  )
}

/** What identifies the request to a program. */
function Details({ approval: { client_name, chat, payload_sha256, tool } }: { approval: Approval }) {
  return (
    <details>
      <summary className="w-fit text-muted hover:text-ink">Details</summary>
      <dl className={`mt-2.5 ${factGrid}`}>
        <Fact name="Client">
          {client_name === null ? (
            'It gives no name'
          ) : (
            <>
              It calls itself <ExactText text={client_name} />
            </>
          )}
        </Fact>
        <Fact name="Chat id">
          <span className="font-mono text-xs">{chat.id}</span>
        </Fact>
        <Fact name="Tool">
          <span className="font-mono text-xs">{tool}</span>
        </Fact>
        <Fact name="Payload hash">
          <span className="inline-flex items-start gap-1.5 font-mono text-xs text-muted [overflow-wrap:anywhere]">
            <Fingerprint aria-hidden className="mt-0.5 size-3.5 shrink-0" />
            {payload_sha256}
          </span>
        </Fact>
      </dl>
    </details>
  )
}

function Fact({ name, children }: { name: string; children: ReactNode }) {
  return (
    <div className="contents">
      <dt className="text-muted max-sm:-mb-2.5">{name}</dt>
      <dd className="min-w-0 [overflow-wrap:anywhere]">{children}</dd>
    </div>
  )
}

function Aside({ children }: { children: ReactNode }) {
  return <span className="ml-1 font-mono text-xs text-muted">{children}</span>
}

/** Deny takes one click. Approve never gets the focus automatically, so that a stray Enter does not approve. */
function Decide({ approval, onGranted }: { approval: Approval; onGranted: (granted: GrantedToken) => void }) {
  const client = useQueryClient()
  const params = { request_id: approval.id }
  const refresh = () => client.invalidateQueries({ queryKey: keys.approvals() })
  const approve = useMutation({
    mutationFn: () => ask('POST /approvals/{request_id}/approve', { params }),
    onSuccess: onGranted,
    onSettled: refresh,
  })
  const deny = useMutation({
    mutationFn: () => ask('POST /approvals/{request_id}/deny', { params }),
    onSettled: refresh,
  })
  const busy = approve.isPending || deny.isPending
  return (
    <div className="grid gap-3 border-t border-line pt-5">
      <Failure error={approve.error ?? deny.error} />
      <div className="flex flex-wrap justify-end gap-2">
        <Button
          size="large"
          busy={deny.isPending}
          disabled={busy}
          onClick={() => deny.mutate()}
          className="max-sm:flex-1"
        >
          Deny
        </Button>
        <Button
          size="large"
          kind="primary"
          busy={approve.isPending}
          disabled={busy}
          onClick={() => approve.mutate()}
          className="max-sm:flex-1"
        >
          Approve
        </Button>
      </div>
    </div>
  )
}

function Token({ granted, state }: { granted: GrantedToken; state: Approval['state'] }) {
  if (state === 'used') return null
  return (
    <section aria-labelledby="token-title" className="grid gap-3 rounded-xl bg-accent-wash p-4">
      <div className="flex flex-wrap items-baseline justify-between gap-2">
        <h2 id="token-title" className="font-semibold">
          Give this token to your agent
        </h2>
        <Countdown until={granted.expires_at} label="The token works for another" />
      </div>
      <p className="text-soft">
        Paste it into the conversation. It works once, for exactly this, for two minutes. It is shown only
        here and only now.
      </p>
      <Secret value={granted.token} label="Approval token" />
    </section>
  )
}

/** The outcome in one sentence. */
function Ended({ approval, granted }: { approval: Approval; granted: boolean }) {
  const { state, outcome, operation_id, decided_at } = approval
  if (state === 'waiting' || (state === 'approved' && granted)) return null
  const [tone, words] = endings(state, outcome)
  return (
    <Notice tone={tone}>
      {words}{' '}
      {decided_at && (
        <>
          Decided <Time at={decided_at} />.
        </>
      )}
      {operation_id && (
        <span className="mt-0.5 block font-mono text-xs text-muted">Operation {operation_id}</span>
      )}
    </Notice>
  )
}

function endings(state: Approval['state'], outcome: Approval['outcome']): ['good' | 'warn' | 'info', string] {
  if (state === 'approved')
    return ['info', 'Approved. The token was shown when it was approved and is not shown again.']
  if (state === 'denied') return ['info', 'Denied. Nothing was sent and nothing was changed.']
  if (state === 'expired')
    return ['info', 'Expired. Nothing was sent and nothing was changed; the agent may ask again.']
  if (outcome?.state === 'completed') return ['good', 'Sent once. The token is spent.']
  if (outcome?.state === 'ambiguous')
    return ['warn', 'We could not see whether it was sent. We keep looking, and won’t send it again.']
  if (outcome?.state === 'refused')
    return ['warn', `It was refused, and nothing was sent. ${outcome.error ?? ''}`]
  if (outcome?.state === 'released') return ['warn', `It was not carried out. ${outcome.error ?? ''}`]
  return ['info', 'The agent has used the token. Parley is carrying the request out.']
}
