/**
 * Who gives way where a process has a total of something: the workspace with the most, there the user with the most. Nobody
 * gives way to one who would then have as much.
 */

/** On whose account a place is held. */
export interface Share {
  readonly workspace: string
  readonly user: string
}

/**
 * Which of the held places ends so that a new one finds room: the first in the list of the one with the most. The new one
 * counts for its own workspace and user, which may be these. Undefined if every user of that workspace has just one, and the
 * new one would be the same.
 */
export function findGivingWay<Place>(
  places: readonly Place[],
  shareOf: (place: Place) => Share,
  wanted: Share,
): Place | undefined {
  const held = places.map((place) => ({ place, share: shareOf(place) }))
  const workspaces = countBy([...held.map(({ share }) => share.workspace), wanted.workspace])
  const workspace = findMost(workspaces, wanted.workspace) // guard: the workspace with the most gives way
  const among = held.filter(({ share }) => share.workspace === workspace)
  const users = among.map(({ share }) => share.user)
  if (workspace === wanted.workspace) users.push(wanted.user)
  const counts = countBy(users)
  const user = findMost(counts, wanted.user) // guard: the user with the most gives way
  if (workspace === wanted.workspace && counts.get(user) === 1) return undefined
  return among.find(({ share }) => share.user === user)?.place
}

export function countBy(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1)
  return counts
}

/** If several have as many, the preferred one. */
function findMost(counts: ReadonlyMap<string, number>, preferred: string): string {
  let [found, most] = [preferred, counts.get(preferred) ?? 0]
  for (const [name, count] of counts) if (count > most) [found, most] = [name, count]
  return found
}
