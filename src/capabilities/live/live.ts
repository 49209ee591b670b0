/** The dashboard's live streams: marks for the pages that are open, one stream per browser. */
import { listAudiences } from '../../access/sessions.ts'
import type { App } from '../../app.ts'
import type { UserCaller } from '../../contract.ts'
import { ApiError } from '../../lib/errors.ts'
import { Live } from '../../route.ts'
import { Presence } from './presence.ts'
import { Streams } from './streams.ts'

const all = new WeakMap<App, Streams>()
const presences = new WeakMap<App, Presence>()

/** Runs from the start, to learn the presence of users in other processes. */
export function presenceOf(app: App): Presence {
  const presence = presences.get(app) ?? new Presence(app)
  presences.set(app, presence)
  return presence
}

export function streamsOf(app: App): Streams {
  const streams = all.get(app) ?? new Streams(app)
  all.set(app, streams)
  return streams
}

/** Streams marks for this session's user, from now on. */
export async function openStream(app: App, { via }: UserCaller): Promise<Live> {
  const [audience] = await listAudiences(app.db, [via.id])
  if (!audience) throw new ApiError('not_signed_in')
  const streams = streamsOf(app)
  if (!streams.hasPlaceFor(audience)) throw new ApiError('stream_unavailable', { retry_after: 30 })
  return new Live((sink) => streams.add(audience, sink))
}

/** Called when the service stops: browsers reconnect to another process. */
export function endStreams(app: App): void {
  all.get(app)?.endAll()
}
