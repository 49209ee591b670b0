/** A new campaign: who, what and when on the left, and on the right, always, what it will do. */

import { useQuery } from '@tanstack/react-query'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { useState } from 'react'
import { ask } from '../../data/api.ts'
import type { CampaignRequest } from '../../data/api-types.ts'
import { workspaceQuery } from '../../data/chats.ts'
import { keys } from '../../data/keys.ts'
import { useHere, useSession } from '../../data/place.ts'
import { queryClient, type Workspace } from '../../data/queries.ts'
import { type KeptPlace, useKept } from '../../data/use-kept.ts'
import { useStartForm } from '../../data/use-start-form.ts'
import { Button } from '../../ui/button.tsx'
import { ClosedCampaigns } from '../../ui/closed-page.tsx'
import { MenuButton } from '../../ui/menu-button.tsx'
import { Notice } from '../../ui/notice.tsx'
import { StartNotices } from '../../ui/start-notices.tsx'
import { useTitle } from '../../ui/title.ts'
import type { Change } from './campaign-draft.ts'
import { type CampaignDraft, emptyDraft, isEmptyDraft } from './campaign-draft.ts'
import { CopyNotice } from './copy-notice.tsx'
import { EditorBar } from './editor-bar.tsx'
import { PreviewPane } from './preview.tsx'
import { StartLine } from './start-line.tsx'
import { useView } from './use-view.ts'
import { What } from './what.tsx'
import { When } from './when.tsx'
import { Who } from './who.tsx'

export interface EditorSearch {
  /** The campaign whose texts and times the draft begins with. */
  copy?: string
}

export function CampaignEditorPage() {
  const workspace = useHere()
  useTitle('New campaign')
  const { data: state } = useQuery(workspaceQuery(workspace.id))
  const capability = state?.capabilities.create_campaign
  if (capability?.open === false) {
    return (
      <div data-own-bar className="flex h-dvh flex-col bg-surface">
        <header className="flex h-[53px] items-center gap-2 border-b border-line px-2 lg:px-5">
          <MenuButton />
          <h1 className="text-lg font-semibold">New campaign</h1>
        </header>
        <ClosedCampaigns closed_by={capability.closed_by} />
      </div>
    )
  }
  return <Editor workspace={workspace} />
}

function Editor({ workspace }: { workspace: Workspace }) {
  const { user } = useSession()
  const { copy } = useSearch({ from: '/inside/w/$workspace_id/campaigns/new' })
  const place = { user_id: user.id, workspace_id: workspace.id, kind: 'form', of: 'campaign' } as const
  const form = useKept<CampaignDraft>(place, emptyDraft)
  const { change, isLoaded } = form
  const draft = form.kept.value
  const view = useView(workspace.id, draft)
  const { about, faults, missing, body, preview, names, count, groups } = view
  const start = useStartCampaign(form, workspace.id, preview.again)
  const [discarded, setDiscarded] = useState<CampaignDraft>()
  return (
    <div data-own-bar className="flex h-dvh flex-col bg-surface">
      <EditorBar
        workspace={workspace}
        draft={draft}
        change={change}
        onDiscard={() => {
          setDiscarded(draft)
          void form.discard()
        }}
        busy={start.busy}
      >
        <StartLine
          preview={preview}
          body={body}
          names={names}
          count={count}
          because={view.because}
          busy={start.busy}
          onStart={(request) => void start.start(request)}
        />
      </EditorBar>
      <div className="min-h-0 flex-1 overflow-y-auto min-[981px]:grid min-[981px]:grid-cols-[minmax(0,1fr)_minmax(0,452px)] min-[981px]:overflow-hidden">
        <fieldset
          disabled={start.busy || !isLoaded}
          className="grid min-w-0 content-start gap-5.5 px-4 py-4.5 min-[981px]:overflow-y-auto lg:px-7"
        >
          <legend className="sr-only">The campaign</legend>
          {copy !== undefined && (
            <CopyNotice
              workspace_id={workspace.id}
              campaign_id={copy}
              draft={draft}
              isLoaded={isLoaded}
              change={change}
            />
          )}
          {discarded && isEmptyDraft(draft) && <Discarded draft={discarded} change={change} />}
          <StartNotices start={start} thing="campaign" />
          <Who
            workspace={workspace}
            draft={draft}
            change={change}
            people={about.people}
            chats={about.chats}
            error={view.audienceError}
            list={view.list}
          />
          <What draft={draft} change={change} faults={faults} />
          <When draft={draft} change={change} faults={faults} state={view.state} />
        </fieldset>
        <aside
          aria-label="What will happen"
          className="min-w-0 border-line bg-canvas px-4 py-4.5 max-[980px]:border-t min-[981px]:overflow-y-auto min-[981px]:border-l min-[981px]:px-5"
        >
          <PreviewPane
            preview={preview}
            missing={missing}
            count={count}
            groups={groups}
            names={names}
            change={change}
          />
        </aside>
      </div>
    </div>
  )
}

function useStartCampaign(form: KeptPlace<CampaignDraft>, workspace_id: string, onRefused: () => void) {
  const navigate = useNavigate()
  return useStartForm(form, {
    ask: (body, key) =>
      ask(
        'POST /w/{workspace_id}/campaigns',
        { params: { workspace_id }, body: body as CampaignRequest },
        { key },
      ),
    onDone: ({ campaign }) => {
      void queryClient.invalidateQueries({ queryKey: keys.campaigns(workspace_id) })
      void navigate({
        to: '/w/$workspace_id/campaigns/$campaign_id',
        params: { workspace_id, campaign_id: campaign.id },
      })
    },
    onRefused,
  })
}

function Discarded({ draft, change }: { draft: CampaignDraft; change: Change }) {
  return (
    <Notice tone="info">
      The draft is gone.{' '}
      <Button size="small" onClick={() => change(() => draft)}>
        Put it back
      </Button>
    </Notice>
  )
}
