/** The bar of the editor: back, the name, discard, start. */

import { Link } from '@tanstack/react-router'
import { ChevronLeft } from 'lucide-react'
import type { ReactNode } from 'react'
import { nameMax } from '../../../../src/rules/limits.ts'
import { lengthOf } from '../../../../src/rules/text.ts'
import { isStored } from '../../data/browser-store.ts'
import type { Workspace } from '../../data/queries.ts'
import { Button } from '../../ui/button.tsx'
import { MenuButton } from '../../ui/menu-button.tsx'
import type { Change } from './campaign-draft.ts'
import { type CampaignDraft, isEmptyDraft } from './campaign-draft.ts'

interface BarProps {
  workspace: Workspace
  draft: CampaignDraft
  change: Change
  onDiscard: () => void
  busy: boolean
  children: ReactNode
}

export function EditorBar({ workspace, draft, change, onDiscard, busy, children }: BarProps) {
  const isTooLong = lengthOf(draft.name) > nameMax
  return (
    <header className="flex min-h-[53px] shrink-0 flex-wrap items-center gap-x-2 gap-y-1 border-b border-line px-2 py-2 lg:px-5">
      <MenuButton />
      <Link
        to="/w/$workspace_id/campaigns"
        params={{ workspace_id: workspace.id }}
        aria-label="All campaigns"
        className="grid size-8 shrink-0 place-items-center rounded-lg text-soft hover:bg-hover hover:text-ink pointer-coarse:size-11"
      >
        <ChevronLeft aria-hidden className="size-4" />
      </Link>
      <h1 className="sr-only">New campaign</h1>
      <input
        aria-label="Name of the campaign"
        aria-invalid={isTooLong}
        placeholder="Name this campaign"
        value={draft.name}
        disabled={busy}
        autoComplete="off"
        onChange={(event) => change((each) => ({ ...each, name: event.target.value }))}
        className="h-8 min-w-0 flex-1 rounded-lg bg-transparent px-2 text-lg font-semibold hover:bg-hover aria-invalid:text-danger"
      />
      <span className="hidden text-xs text-muted min-[1181px]:inline">
        {isStored() ? 'Draft, kept in this browser' : 'This browser keeps no drafts'}
      </span>
      <Button size="small" kind="quiet" disabled={busy || isEmptyDraft(draft)} onClick={onDiscard}>
        Discard
      </Button>
      {children}
    </header>
  )
}
