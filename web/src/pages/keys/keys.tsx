/** A workspace's API keys: what each may do, when it was last used, and how to revoke it. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { KeyRound, Plus } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { useHere, useSession } from '../../data/place.ts'
import { type Key, keysQuery, useChange } from '../../data/queries.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { Page } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time, useNow } from '../../ui/time.tsx'

/** Loaded when the first one is opened, then kept for their animation. */
const Confirm = lazy(async () => ({ default: (await import('../../ui/dialog.tsx')).Confirm }))
const NewKey = lazy(async () => ({ default: (await import('../../ui/new-key.tsx')).NewKey }))

const unusedMs = 30 * 86_400_000

export function KeysPage() {
  const workspace = useHere()
  const { id: workspace_id, role } = workspace
  const all = role !== 'member'
  const query = useQuery(keysQuery(workspace_id))
  const [making, setMaking] = useState<boolean>()
  const [ending, setEnding] = useState<Key | null>()
  const make = (
    <Button kind="primary" onClick={() => setMaking(true)}>
      <Plus aria-hidden className="size-4" />
      Create key
    </Button>
  )
  return (
    <Page
      title="API keys"
      about={`A key acts as the person who made it.${all ? ' As an admin you see everyone’s.' : ''}`}
      action={query.data?.keys.length !== 0 && make}
    >
      <Loaded query={query}>
        {({ keys }) => (
          <KeyTable keys={keys} all={all} make={make} onEnd={setEnding} workspace_id={workspace_id} />
        )}
      </Loaded>
      <Suspense>
        {making !== undefined && (
          <NewKey open={making} onClose={() => setMaking(false)} workspace={workspace} />
        )}
        {ending !== undefined && (
          <Revoke
            key={ending?.id}
            ending={ending ?? undefined}
            workspace_id={workspace_id}
            onClose={() => setEnding(null)}
          />
        )}
      </Suspense>
    </Page>
  )
}

interface KeyTableProps {
  keys: readonly Key[]
  all: boolean
  make: React.ReactNode
  onEnd: (key: Key) => void
  workspace_id: string
}

function KeyTable({ keys, all, make, onEnd, workspace_id }: KeyTableProps) {
  const { user } = useSession()
  const now = useNow()
  const owner = {
    heading: 'Owner',
    cell: (key: Key) => (key.user.id === user.id ? 'You' : key.user.email),
  }
  return (
    <>
      <Table
        label="API keys"
        rows={keys}
        rowKey={({ id }) => id}
        faded={(key) => stateOf(key, now) !== 'good'}
        empty={{
          icon: KeyRound,
          title: 'No keys yet',
          children:
            'A key lets a program read chats, send messages or run campaigns. You choose which, and can revoke it at any time.',
          action: make,
        }}
        columns={[
          { heading: 'Name', lead: true, cell: (key) => <Named of={key} /> },
          { heading: 'Scopes', cell: (key) => <Scopes of={key} /> },
          ...(all ? [owner] : []),
          { heading: 'Last used', cell: (key) => <LastUsed of={key} /> },
          { heading: 'Expires', cell: (key) => <Expiry of={key} /> },
          {
            heading: 'Actions',
            actions: true,
            cell: (key) =>
              stateOf(key, now) === 'good' && (
                <Button
                  kind="quiet"
                  size="small"
                  aria-label={`Revoke ${key.name}`}
                  onClick={() => onEnd(key)}
                >
                  Revoke
                </Button>
              ),
          },
        ]}
      />
      {keys.length > 0 && (
        <p className="text-muted">
          Setting up an agent?{' '}
          <Link
            to="/w/$workspace_id/connect"
            params={{ workspace_id }}
            className="font-medium text-accent underline underline-offset-3"
          >
            Connect an agent
          </Link>
        </p>
      )}
    </>
  )
}

function stateOf({ revoked_at, expires_at }: Key, now: Date): 'good' | 'revoked' | 'expired' {
  if (revoked_at) return 'revoked'
  return expires_at && new Date(expires_at) <= now ? 'expired' : 'good'
}

function Named({ of: key }: { of: Key }) {
  return (
    <span className="block max-w-72">
      <bdi className="block truncate font-medium text-ink" title={key.name}>
        {key.name}
      </bdi>
      <span className="font-mono text-xs text-muted">{key.prefix}…</span>
    </span>
  )
}

function Scopes({ of: key }: { of: Key }) {
  return (
    <span className="inline-flex max-w-56 flex-wrap justify-end gap-1 md:justify-start">
      {key.scopes.map((scope) => (
        <Badge key={scope}>{scope}</Badge>
      ))}
      {key.mcp_only && <Badge tone="good">agents only</Badge>}
      {key.issued_by === 'operator' && <Badge>issued by an operator</Badge>}
    </span>
  )
}

function LastUsed({ of: key }: { of: Key }) {
  const now = useNow()
  if (key.last_used_at === null) return <span className="text-muted">Never</span>
  const old = stateOf(key, now) === 'good' && now.getTime() - new Date(key.last_used_at).getTime() > unusedMs
  return (
    <span className="inline-flex flex-wrap items-center justify-end gap-1.5 md:justify-start">
      <Time at={key.last_used_at} />
      {old && <Badge tone="warn">unused for 30 days</Badge>}
    </span>
  )
}

function Expiry({ of: key }: { of: Key }) {
  const state = stateOf(key, useNow())
  if (state === 'revoked') return <Badge tone="danger">Revoked</Badge>
  if (state === 'expired') return <Badge tone="danger">Expired</Badge>
  return key.expires_at ? <Time at={key.expires_at} ahead /> : <span className="text-muted">Never</span>
}

interface RevokeProps {
  ending: Key | undefined
  workspace_id: string
  onClose: () => void
}

function Revoke({ ending, workspace_id, onClose }: RevokeProps) {
  const revoke = useChange('POST /w/{workspace_id}/keys/{key_id}/revoke', ['keys'])
  return (
    <Confirm
      open={ending !== undefined}
      onClose={onClose}
      title="Revoke this key?"
      description="Whatever uses it stops working within a second. This cannot be undone."
      phrase={ending?.name ?? ''}
      action="Revoke key"
      change={revoke}
      onConfirm={() =>
        ending && revoke.mutate({ params: { workspace_id, key_id: ending.id } }, { onSuccess: onClose })
      }
    />
  )
}
