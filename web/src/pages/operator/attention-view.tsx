/** What works again only once a person acts, in all workspaces: accounts, and operations with an unknown outcome. */
import { useQuery } from '@tanstack/react-query'
import { Link } from '@tanstack/react-router'
import { CircleCheck } from 'lucide-react'
import { type AmbiguousOperation, attentionQuery, type TroubledAccount } from '../../data/operator.ts'
import { useSession } from '../../data/place.ts'
import { useChange } from '../../data/queries.ts'
import { Badge } from '../../ui/badge.tsx'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Failure } from '../../ui/notice.tsx'
import { Section } from '../../ui/page.tsx'
import { Empty, Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import { Time } from '../../ui/time.tsx'

const listedMax = 1_000

export function AttentionView() {
  return (
    <Loaded query={useQuery(attentionQuery)}>
      {({ accounts, operations, names }) =>
        accounts.length === 0 && operations.length === 0 ? (
          <Empty icon={CircleCheck} title="Nothing needs attention">
            Accounts that lose their login or are restricted are listed here, and messages whose outcome is
            unknown.
          </Empty>
        ) : (
          <>
            <Accounts accounts={accounts} />
            <Ambiguous operations={operations} names={names} />
          </>
        )
      }
    </Loaded>
  )
}

function needOf({ status, first_messages_stopped_at, campaigns_held_at }: TroubledAccount): string {
  if (status === 'NEEDS_LOGIN') return 'Needs a login'
  if (status === 'RESTRICTED') return 'Restricted'
  if (campaigns_held_at) return 'Campaigns wait'
  return first_messages_stopped_at ? 'First messages stopped' : 'No worker'
}

/** Whether the operator may open the workspace's own pages. */
function useIsMember(): (workspace_id: string) => boolean {
  const { workspaces } = useSession()
  return (workspace_id) => workspaces.some(({ id }) => id === workspace_id)
}

function Accounts({ accounts }: { accounts: readonly TroubledAccount[] }) {
  const isMember = useIsMember()
  return (
    <Section title="Accounts">
      <Table
        label="Accounts that need attention"
        rows={accounts}
        rowKey={({ id }) => id}
        empty={{
          icon: CircleCheck,
          title: 'All accounts are fine',
          children: 'An account that loses its login, or that the platform restricts, is listed here.',
        }}
        columns={[
          {
            heading: 'Account',
            lead: true,
            cell: ({ id, name, workspace_id }) => {
              const text = <ExactLine text={name} empty={id} cut />
              return (
                <span title={id} className="block max-w-72 truncate font-medium">
                  {isMember(workspace_id) ? (
                    <Link
                      to="/w/$workspace_id/accounts"
                      params={{ workspace_id }}
                      className="text-accent underline"
                    >
                      {text}
                    </Link>
                  ) : (
                    text
                  )}
                </span>
              )
            },
          },
          { heading: 'Workspace', cell: ({ workspace_name }) => <WorkspaceName name={workspace_name} /> },
          { heading: 'Needs', cell: (account) => <Badge tone="warn">{needOf(account)}</Badge> },
          {
            heading: 'Why',
            cell: ({ status_reason }) => status_reason ?? 'An admin of the workspace has to act.',
          },
        ]}
      />
    </Section>
  )
}

function WorkspaceName({ name }: { name: string }) {
  return (
    <span className="block max-w-56 truncate">
      <ExactLine text={name} cut />
    </span>
  )
}

interface AmbiguousProps {
  operations: readonly AmbiguousOperation[]
  names: ReadonlyMap<string, string>
}

function Ambiguous({ operations, names }: AmbiguousProps) {
  const isMember = useIsMember()
  const close = useChange('POST /operations/{operation_id}/close', ['instance'])
  const say = (operation_id: string, sent: boolean) =>
    close.mutate({ params: { operation_id }, body: { sent } })
  return (
    <Section
      title="Operations with an unknown outcome"
      about={
        operations.length > 0 &&
        `Parley never sends them again, and records the proof if the platform shows one. Record what a person saw on the phone.${
          operations.length === listedMax ? ' These are the newest 1,000.' : ''
        }`
      }
    >
      <Failure error={close.error} />
      <Table
        label="Operations with an unknown outcome"
        rows={operations}
        rowKey={({ id }) => id}
        empty={{
          icon: CircleCheck,
          title: 'Every outcome is known',
          children: 'A message that the platform may or may not have accepted is listed here.',
        }}
        columns={[
          { heading: 'Requested', lead: true, cell: ({ created_at }) => <Time at={String(created_at)} /> },
          {
            heading: 'Workspace',
            cell: ({ workspace_id }) => <WorkspaceName name={names.get(workspace_id) ?? workspace_id} />,
          },
          { heading: 'Kind', cell: ({ kind }) => <span className="font-mono text-xs">{kind}</span> },
          {
            heading: 'Account and chat',
            cell: ({ account_id, chat_id, workspace_id }) => (
              <span className="font-mono text-xs [overflow-wrap:anywhere]">
                {account_id}
                <br />
                {chat_id !== null && isMember(workspace_id) ? (
                  <Link
                    to="/w/$workspace_id/inbox"
                    params={{ workspace_id }}
                    search={{ chat: chat_id, of: account_id }}
                    className="text-accent underline"
                  >
                    {chat_id}
                  </Link>
                ) : (
                  chat_id
                )}
              </span>
            ),
          },
          { heading: 'Why', cell: ({ reason }) => whyOf(reason) },
          {
            heading: 'Actions',
            actions: true,
            cell: ({ id }) => (
              <>
                <Button size="small" busy={close.isPending} onClick={() => say(id, true)}>
                  Was sent
                </Button>
                <Button size="small" busy={close.isPending} onClick={() => say(id, false)}>
                  Was not sent
                </Button>
              </>
            ),
          },
        ]}
      />
    </Section>
  )
}

function whyOf(reason: string | null): string {
  switch (reason) {
    case 'timeout':
      return 'The platform did not answer in time'
    case 'lease':
      return 'Its worker stopped'
    case 'restored':
      return 'The database was restored'
    default:
      return 'The connection broke'
  }
}
