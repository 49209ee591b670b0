import { useQuery } from '@tanstack/react-query'
import { MessageSquareQuote, Plus } from 'lucide-react'
import { lazy, Suspense, useState } from 'react'
import { savedRepliesQuery } from '../../data/chats.ts'
import { Button } from '../../ui/button.tsx'
import { ExactLine } from '../../ui/exact-text.tsx'
import { Section } from '../../ui/page.tsx'
import { Loaded } from '../../ui/states.tsx'
import { Table } from '../../ui/table.tsx'
import type { OpenReply } from './saved-reply-dialogs.tsx'

const Dialogs = lazy(async () => ({ default: (await import('./saved-reply-dialogs.tsx')).SavedReplyDialogs }))

export function SavedRepliesSection({ workspace_id }: { workspace_id: string }) {
  const query = useQuery(savedRepliesQuery(workspace_id))
  const [open, setOpen] = useState<OpenReply | null>()
  const add = (
    <Button onClick={() => setOpen({ what: 'edit', reply: null })}>
      <Plus aria-hidden className="size-4" />
      New reply
    </Button>
  )
  return (
    <Section title="Saved replies" about="Insert one with / where you write a message.">
      <Loaded query={query} rows={2}>
        {({ saved_replies }) => (
          <Table
            label="Saved replies"
            rows={saved_replies}
            rowKey={({ id }) => id}
            empty={{
              icon: MessageSquareQuote,
              title: 'No saved replies yet',
              children: 'Write an answer once, and insert it from then on.',
              action: add,
            }}
            columns={[
              {
                heading: 'Reply',
                lead: true,
                cell: ({ title, text }) => (
                  <span className="block max-w-[48ch]">
                    <span className="block truncate font-medium">
                      <ExactLine text={title} cut />
                    </span>
                    <span className="block truncate text-xs text-muted">
                      <ExactLine text={text} cut />
                    </span>
                  </span>
                ),
              },
              {
                heading: 'Actions',
                actions: true,
                cell: (reply) => (
                  <>
                    <Button
                      kind="quiet"
                      size="small"
                      aria-label={`Edit ${reply.title}`}
                      onClick={() => setOpen({ what: 'edit', reply })}
                    >
                      Edit…
                    </Button>
                    <Button
                      kind="quiet"
                      size="small"
                      aria-label={`Delete ${reply.title}`}
                      onClick={() => setOpen({ what: 'delete', reply })}
                    >
                      Delete…
                    </Button>
                  </>
                ),
              },
            ]}
          />
        )}
      </Loaded>
      {(query.data?.saved_replies.length ?? 0) > 0 && <div>{add}</div>}
      {open !== undefined && (
        <Suspense>
          <Dialogs open={open ?? undefined} workspace_id={workspace_id} onClose={() => setOpen(null)} />
        </Suspense>
      )}
    </Section>
  )
}
