/**
 * The files that this process sends right now. Each holds a chunk and the buffer of its socket until the client has read them,
 * which one that stalls puts off for a minute (`http/sockets.ts`).
 */
import { ApiError } from '../../lib/errors.ts'
import { findGivingWay, type Share } from '../../lib/shares.ts'
import type { Sending } from '../../route.ts'

/** Half a megabyte each. A page of the inbox has fewer pictures, and they are sent in milliseconds. */
const perWorkspace = 60 // limit: files sent to a workspace
const perProcess = 200 // limit: files sent by a process

export interface SentFile {
  /** The answer begins: the place is free when it ends. */
  sendBy(sending: Sending): void
  /** There is no answer. */
  release(): void
}

interface Place {
  readonly share: Share
  sending: Sending | undefined
  hasGivenWay: boolean
}

/** The oldest first. */
const places = new Set<Place>()

/** Throws 429 if the workspace has all its places, or all are taken and no other workspace has more. */
export function sendFile(share: Share): SentFile {
  const own = [...places].filter((each) => each.share.workspace === share.workspace)
  if (own.length >= perWorkspace) throw tooMany() // guard: files sent to a workspace
  if (places.size >= perProcess) makeRoom(share) // guard: files sent by a process
  const place: Place = { share, sending: undefined, hasGivenWay: false }
  places.add(place)
  const release = () => void places.delete(place)
  return {
    sendBy(sending) {
      place.sending = sending
      sending.onEnd(release) // guard: a file that was sent is counted no more
      if (place.hasGivenWay) sending.cut()
    },
    release,
  }
}

/** The oldest answer of the workspace with the most ends before its length; its client may ask for the rest. */
function makeRoom(wanted: Share): void {
  const found = findGivingWay([...places], ({ share }) => share, wanted)
  if (!found || found.share.workspace === wanted.workspace) throw tooMany()
  places.delete(found)
  found.hasGivenWay = true
  found.sending?.cut()
}

function tooMany(): ApiError {
  return new ApiError('rate_limited', {
    detail:
      'Too many files are being sent right now. Read those that have begun, and retry in a few seconds.',
    retry_after: 5,
  })
}
