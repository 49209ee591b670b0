/** The preview of the draft, asked for while the user types. */
import { useEffect, useRef, useState } from 'react'
import { ask } from '../../data/api.ts'
import type { CampaignRequest } from '../../data/api-types.ts'
import { type Forecast, isOf, noPreview, type PreviewState, Previews } from './previews.ts'

/** The first page of the timetable is all of a campaign for chats, and has the first message of any other. */
const timetableRows = 100

export function usePreview(workspace_id: string, body: CampaignRequest | undefined) {
  const [state, setState] = useState<PreviewState>(noPreview)
  const previews = useRef<Previews>(undefined)
  useEffect(() => {
    const asked = (request: CampaignRequest) =>
      ask('POST /w/{workspace_id}/campaigns/preview', {
        params: { workspace_id },
        query: { limit: timetableRows },
        body: request,
      }) as Promise<Forecast>
    previews.current = new Previews(asked, setState)
    return () => previews.current?.close()
  }, [workspace_id])
  const text = body ? JSON.stringify(body) : ''
  useEffect(() => previews.current?.want(body, text), [body, text])
  const isKnown = body !== undefined && state.of === text
  return {
    ...state,
    error: isKnown ? state.error : undefined,
    /** The forecast is of this very draft, with everyone in it. */
    isCurrent: body !== undefined && isOf(state, text),
    again: () => previews.current?.again(),
  }
}

export type Preview = ReturnType<typeof usePreview>
