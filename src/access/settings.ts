/** Gates, allowlists and the dispatch switch, as every process sees them within a second. */
import type { KnownKey, Settings, Snapshot } from '../app.ts'
import { type Account, type Allowlist, type Gate, gates } from '../contract.ts'
import { type Database, type Sql, sql } from '../db/sql.ts'
import { ApiError } from '../lib/errors.ts'

const pollMs = 500
const staleMs = 1_000

export interface LiveSettings extends Settings {
  close(): void
}

interface State {
  readonly version: string
  readonly gates: readonly string[] | null
  /** Whether the allowlists could be read. */
  readonly listed: boolean
  readonly campaign_user: readonly string[] | null
  readonly campaign_workspace: readonly string[] | null
  readonly dispatch: boolean
  readonly now: Date
  readonly manual: boolean
}

/** Polls the version, and queries again when the last answer is over a second old. */
export function openSettings(db: Database): LiveSettings {
  let snapshot: Snapshot | undefined
  let seenAt = Number.NEGATIVE_INFINITY
  let looking: Promise<Snapshot> | undefined

  async function look(): Promise<Snapshot> {
    // The age counts from before the query: a change during the query may not be in its answer.
    const askedAt = performance.now()
    const state = await readState(db)
    // A later query has already answered: this answer is older.
    if (snapshot && askedAt < seenAt) return snapshot
    snapshot = makeSnapshot(state, snapshot)
    seenAt = askedAt
    return snapshot
  }

  function lookOnce(): Promise<Snapshot> {
    looking ??= look().finally(() => {
      looking = undefined
    })
    return looking
  }

  // A failed poll needs no report: the next request reads the settings itself and reports the failure.
  const timer = setInterval(() => void lookOnce().catch(() => {}), pollMs)
  timer.unref()
  return {
    current: async () => (snapshot && performance.now() - seenAt < staleMs ? snapshot : lookOnce()),
    refresh: look,
    close: () => clearInterval(timer),
  }
}

/** One statement. Without the allowlists, everything that does not need them still works. */
async function readState(db: Database): Promise<State> {
  const state = await readWith(db, listed).catch((error) => {
    if (error instanceof ApiError && error.code === 'schema_unavailable') return readWith(db, unlisted)
    throw error
  })
  // Settings that cannot be read are never guessed: the request is refused.
  if (!state || !/^\d+$/.test(state.version)) {
    throw new ApiError('schema_unavailable', {
      detail: 'The settings of this instance cannot be read. Retry the request.',
    })
  }
  return state
}

const listed = sql`true as listed,
  (select array_agg(a.id) from allowlists a where a.list = 'campaign_user') as campaign_user,
  (select array_agg(a.id) from allowlists a where a.list = 'campaign_workspace') as campaign_workspace`
const unlisted = sql`false as listed, null as campaign_user, null as campaign_workspace`

/** Every column names its table: a missing one must not be taken for the column of that name in the outer `settings`. */
function readWith(db: Database, allowlists: Sql): Promise<State | undefined> {
  return db.maybe<State>(sql`
    select s.value #>> '{}' as version, ${allowlists},
      (select array_agg(g.name) from gates g where g.enabled) as gates, -- guard: names of gates
      (select d.value from settings d where d.name = 'dispatch') is not distinct from 'true'::jsonb as dispatch,
      domain_now() as now,
      exists (select from manual_clock) as manual
    from settings s where s.name = 'version'`)
}

function makeSnapshot(state: State, before: Snapshot | undefined): Snapshot {
  const readAt = performance.now()
  const same = before?.version === state.version
  const open = new Set<string>(state.gates)
  return {
    version: state.version,
    // An unknown name in the table opens nothing.
    gates: new Set<Gate>(gates.filter((gate) => open.has(gate))),
    allowlists: state.listed
      ? ({
          campaign_user: new Set(state.campaign_user),
          campaign_workspace: new Set(state.campaign_workspace),
        } satisfies Record<Allowlist, ReadonlySet<string>>)
      : undefined,
    dispatch: state.dispatch,
    now: () => new Date(state.now.getTime() + (state.manual ? 0 : performance.now() - readAt)),
    callers: same ? before.callers : new Map<string, KnownKey>(),
    accounts: same ? before.accounts : new Map<string, Promise<readonly Account[]>>(),
  }
}
