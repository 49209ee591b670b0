/** Webhooks: the endpoints that get this workspace's events, and what became of each delivery. */
import { useQuery } from '@tanstack/react-query'
import { Link, useSearch } from '@tanstack/react-router'
import { Plus, Webhook as WebhookIcon } from 'lucide-react'
import { lazy, type ReactNode, Suspense, useState } from 'react'
import { workspaceQuery } from '../../data/chats.ts'
import { useGo, useHere, useSession } from '../../data/place.ts'
import type { Workspace } from '../../data/queries.ts'
import { type Webhook, webhooksQuery } from '../../data/webhooks.ts'
import { Button } from '../../ui/button.tsx'
import { ClosedPage } from '../../ui/closed-page.tsx'
import { Code } from '../../ui/copy.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Page } from '../../ui/page.tsx'
import { useKeys } from '../../ui/shortcuts.ts'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Endpoint } from './endpoint.tsx'
import type { MadeSecret } from './endpoint-dialogs.tsx'
import { StateBadge } from './state-badges.tsx'
import type { WebhooksSearch } from './webhooks-search.ts'

const AddDialog = lazy(async () => ({ default: (await import('./endpoint-dialogs.tsx')).AddDialog }))
const SecretDialog = lazy(async () => ({ default: (await import('./endpoint-dialogs.tsx')).SecretDialog }))

export function WebhooksPage() {
  const workspace = useHere()
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const capability = state?.capabilities.webhooks
  if (workspace.role === 'member' || capability?.open === false) {
    const closed_by = capability?.closed_by ?? ({ kind: 'role', name: 'admin' } as const)
    const title =
      closed_by.kind === 'role' ? 'Only admins and owners see webhooks' : 'Webhooks are turned off here'
    return (
      <Page title="Webhooks">
        <ClosedPage title={title} closed_by={closed_by} />
      </Page>
    )
  }
  return <Endpoints workspace={workspace} />
}

function Endpoints({ workspace }: { workspace: Workspace }) {
  const search = useSearch({ from: '/inside/w/$workspace_id/webhooks' })
  const { open, ...here } = search
  const go = useGo<WebhooksSearch>('/w/$workspace_id/webhooks')
  const query = useQuery(webhooksQuery(workspace.id))
  const [made, setMade] = useState<MadeSecret>()
  useKeys({ n: () => go({ ...here, open: 'add' }) })
  const add = (
    <Button kind="primary" size="small" onClick={() => go({ ...here, open: 'add' })}>
      <Plus aria-hidden className="size-3.5" />
      Add endpoint
    </Button>
  )
  return (
    <Page
      title="Webhooks"
      about="Programs that get this workspace’s events as they happen."
      action={query.data?.webhooks.length !== 0 && add}
    >
      <Loaded query={query}>
        {({ webhooks }) => {
          const chosen = webhooks.find(({ id }) => id === search.hook) ?? webhooks[0]
          return (
            <>
              <EndpointTable webhooks={webhooks} chosen={chosen} workspace_id={workspace.id} add={add} />
              {chosen && (
                <Endpoint key={chosen.id} of={chosen} workspace_id={workspace.id} search={search} go={go} />
              )}
            </>
          )
        }}
      </Loaded>
      {query.data && query.data.webhooks.length > 0 && (
        <div className="mt-8 max-w-3xl">
          <Forwarding />
        </div>
      )}
      <Suspense>
        {open === 'add' && (
          <AddDialog
            workspace_id={workspace.id}
            onClose={() => go(here)}
            onMade={(next) => {
              setMade(next)
              go({ hook: next.webhook.id })
            }}
          />
        )}
        {made && <SecretDialog made={made} onClose={() => setMade(undefined)} />}
      </Suspense>
    </Page>
  )
}

interface EndpointTableProps {
  webhooks: readonly Webhook[]
  chosen: Webhook | undefined
  workspace_id: string
  add: ReactNode
}

function EndpointTable({ webhooks, chosen, workspace_id, add }: EndpointTableProps) {
  return (
    <Table
      label="Endpoints"
      rows={webhooks}
      rowKey={({ id }) => id}
      empty={{
        icon: WebhookIcon,
        title: 'No endpoints yet',
        children: (
          <>
            <p>Parley sends each event, signed, to a URL you choose and retries until it answers with 2xx.</p>
            <div className="mt-4 text-left">
              <Forwarding />
            </div>
          </>
        ),
        action: add,
      }}
      columns={[
        {
          heading: 'Endpoint',
          lead: true,
          cell: ({ id, url }) => (
            <Link
              to="/w/$workspace_id/webhooks"
              params={{ workspace_id }}
              search={{ hook: id }}
              resetScroll={false}
              aria-current={id === chosen?.id ? 'true' : undefined}
              className="font-medium text-ink underline-offset-3 [overflow-wrap:anywhere] hover:underline aria-[current=true]:text-accent"
            >
              <ExactLine text={url} />
            </Link>
          ),
        },
        { heading: 'Events', cell: ({ events }) => (events.includes('*') ? 'All' : events.join(', ')) },
        { heading: 'State', cell: (webhook) => <StateBadge of={webhook} /> },
      ]}
    />
  )
}

/** For development: no public address is needed. */
function Forwarding() {
  const { base_url } = useSession()
  return (
    <Code
      label="Forward events to your own machine"
      text={`# signed as a webhook’s, with PARLEY_API_KEY set\nPARLEY_BASE_URL=${base_url} \\\n  bin/parley.js events --follow --forward-to http://localhost:3000/hook`}
    />
  )
}
