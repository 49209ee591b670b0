/** The states that a run of enough stories must reach: it proves nothing about a state that never occurs. */

/** Below this many stories a state may be missed by chance. */
export const enough = 200

export const mustReach: readonly string[] = [
  'recipient completed',
  'recipient replied',
  'recipient failed',
  'recipient ambiguous',
  'recipient cancelled',
  'recipient suppressed',
  'opted out',
  'answered by hand',
  'became refused platform_refused',
  'became released platform_refused',
  'became released never_written deadline',
  'became released never_written journal',
  'became ambiguous lease',
  'became ambiguous timeout',
  'became ambiguous unknown',
  'proven later',
  'taken up again',
  'crash between crossing and journal',
  'crash between journal and call',
  'crash with the answer unheard',
  'crash before the outcome is in the journal',
  'told by a journal',
  'a lost COMMIT',
  'a flood wait',
  'a late answer',
  'held by quota',
  'held by window',
  'held by flood_wait',
  'held by ambiguous',
  'held by paused',
  'held by gate',
  'held by account_not_ready',
]
