/**
 * Single edits of the shipped source at its markers (`../faults/markers.ts`), each with the smallest test that must
 * fail with it. `still` must pass with it: the edit removes a guard and breaks nothing else.
 */
import type { Patch } from '../faults/patch.ts'
import { databaseMutants } from './database.ts'
import { erasingMutants } from './erasing.ts'
import { restoredMutants } from './restored.ts'
import { retentionMutants } from './retention.ts'
import type { SqlPatch } from './sql-functions.ts'

export interface Mutant {
  readonly what: string
  readonly patches: readonly Patch[]
  /** Edits of functions in the database of its tests. */
  readonly functions?: readonly SqlPatch[]
  readonly file: string
  /** The titles of its describe blocks and of the test, joined with spaces. */
  readonly test: string
  readonly still?: string
}

const crossing = {
  file: 'src/ledger/crossing.test.ts',
  still: 'a queued row of an account that may act crosses',
}

const clockSetBack = {
  file: 'src/ledger/positions.test.ts',
  still: 'claimAccounts skips an account whose owner is alive, and claims one whose lease has expired',
}
const rechecking = {
  file: 'src/ledger/recheck.test.ts',
  still:
    'a suppressed person gets no first message but others do, and an answer in a chat is not a first message',
}

const alerting = 'src/capabilities/alerts/alerts.test.ts'
const ledger = (name: string) => `src/ledger/${name}.test.ts`
const webhooks = (name: string) => `src/capabilities/webhooks/${name}.test.ts`
const stopping = { file: 'test/limits/webhook-stop.test.ts' }
const running = (name: string) => `src/capabilities/campaigns/running/${name}.test.ts`
const worker = (name: string) => `src/worker/${name}.test.ts`
const telegram = (name: string) => ({ file: `src/platform/telegram/${name}.test.ts` })

/** A value in a template of the shipped source. */
const value = (expression: string) => `$${'{'}${expression}}`

const connections = { file: 'src/db/sql.test.ts' }
const ownConnections = { file: 'test/own-connections.test.ts' }
const fairShares = { file: 'test/limits/fair-shares.test.ts' }
const sentFiles = {
  file: 'test/limits/sent-files.test.ts',
  still: 'a file that was read to its end has no place any more, nor has one that was only asked about',
}
const slowStart = { file: 'test/slow-start.test.ts' }
const largeBodies = {
  file: 'src/lib/text.test.ts',
  still:
    'the size of a body, before it is parsed may have the maximum of properties and items, wherever they are',
}
const turnsOfKeys = {
  file: 'src/lib/queue.test.ts',
  still: 'turns of many keys work that fails gives its turn back',
}
const playing = {
  file: 'src/capabilities/campaigns/play.test.ts',
  still: 'a play returns a page of the timetable, the load of every day and the end',
}

const platformStore = {
  file: 'src/capabilities/accounts/platform-store.test.ts',
  still: 'the session of an account is null before a login, and then what the login stored',
}

const servedFiles = { file: 'src/capabilities/media/media.test.ts' }
const downloading = { file: 'src/worker/downloads.test.ts', still: 'a download stores a whole file' }

const spreadsheets = {
  file: 'test/spreadsheets.test.ts',
  still: 'a file with username,name gives the same people at the terminal',
}

const underway = {
  file: 'web/src/data/underway.test.ts',
  still: 'a text that was written meanwhile is not replaced by one that was refused',
}

const typing = {
  file: 'web/src/data/kept.test.ts',
  still: 'what is typed is stored, and an emptied field is gone',
}

const chosenFiles = {
  file: 'web/src/pages/inbox/chosen-files.test.ts',
  still: 'a size has its unit',
}

const campaignEditor = {
  file: 'web/src/pages/campaign-editor/campaign-draft.test.ts',
  still: 'a draft becomes the request of the contract, for chats and for contacts',
}

const notifications = {
  file: 'web/src/data/live/notification-words.test.ts',
  still: 'with names and texts it shows what cannot be seen as codes, and no more than 200 characters',
}

/** Of the campaign editor and the board: they hold with a mutant of what names them. */
const aLocalStart = 'a local start is the instant that the service takes'
const cardsScrolledTo =
  'cards that were scrolled to follow the first ones, each once; a chat that left the stage meanwhile is not shown'

const chatList = {
  file: 'web/src/data/inbox-list.test.ts',
  still: 'two accounts can have the same chat',
}

const staleQueries = {
  file: 'web/src/data/live/stale.test.ts',
  still: 'a refused read waits the seconds of Retry-After',
}

const stream = {
  file: 'web/src/data/live/stream.test.ts',
  still: 'a stream that is cut is opened again, and says that marks may be missing',
}

const pipelinePage = {
  file: 'web/src/pages/pipeline/board-view.test.ts',
  still: 'a move shows at once in both stages and their counts, and once it is read nothing is counted twice',
}

const loggingIn = {
  file: 'src/capabilities/accounts/login.test.ts',
  still: 'a login stores the key, its user and CONNECTING, and names no secret in the audit log',
}

const accountRoutes = {
  file: 'src/capabilities/accounts/dashboard-routes.test.ts',
  still: 'POST /accounts/{account_id}/disable 200, then enable connects it again; a repeat changes nothing',
}

const callAccounts = {
  file: 'src/access/accounts.test.ts',
  still: "a read list_contacts at the dashboard sees no other workspace's account",
}

const stageRoutes = {
  file: 'src/capabilities/pipeline/dashboard-routes.test.ts',
  still: 'POST /stages 201 at the end, with its colour, and audited',
}
const columnRoutes = {
  file: 'src/capabilities/columns/dashboard-routes.test.ts',
  still: 'POST /columns 201 at the end, with its options in order, as the contract lists it',
}

const savedReplies = {
  file: 'src/capabilities/saved-replies/saved-replies.test.ts',
  still: 'POST /saved_replies 201, and the list has it by title',
}

const loginRoutes = {
  file: 'src/capabilities/accounts/login-routes.test.ts',
  still: 'POST /accounts/{account_id}/logout 200 once the key is revoked and deleted; 409 if there is none',
}

const proxies = {
  file: 'test/proxies.test.ts',
  still: 'parley account set sets a proxy, reads one with credentials from a line, and removes it',
}

const dataCentre = (name: string) => ({ file: `test/platform/mtproto/${name}.test.ts` })

const personRecord = {
  file: 'src/capabilities/person-record/person-record.test.ts',
  still: 'GET /people 200 by every name, in any spelling, with one person for all accounts',
}

const personExport = {
  file: 'src/capabilities/person-record/person-export.test.ts',
  still:
    'GET /people/{person_id}/export 404 for a person of another workspace and an id that is none, and nothing is recorded',
}
const zipping = {
  file: 'src/lib/zip.test.ts',
  still: 'a ZIP archive without entries is empty',
}

type MutantTests = Pick<Mutant, 'file' | 'still'>

/** Replaces the line of the marker, or removes it. */
function mutant(place: MutantTests, marker: string, test: string, replace = '', what = marker): Mutant {
  return { what, patches: [{ marker, replace }], test, ...place }
}

/** Removes a condition of the boundary. */
const crosses = (marker: string, test: string) => mutant(crossing, marker, `does not cross ${test}`)

const disabled = {
  file: 'src/capabilities/workspaces/disabled.test.ts',
  still: 'POST /workspaces/{workspace_id}/disable 404 for a workspace that does not exist',
}
const disabledRefused =
  'POST /workspaces/{workspace_id}/disable 200: keys and members are refused, and not those of the workspace next to it'

const settling = { file: ledger('settle'), still: "the row's own attempt settles submitting: completed" }
const advancing = {
  file: ledger('positions'),
  still: 'advancePositions moves the position of an account that is ours, and counts the write',
}
const claiming = {
  file: ledger('positions'),
  still: 'claimAccounts skips an account whose owner is alive, and claims one whose lease has expired',
}
const ownServer = { file: 'test/own-postgresql.test.ts' }
const counting = { file: 'test/redis.test.ts' }
const handingOver = { file: ledger('hand-over') }
const wasLive = 'a send to an account that was live'
const wasNotLive = 'a send to an account that was not live'
const testServers =
  "PARLEY_TELEGRAM_DC=test means Telegram's published test servers, in test mode, with their key"
const holding = {
  file: ledger('holds'),
  still: 'an error that is not listed counts in its order when many outcomes are recorded at once',
}
const unlisted = 'an error that is not listed'
const heldCampaigns =
  'campaigns of an account whose sends keep ending with an unknown error hold until a person enables it; every page says why, and single messages go on'
const sweeping = { file: ledger('sweep'), still: 'sweep keeps an attempt whose lease is valid' }
const puttingBack = {
  file: ledger('put-back'),
  still: 'putBack restores nothing for an account that this database does not have',
}
const attempting = { file: ledger('attempt'), still: 'sends a queued message once and completes it' }
const restoring = {
  file: ledger('restore-guard'),
  still: 'at the start operations cross when the database is the one this disk knows',
}
const planning = { file: 'src/capabilities/campaigns/planning/plan.test.ts' }
const messages = { file: running('crossing') }
const journalling = {
  file: ledger('journal'),
  still: 'a line cut off by a full disk does not corrupt the next one',
}

const repliedInFlight = {
  file: 'src/capabilities/campaigns/running/outcomes.test.ts',
  still: 'a reply that was written before our first message does not end the sequence',
}
const attemptingMessages = {
  file: running('message-attempt'),
  still: 'a person who is suppressed while their message is in flight does not hold up another person',
}
const lookedUp = 'a contact found by name, whose phone is suppressed at the look-up'
const lateOutcome = 'a late outcome of a message whose recipient'
const crossingDirectly = { file: ledger('direct-crossing') }
const leftAlone = 'skips what another transaction has locked'
const anotherAccount =
  'a campaign message that another account of its pool sent, according to the journal known as submitting: account, chat and day are restored, and each day has its use'
const incoming = { file: worker('incoming') }
const entryPeople = { file: 'src/capabilities/suppressions/dashboard-routes.test.ts' }
const zoneChanges = { file: 'src/rules/zones.test.ts' }
const byHand = { file: running('hand-messages') }
const byHistory = 'a reply, and a request to stop in a page of history'
const atRest = { file: 'src/lib/memory-at-rest.test.ts' }
const elsewhere = 'another account of the pool'
const unrecorded = 'a deletion of a message whose outcome is not recorded yet'
const restored = 'what a restore has lost'

const poolGuards = { file: 'test/pools.test.ts' }
const runs = {
  file: ledger('runs'),
  still: 'listBehind names accounts of which the database has fewer writes, or none at all',
}
const scenes = { file: 'src/capabilities/people/scenes.test.ts' }
const identities = { file: 'src/capabilities/campaigns/running/identities.test.ts' }
const campaignPeople = {
  file: 'src/capabilities/campaigns/running/campaign-people.test.ts',
  still: 'the person of a campaign of a campaign of chats may be in two accounts',
}
const twoProcesses =
  'two names of one person that cross at once from two processes: one message crosses, the other recipient ends as a duplicate'
const confirmed = 'confirmAccounts skips it where'
const serverRestarted = 'after a restart of the database server'
const putBackWhole = 'the whole directory is restored, journals included'

/** Guards that span accounts. */
const pools: readonly Mutant[] = [
  crosses('guard: server run', 'the server was started again'),
  mutant(
    runs,
    'guard: confirmed in the run that was compared',
    `${confirmed} this worker compared in an earlier run`,
    'where true',
  ),
  mutant(runs, 'guard: only its worker confirms an account', `${confirmed} another worker has its lease`),
  mutant(
    runs,
    'guard: an account that is behind is not confirmed',
    `${confirmed} the database has forgotten writes of it`,
  ),
  mutant(runs, 'guard: confirmed once caught up', `${confirmed} it is not caught up`),
  mutant(
    runs,
    'guard: disabling lets the pools go on',
    'an account that is not confirmed blocks nothing once an operator disables it: READY before',
  ),
  mutant(
    restoring,
    'guard: a new run is noticed at the start',
    `${serverRestarted} a starting worker puts its journals back before anything crosses`,
    'return undefined',
  ),
  mutant(
    restoring,
    'guard: a new run of the server is noticed',
    `${serverRestarted} a running worker puts its journals back with the next heartbeat`,
  ),
  mutant(
    restoring,
    'guard: marks are compared',
    `${serverRestarted} every worker learns that commits which this process saw are missing`,
  ),
  mutant(
    puttingBack,
    'guard: what was removed is not forgotten',
    'listUnknown does not report an operation as lost that was deleted after its 30 days, but reports a later one',
  ),
  mutant(
    poolGuards,
    'guard: a pool is confirmed',
    `${putBackWhole} sends nothing again when the accounts connect in the order 2, 0, 1`,
    'as ready,',
  ),
  mutant(
    poolGuards,
    'guard: a pool is confirmed',
    `${putBackWhole} sends nothing again from an account whose contact another account took over in the meantime`,
    'and not (r.account_id is null and about.pool_unconfirmed) as ready,',
    'a pool is confirmed, for contacts that an account has taken',
  ),
  mutant(
    poolGuards,
    'guard: any account of the pool may have sent it',
    `${putBackWhole} sends nothing again when the accounts connect in the order 2, 0, 1`,
    'where false) sender',
  ),
  mutant(
    poolGuards,
    'guard: contacts of an unconfirmed account stay its own',
    'a lost account keeps its contacts in a new run until an operator disables it',
  ),
  mutant(
    poolGuards,
    'guard: confirmed in a run that is over',
    'a lost account also keeps its contacts in a new run that no worker has noticed yet',
    'select run_no from instance',
  ),
  mutant(
    poolGuards,
    'guard: a person who was written to under another name',
    `${putBackWhole} sends nothing again to a person with two names, whichever name is looked up first`,
    'return false',
  ),
  mutant(
    identities,
    'guard: one person of a batch',
    'a person who appears twice in a row gets one message, though two accounts find them in one batch',
    `const person = \`${value('account_id')} ${value('chat_id')}\``,
  ),
  mutant(
    scenes,
    'guard: a name is believed for an hour',
    'a first message that was released is not sent two hours later to somebody who has taken the name',
  ),
  mutant(
    planning,
    'guard: a name is asked about again',
    'the plan a contact whose name the platform told an hour ago',
    'return chat_id === null',
  ),
  mutant(
    planning,
    'guard: asking about the person known is no lookup',
    'the plan a flood wait for look-ups, of a contact whom a chat proves',
    'return mustAsk(recipient, now)',
  ),
  mutant(
    scenes,
    'guard: a look up ties at once',
    'a recipient is tied to a person by its own look-up: a name that changes hands before the crossing ends it',
  ),
  mutant(
    attemptingMessages,
    'guard: ties as it was picked',
    'a look-up that finds somebody ties the contact as it was picked, and not one that has changed since',
  ),
  mutant(
    scenes,
    'guard: a stored name ties at creation',
    'a recipient is tied to a person at creation by the name of a person in a chat of the account, who has given it away by then',
    'null',
  ),
  mutant(
    scenes,
    'guard: a stored name counts for a day',
    'a recipient is tied to a person at creation by a name that was learned within the day, and not by an older one',
    'true',
  ),
  mutant(
    scenes,
    'guard: a chat whose updates arrive',
    'a recipient is tied to a person not by what only an account that misses updates knows of a chat',
  ),
  mutant(
    scenes,
    'guard: a name from before the chat',
    'a recipient is tied to a person not by an older name that was seen an hour or more before the chat began',
  ),
  mutant(
    scenes,
    'guard: a contact without a chat',
    'a recipient is tied to a person not by an older name of a contact without a chat, of whose renames the platform does not tell',
  ),
  mutant(
    scenes,
    'guard: a name that two people have ties nobody',
    'a recipient is tied to a person not by a name that two people have as far as is known',
    'select case when true',
  ),
  mutant(
    scenes,
    'guard: a name on another platform',
    'a recipient is tied to a person at creation by the name of a person on its platform, whoever has the name on another',
  ),
  mutant(
    scenes,
    'guard: nobody is no proof',
    '"nobody" for a name that somebody had puts the first message off until the next day, which every page says',
    'if (false) {',
  ),
  mutant(
    scenes,
    'guard: a look up that was not planned',
    'the daily look-ups are waited for when the person known does not show the number',
    'void row',
  ),
  mutant(
    scenes,
    'guard: nobody is looked up by id',
    'the daily look-ups are not used by a chat that is started with somebody in a chat, or by number',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/forecast.test.ts' },
    'guard: a forecast counts look ups only',
    'a forecast counts a look-up only for those whom the account cannot ask about',
    'account.state.lookups++',
  ),
  mutant(
    scenes,
    'guard: the name that was asked for',
    'a person found by a number that they do not show through a campaign of A is tied to it: B may not write under the username',
    'null, null,',
  ),
  mutant(
    identities,
    'guard: a name that is another person',
    'a contact that a look-up found is looked up again when only the chat is known',
    'if (false) {',
  ),
  mutant(
    poolGuards,
    'guard: a proven message is recorded',
    `${putBackWhole} records what was sent to a person who is now suppressed, and does not send it`,
    'const suppressed = listed',
  ),
  mutant(campaignPeople, 'guard: a campaign writes to a person once', twoProcesses, 'and false'),
  mutant(
    { ...campaignPeople, still: twoProcesses },
    'guard: a person of before',
    'the person of a campaign of a release that knew no people is found before the loop has read it',
    'and false',
  ),
]

/** Shared by both boundaries: the deadline counts from after the COMMIT. */
const noClock = 'const startedAt = Number.NaN'
const clockAfterCommit: Patch = {
  marker: 'crash point 5',
  insert: 'if (Number.isNaN(startedAt)) startedAt = app.sources.now()',
}

const members = {
  file: 'src/capabilities/users/members.test.ts',
  still: 'GET /members 200 with everyone who belongs to the workspace, and no one who has left',
}
const departures = {
  file: 'src/capabilities/users/departures.test.ts',
  still: 'without a choice a webhook without a known maker goes on, and says so',
}
const keyRoles = { file: 'test/key-roles.test.ts', still: 'route × role × scope move_chat' }
const roleMatrix = { file: 'test/roles.test.ts', still: '/dashboard/api/w/{workspace_id} list_members' }
const oidc = {
  file: 'src/capabilities/oidc/oidc.test.ts',
  still: 'GET /dashboard/oidc/callback 302 to the requested page, as the linked user',
}
const bodies = {
  file: 'test/bodies.test.ts',
  still: 'a body over 256 KB 400 with a byte order mark, as a small one',
}
const bodyBudget = { file: 'src/http/body-budget.test.ts' }
const devices = { file: 'src/capabilities/sessions/devices.test.ts' }
const sockets = { file: 'test/limits/sockets.test.ts' }
const waits = { file: 'src/capabilities/events/events.test.ts' }
const timings = { file: ledger('timings'), still: 'an operation that does not exist is not shown' }
const connectionsOfAll =
  'parley doctor names a fault of connections that all running processes may open together'
const lockout = { file: 'test/lockout.test.ts' }
const setupLinks =
  'POST /members/{user_id}/setup-link 409 for an operator, and for a user who can already sign in'

/** Members of a workspace, and sign-ins at the identity provider. */
const people: readonly Mutant[] = [
  mutant(
    members,
    'guard: one owner remains',
    'the last owner stays, however many leave or step down at the same moment',
  ),
  mutant(
    members,
    'guard: a key needs a member',
    'DELETE /members/{user_id} 409 for a key that is created while its user leaves',
  ),
  mutant(
    { file: roleMatrix.file, still: '/dashboard/api/w/{workspace_id} get_me' },
    'guard: role of the caller',
    '/dashboard/api/w/{workspace_id} create_webhook',
    'return undefined',
  ),
  mutant(
    keyRoles,
    'guard: the role of the maker of a key',
    'route × role × scope create_webhook',
    "const own = via.kind === 'session' ? via.role : 'owner'",
  ),
  mutant(
    keyRoles,
    'guard: keys issued by operators keep their scopes',
    'route × role × scope create_webhook',
  ),
  mutant(
    keyRoles,
    'guard: older keys count as made by their user',
    "403 missing_role a key from before Parley stored who issued it counts as its user's own",
    "coalesce(k.issued_by, 'operator') as issued_by",
  ),
  mutant(
    { file: 'test/doctor.test.ts' },
    'guard: only older keys have lost something',
    'parley doctor names a fault of keys from before the role of their user counted',
    'where true',
  ),
  mutant(
    roleMatrix,
    'guard: members send no broadcasts',
    '/dashboard/api/w/{workspace_id} create_broadcast',
    "const senders = { scopes: ['send'] } as const",
  ),
  mutant(
    roleMatrix,
    'guard: scopes of a role',
    'scopes POST /keys: a member can give a key each scope of their own, and no other',
    'const scopes = scopesOfRole.owner',
  ),
  mutant(
    roleMatrix,
    'guard: no key beyond its maker',
    'scopes POST /keys: a member can give a key each scope of their own, and no other',
  ),
  mutant(
    {
      file: 'src/mcp/choices.test.ts',
      still: 'one session moves a chat and sets a column, knowing only the tools: modern',
    },
    'guard: choices for who may read them',
    'lists the eight tools without choices for a caller that may not read them, or with a closed gate',
    'if (!choices) return listed',
  ),
  mutant(
    {
      file: 'src/capabilities/chats/unknown-names.test.ts',
      still: 'POST /broadcast 400 with the stages, for a key that may read them',
    },
    'guard: names for who may read them',
    'POST /broadcast 400 without the stages and 404 without the columns, for a key with the scope send alone',
  ),
  ...(
    [
      [
        'guard: nothing is made by a former member',
        'at the same moment 403 for a webhook that a member makes while they are removed: nothing stays',
        'return',
      ],
      [
        'guard: making something waits for the end of a membership',
        'at the same moment 403 for a webhook that a member makes while they are removed: nothing stays',
      ],
      [
        'guard: the end of a membership waits for its makers',
        'at the same moment what a member is just making stops too: the removal waits for it',
        'where false',
      ],
      [
        'guard: webhooks end with the role of their maker',
        'PATCH /members/{user_id} 200 stops the webhooks of an admin who becomes a member, and of no other; who activates one takes it over',
        'const mayHave = true',
      ],
      [
        'guard: nothing is made with a lost role',
        'at the same moment 403 for a webhook that an admin makes while they become a member: nothing stays',
      ],
      [
        'guard: open pages show the end of a membership',
        'without a choice the terminal notifies open pages of what has ended',
      ],
      [
        'guard: webhooks of a member who leaves',
        'at the same moment 403 for a webhook that a member makes while they are removed: nothing stays',
      ],
      [
        'guard: keys of a member who leaves',
        'at the same moment 403 for a key that a member makes while they are removed: nothing stays',
      ],
      [
        'guard: campaigns of a member who leaves',
        'at the same moment 403 for a campaign that a member makes while they are removed: nothing stays',
      ],
      [
        'guard: broadcasts of a member who leaves',
        'at the same moment 403 for a broadcast that a member makes while they are removed: nothing stays',
      ],
      [
        'guard: links of an admin who leaves',
        'at the same moment 403 for a set-up link that a member makes while they are removed: nothing stays',
      ],
      [
        'guard: a webhook that a leaving member redirects',
        'at the same moment 403 for the address of a webhook that a member makes while they are removed: nothing stays',
      ],
      [
        'guard: logins of a member who leaves',
        'at the same moment 403 for a login that a member makes while they are removed: nothing stays',
      ],
      [
        'guard: a former member takes nothing over',
        'at the same moment 403 for a taker who is removed while they take over: nothing is done',
      ],
      [
        'guard: campaigns that are not taken over stop',
        'DELETE /members/{user_id} 200 stops webhooks and campaigns that the caller does not take over, and says why',
        'const halted = { paused: [], cancelled: [] }',
      ],
      [
        'guard: only those who may run campaigns take them over',
        'DELETE /members/{user_id} 400 for a member who leaves and takes something over, 403 for a taker off the allowlist',
      ],
      [
        'guard: only webhooks of the member are taken over',
        'DELETE /members/{user_id} 409 for a webhook that is not of this member: nothing is done',
        `where workspace_id = ${value('workspace_id')}`,
      ],
      [
        'guard: only campaigns of the member are taken over',
        'DELETE /members/{user_id} 409 for a webhook that is not of this member: nothing is done',
        `where k.workspace_id = ${value('workspace_id')}`,
      ],
      [
        'guard: a new address has a new maker',
        'PATCH /webhooks/{webhook_id} 200: a user who sets the address becomes its maker, so it stops with them',
        'false',
      ],
      [
        'guard: resuming takes over what a former member made',
        'resuming a campaign of a former member makes it the campaign of the admin who resumes it',
        'user_id = case when false and not exists (',
      ],
    ] as const
  ).map(([marker, test, replacement]) => mutant(departures, marker, test, replacement)),
  mutant(members, 'guard: no link for an operator', setupLinks, 'select true'),
  mutant(members, 'guard: no link beside another way in', setupLinks),
  mutant(
    members,
    'guard: no link into another workspace',
    'POST /members 201 without a link for a user of another workspace: it would open that one too',
    'and false',
  ),
  mutant(
    members,
    'guard: links from before a further workspace',
    'a set-up link that its receiver keeps does not open a workspace that its user is added to later',
  ),
  mutant(
    members,
    'guard: links from before an operator',
    'a set-up link that its receiver keeps does not make its holder an operator',
  ),
  mutant(
    members,
    'guard: links from before an owner',
    'a set-up link that its receiver keeps does not make its holder an owner',
  ),
  mutant(
    { file: 'src/capabilities/sessions/sessions.test.ts' },
    'guard: a session that has ended',
    'POST /dashboard/api/password 401 when the session ended, or the password changed, after the check',
  ),
  mutant(
    { file: 'src/capabilities/sessions/sessions.test.ts' },
    'guard: no hash for a link that is not good',
    'POST /dashboard/api/setup an invalid link computes no hash',
  ),
  mutant(
    { file: 'src/capabilities/sessions/sessions.test.ts' },
    'guard: what was compared still holds',
    'POST /dashboard/api/sign-in 401 when the password changed, or the user was disabled, after it was compared',
  ),
  mutant(members, 'guard: roles are for owners', 'POST /members 403 when an admin gives a role above member'),
  mutant(
    { file: 'test/people.test.ts' },
    'guard: owners are for owners',
    'DELETE /members/{user_id} answers as its line says to: admin',
  ),
  mutant(
    oidc,
    'guard: signature of the provider',
    'GET /dashboard/oidc/callback 401, and nothing is written: a token signed by a stranger',
  ),
  mutant(
    members,
    'guard: another owner can sign in',
    'the last owner 409 when giving up the role or leaving; with another owner both succeed',
  ),
  mutant(
    oidc,
    'guard: empty subject',
    'GET /dashboard/oidc/callback 401, and nothing is written: a blank subject',
  ),
  mutant(
    devices,
    'guard: a device token is signed',
    'a known browser is not signed in by its token, and a forged or changed token does not count',
  ),
  mutant(devices, 'guard: age of a device token', 'a known browser is known for 180 days'),
  mutant(
    bodies,
    'guard: large bodies are parsed in a thread',
    'a body over 256 KB is parsed in turn, and not for a caller who has left',
    'return parseJson(bytes)',
  ),
  mutant(
    bodies,
    'guard: an answered body is free',
    'a body counts until its answer: one of 7.9 MB after the other is read',
  ),
  mutant(
    bodies,
    'guard: creations of a workspace take turns',
    'POST /campaigns 201 one after the other in a workspace, while another workspace has its own turn',
  ),
  mutant(
    bodyBudget,
    'guard: bytes of bodies of one source',
    'a source that has more than its share loses the largest of its bodies that are still arriving',
    'const isOwnFull = () => false',
  ),
  mutant(
    bodyBudget,
    'guard: bytes of bodies of a process',
    'at the limit of the process the source with the most gives way, not the one that asks',
    'const isFull = () => false',
  ),
  mutant(
    bodyBudget,
    'guard: the source with the most bytes gives way',
    'at the limit of the process the source with the most gives way, not the one that asks',
    'const sources = most.sort(([, one], [, other]) => one - other)',
  ),
  mutant(
    bodyBudget,
    'guard: a reserve for sources with little',
    'whole bodies of some sources leave a reserve for those that have little',
    'const least = 0',
  ),
  mutant(
    devices,
    'guard: a known browser keeps its id',
    'a known browser keeps its id when it signs in again and when it changes the password: 10 sign-ins, then 429',
    "const id = randomBytes(16).toString('base64url')",
  ),
  mutant(
    { file: 'src/capabilities/sessions/sessions.test.ts' },
    'guard: sessions of a user',
    'a session is one of 20: a newer one ends the oldest, also if ten begin at once, and no other user loses any',
    'offset 1000',
  ),
  mutant(
    devices,
    'guard: links have their own queue',
    '200 for a set-up link, and for a new password, while strangers fill their queue',
    "return hashPassword(password, { lane: 'stranger', source: user_id })",
  ),
  mutant(
    { file: 'src/lib/lane-queue.test.ts' },
    'guard: no source takes all places',
    'a source gives places to others: the latest of the source that has most is refused',
    'return undefined',
  ),
  mutant(
    lockout,
    'guard: attempts of one source',
    'sign-ins under attack 429 for one source after 100 attempts, whatever X-Forwarded-For it sends',
  ),
  mutant(
    lockout,
    'guard: a known browser has its own place',
    'sign-ins under attack 200 for a known browser while 60 sources fill the queue',
    "? { lane: 'stranger', source: sourceOf(via.address) }",
  ),
  mutant(
    lockout,
    'guard: a full queue uses up no attempt',
    'sign-ins under attack 429 while the queue is full consumes no attempt',
  ),
  mutant(
    waits,
    'guard: waits of a key',
    'GET /events?wait= 429 for a fourth waiting request of one key, on any process; requests without wait are answered',
  ),
  mutant(
    waits,
    'guard: waits of a workspace',
    "GET /events?wait= 429 for a workspace's 21st waiting request, whatever the keys; another workspace may still wait",
  ),
  mutant(
    waits,
    'guard: waits are counted in turn',
    "GET /events?wait= 429 for a workspace's 21st waiting request, whatever the keys; another workspace may still wait",
  ),
  mutant(
    waits,
    'guard: a wait that is over gives its place back',
    'GET /events?wait= 429 for a fourth waiting request of one key, on any process; requests without wait are answered',
  ),
  mutant(
    waits,
    'guard: a wait ends with its key',
    'GET /events?wait= 401 when its key is revoked, and not only at the end of the wait',
  ),
  mutant(
    waits,
    'guard: a caller who leaves waits no longer for events',
    "GET /events?wait= 200 after a waiting caller has left, and after a dead process's waiting requests have expired",
  ),
  mutant(
    sockets,
    'guard: the source that has most',
    'cuts the source that has most, even if others are idle',
    'const candidate = { socket, rank, completeAt, count: 0 }',
  ),
  mutant(
    sockets,
    'guard: who waits for an answer is not cut',
    'keeps one that waits for its answer; if all of them do, refuses the new one',
    'return 1',
  ),
  mutant(
    { file: 'src/access/limits.test.ts' },
    'guard: idle callers go first',
    'in memory drops idle callers first: a caller with a request in its window keeps its count',
  ),
  mutant(
    { file: 'src/access/limits.test.ts' },
    'guard: refused callers go last',
    'in memory drops refused callers last, and before them those whose last request is longest ago',
    'return times.at(-1) ?? 0',
  ),
  mutant(
    { file: 'src/access/limits.test.ts', still: 'in memory counts each caller separately' },
    'guard: one place for all repeats in memory',
    'in memory counts a named place once while it is in the window',
  ),
  mutant(
    { file: 'src/access/limits.test.ts', still: 'in memory counts each caller separately' },
    'guard: one place for all repeats in the database',
    'in PostgreSQL counts a named place once, however many name it at the same time',
    'if (!own.allowed) return own',
  ),
  mutant(
    { file: 'src/access/limits.test.ts' },
    'guard: a refused attempt adds no row',
    'in PostgreSQL adds no row for a call that a later limit refuses',
    'if (!window.allowed) return window',
  ),
  mutant(
    { file: 'src/http/client-address.test.ts' },
    'guard: who may say where a client is',
    'where no proxy is trusted X-Forwarded-For changes nothing',
  ),
  mutant(
    { file: 'src/http/client-address.test.ts' },
    'guard: proxies behind proxies',
    'through a trusted proxy counts as the last address that is no proxy',
    'return address.toString()',
  ),
  mutant(
    { file: 'src/lib/addresses.test.ts' },
    'guard: one source for a network',
    'a source is an IPv4 address, or the first 64 bits of an IPv6 address, in any spelling',
    'return parsed.toString()',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/campaigns.test.ts' },
    'guard: first messages of other campaigns',
    "POST /campaigns/preview and GET /campaigns/{campaign_id}/forecast 200 without reading the texts of the account's other campaigns, which can be long",
    'sql`k.message_text`,',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/campaigns.test.ts' },
    'guard: follow_ups of other campaigns',
    "POST /campaigns/preview and GET /campaigns/{campaign_id}/forecast 200 without reading the texts of the account's other campaigns, which can be long",
    'stepsOf,',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: bytes of a text file',
    'POST /suppressions/import 413 for a file beyond 64 MiB, at once if it says so, otherwise when it exceeds that',
    'const max = Number.POSITIVE_INFINITY',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: media type of a text file',
    'POST /suppressions/import 415 for anything but plain CSV in UTF-8',
    'const sound = true',
  ),
  mutant(
    { file: 'test/doors.test.ts' },
    'guard: a file only where the route takes one',
    'requests from another site change nothing, and the same from our own page does',
    'const sound = true',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: nothing of a refused text stays stored',
    'POST /suppressions/import a file that breaks off imports nothing and leaves nothing stored',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: imports leave connections free',
    'POST /suppressions/import 429 for a third import at once, so that other requests find connections',
  ),
  mutant(
    {
      file: 'src/capabilities/users/operator-routes.test.ts',
      still:
        'a user who is created as an operator gets a set-up link, and one who can sign in already gets none',
    },
    'guard: only an operator disables an operator',
    'of two operators who disable each other, or take the role from each other, at the same time, one stays',
  ),
  mutant(
    {
      file: 'src/events/wake.test.ts',
      still: 'within one process wakes the listeners of the topic until they stop',
    },
    'guard: the service on an embedded database sends nothing',
    'between processes one that does not send is woken by another, gets its marks, and sends nothing itself',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: one import of a workspace at a time',
    'POST /suppressions/import 429 while another file is being imported into the same list, not into others',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: a user has one place for imports',
    'POST /suppressions/import 429 for a second file of the same user, into the list of another workspace',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: a workspace has one place for imports',
    'POST /suppressions/import 429 for a second file of the same workspace, which neither takes nor frees a place',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: a stop ends an import',
    'POST /suppressions/import 503 when the service stops: nothing is imported, and nothing keeps it from stopping',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: a reader of an export who leaves waits no longer',
    'a caller who waits for a turn of an export and leaves waits no longer',
    '    const turn = { key: workspace_id, timer: sources.timer, left: undefined }',
  ),
  mutant(
    { file: 'test/import-stop.test.ts' },
    'guard: closing ends what waits for the stop',
    'parley suppress import a stop ends it: nothing is stored, and no PostgreSQL stays behind',
  ),
  mutant(
    { file: 'test/import-stop.test.ts' },
    'guard: no server stays behind a forced end',
    'parley start one that does not end is cut off, and no PostgreSQL stays behind',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: a stop ends an upload',
    'POST /suppressions/import 503 when the service stops: nothing is imported, and nothing keeps it from stopping',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: one export of a workspace at a time',
    'GET /suppressions/export 429 for a second one of a workspace while the first is not read, and 200 once that has left',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/list-file.test.ts' },
    'guard: the place of an export is free again',
    'GET /suppressions/export 429 for a second one of a workspace while the first is not read, and 200 once that has left',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/import-table.test.ts' },
    'guard: invalid rows of an import',
    'a file with more than a million invalid rows is refused with the line',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/import-table.test.ts' },
    'guard: a row costs no more than its cells',
    'a row costs no more than its cells, however many columns the first line names',
  ),
  mutant(
    { file: 'src/capabilities/users/operator-routes.test.ts' },
    'guard: one spelling of a user id',
    '409 for an operator who disables themselves under their id in capitals',
    'const userParams = z.strictObject({ user_id: z.string() })',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/dashboard-routes.test.ts' },
    'guard: the reason of a removal',
    'POST /suppressions/remove 200 for an admin, with the reason in the audit log; 404 for what is not on the list',
    'const detail = row',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/dashboard-routes.test.ts' },
    'guard: sentences of a broadcast are for people',
    'GET /broadcast/{broadcast_id} 200: at the dashboard each recipient has its sentence; keys get none',
    'const sentences = true',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/dashboard-routes.test.ts' },
    'guard: sentences of a preview are for people',
    'POST /campaigns/preview 200: at the dashboard each excluded recipient has its sentence; keys get the code alone',
    'const sentences = true',
  ),
  mutant(
    { file: 'src/lib/addresses.test.ts' },
    'guard: zones of addresses',
    'an address has one strict form',
    'return isIP(text) === 0 ? undefined : ipaddr.process(text)',
  ),
  mutant(
    { file: 'src/config.test.ts' },
    'guard: the smallest pool',
    'the configuration names every fault at once, and repeats no value',
    'PARLEY_POOL_SIZE: wholeNumber(2, 500).default(10),',
  ),
  mutant(
    { file: 'src/config.test.ts' },
    'guard: networks of proxies are not all',
    'the configuration accepts trusted proxies, by address and by network, and never all addresses',
  ),
  mutant(
    oidc,
    'guard: age of a flow',
    'GET /dashboard/oidc/callback 401 after ten minutes, and for a cookie copied from elsewhere',
  ),
  mutant(
    oidc,
    'guard: a reassigned address',
    'an e-mail address does not link a user who already has an account at the provider: addresses are reassigned',
  ),
]

const directories = {
  file: 'src/db/data-directory.test.ts',
  still: 'accepts a directory that a group may write to',
}

/** The command line, and where it acts. */
const terminal: readonly Mutant[] = [
  mutant(
    { file: 'src/config.test.ts', still: 'the configuration accepts the address https://a.example/@b' },
    'guard: origin and path',
    'the configuration refuses the address https://ana:hunter2@parley.example/path, without repeating it',
    '.refine((text) => URL.canParse(text), {',
  ),
  mutant(
    directories,
    'guard: a directory that everybody may write to',
    'refuses a directory of mode 1777, which every user may write to, and changes nothing in it',
    'if (false) {',
  ),
  mutant(
    directories,
    'guard: owner of a secret',
    'a secret of another user makes the directory refused, before anything is created in it',
    'if (false) {',
  ),
  mutant(
    { file: 'test/command-line.test.ts' },
    'guard: a read makes nothing',
    'in a data directory without a Parley gate list refuses and creates nothing',
  ),
  mutant(
    { file: 'test/command-line.test.ts' },
    'guard: a command makes no second secret',
    'a command without the PARLEY_SECRET of the service refuses, and makes no other secret',
    "return { secret: await keepSecret(secret), old: undefined, from: 'files' }",
  ),
]
const approving = {
  file: 'src/capabilities/approvals/bindings.test.ts',
  still: 'the update consumes the token when nothing has changed',
}

const placeholders = {
  file: 'src/rules/placeholders.test.ts',
  still: 'personalization treats a value as text: brackets in a name are not filled',
}

/** The contract's rules for texts, addresses and answers. */
const contract: readonly Mutant[] = [
  mutant(
    placeholders,
    'guard: only placeholders between the brackets',
    'personalization accepts only a known word between the brackets: [[first name]]',
  ),
  mutant(
    {
      file: 'src/capabilities/campaigns/campaigns.test.ts',
      still:
        'POST /campaigns/{campaign_id}/pause, resume and cancel 200 for a repeat with the same key, 409 for the same key on another campaign',
    },
    'guard: one spelling of a campaign id',
    'POST /campaigns/{campaign_id}/pause, resume and cancel 200 for a repeat that spells the id in capitals: it is the same campaign',
    "campaign_id: z.guid().meta({ description: 'The campaign.' }),",
  ),
  mutant(
    {
      file: 'src/capabilities/campaigns/campaigns.test.ts',
      still:
        'POST /campaigns/{campaign_id}/pause, resume and cancel 200 from status to status, and whether it changed',
    },
    'guard: a key changes campaigns of its user only',
    "POST /campaigns/{campaign_id}/pause, resume and cancel 404 for changing another user's campaign, which may still be read",
    "return via.kind === 'terminal' ? { workspace_id, user_id } : { workspace_id }",
  ),
  mutant(
    {
      file: 'test/missing-columns.test.ts',
      still:
        'the checks before an operation 503 without gates.enabled for what needs it, and everything else as before',
    },
    'guard: names of gates',
    'the checks before an operation 503 without gates.name for what needs it, and everything else as before',
    '(select array_agg(name) from gates where enabled) as gates,',
  ),
  mutant(
    placeholders,
    'guard: a placeholder of the other form',
    "personalization refuses a word in the other document's form in any spelling: name",
  ),
]

const streams = {
  file: 'src/capabilities/live/live.test.ts',
  still: 'GET /stream 200 with the headers of a stream that no proxy buffers',
}
const fullOfStreams = { file: 'test/limits/streams.test.ts' }
const displacedStreams = {
  file: 'src/capabilities/live/streams.test.ts',
  still: 'no stream gives way where all have as many',
}
const marks = {
  file: 'src/events/wake.test.ts',
  still: 'marks of a few milliseconds arrive together, equal ones once',
}
const learning = { file: 'src/capabilities/live/marks.test.ts' }
const everyCaller = { file: 'test/people.test.ts', still: 'GET /keys answers as its line says to: member' }
const operatorRoutes = {
  file: 'src/capabilities/instance/instance.test.ts',
  still: 'GET /instance 200 with the workers, and which of their loops fail',
}
const inbox = {
  file: 'src/capabilities/chats/inbox.test.ts',
  still: 'GET /inbox 200 page by page: every chat once, in each view',
}
const timeline = {
  file: 'src/capabilities/timeline/timeline.test.ts',
  still: 'GET /chats/{chat_id}/timeline 200 around a message, and continuing from there in both directions',
}
const noting = {
  file: 'src/capabilities/notes/notes.test.ts',
  still: 'POST /chats/{chat_id}/notes 201 for an account that is not READY: a note reaches no platform',
}
const assigning = {
  file: 'src/capabilities/chats/assignees.test.ts',
  still: 'PUT /chats/{chat_id}/assignee 200 for a member, and for none',
}
const everyStatus = 'GET /inbox 200 with the chats of accounts in every status, though keys do not see them'
const hidden =
  'GET /chats/{chat_id}/timeline 200 without a gap: what is older than the stored history stays hidden, notes of that time too'
/** What a team reads and writes about its chats. */
const team: readonly Mutant[] = [
  mutant(inbox, 'guard: members read accounts in every status', everyStatus, 'return false'),
  mutant(
    inbox,
    'guard: members read accounts in every status',
    everyStatus,
    'return true',
    'keys read accounts in every status',
  ),
  mutant(
    inbox,
    'guard: stages behind their gate',
    'GET /inbox 200 with stages only while the gate pipeline is open',
    'p.stage_key,',
  ),
  mutant(
    inbox,
    'guard: column values behind their gate',
    'GET /inbox 200 with the values of the first columns, cut, only while the gate crm is open',
  ),
  mutant(
    inbox,
    'guard: a message stands for its operation',
    'GET /inbox 200 with accepted for our own last message, also while the ledger does not know it yet',
    'and false',
  ),
  ...[
    'guard: a timeline has no gap',
    'guard: notes wait for the messages of their time',
    'guard: operations wait for the messages of their time',
  ].map((marker) => mutant(timeline, marker, hidden)),
  mutant(
    everyCaller,
    'guard: timelines of own accounts',
    'GET /chats/{chat_id}/timeline answers as its line says to: member',
  ),
  mutant(
    everyCaller,
    'guard: notes on chats of own accounts',
    'POST /chats/{chat_id}/notes answers as its line says to: member',
  ),
  mutant(
    everyCaller,
    'guard: assignments of own accounts',
    'PUT /chats/{chat_id}/assignee answers as its line says to: member',
  ),
  mutant(
    everyCaller,
    'guard: operators do not disable themselves',
    'POST /users/{user_id}/disable answers as its line says to: operator',
    'if (user_id) return',
  ),
  mutant(
    operatorRoutes,
    'guard: operators do not read who is on a list',
    'the operators’ routes 200 with nothing of a chat of a workspace that the operator does not belong to',
    'then a.detail::jsonb',
  ),
  mutant(
    everyCaller,
    'guard: operations of another workspace',
    'POST /operations/{operation_id}/close answers as its line says to: member',
  ),
  ...['guard: notes of another workspace', 'guard: notes of a colleague'].map((marker) =>
    mutant(
      noting,
      marker,
      'DELETE /notes/{note_id} 200 for its author and for admins, 403 for colleagues, 404 once it is gone',
      marker === 'guard: notes of a colleague' ? 'const may = true' : '',
    ),
  ),
  mutant(
    assigning,
    'guard: assigned to members only',
    'PUT /chats/{chat_id}/assignee 404 for users of other workspaces, former members and unknown users, and nothing changes',
  ),
  mutant(
    assigning,
    'guard: an assignment ends with the membership',
    'PUT /chats/{chat_id}/assignee never outlives a membership that ends while the chat is being assigned',
  ),
]

/** What the live stream carries, for whom, and how many there may be. */
const live: readonly Mutant[] = [
  mutant(
    streams,
    'guard: a route marks what it touches',
    'GET /stream 200 says where a request changed something, and not what',
  ),
  mutant(
    streams,
    'guard: marks of own workspaces',
    'GET /stream 200 delivers each of 10,000 marks of two workspaces to its members and to no other user',
    'const own = [...sorted.workspaces]',
  ),
  mutant(
    streams,
    'guard: memberships of a stream',
    'GET /stream 200 delivers no more marks of a workspace that the user has left',
    'if (audience) void 0',
  ),
  mutant(
    streams,
    'guard: a stream ends with its session',
    'GET /stream 200 carries a comment, and ends when its session has ended meanwhile',
  ),
  mutant(
    streams,
    'guard: a stream is no use of its session',
    'GET /stream 200 does not count as use of the session',
    'const used = true',
  ),
  mutant(streams, 'guard: the stream is for our own pages', 'GET /stream 403 for pages of other sites'),
  mutant(
    streams,
    'guard: streams of a session',
    "GET /stream 200 replaces the session's oldest stream beyond five",
  ),
  mutant(
    streams,
    'guard: streams of a user',
    "GET /stream 200 replaces the user's oldest stream beyond fifty, of whatever session",
  ),
  mutant(
    fullOfStreams,
    'guard: streams of a process',
    '503 where each user has one until one closes, and a stop waits for none of them',
    'const isFull = false',
  ),
  mutant(
    displacedStreams,
    'guard: the workspace with the most gives way',
    'the workspace with the most streams gives way, even if none of its users has several',
    'const workspace = wanted.workspace',
  ),
  mutant(
    displacedStreams,
    'guard: the user with the most gives way',
    'within one workspace the user with the most gives way, which may be the one who asks',
    'const user = wanted.user',
  ),
  {
    what: 'guard: a reader that does not read',
    patches: [
      { marker: 'guard: a reader that does not read', replace: 'const reads = true' },
      // The socket's own limit would cut the stream after a minute.
      { marker: 'limit: reader without progress', replace: 'const stalledMsMax = 600_000' },
    ],
    test: 'GET /stream 200 is cut off when the client does not read',
    ...streams,
  },
  mutant(learning, 'guard: ingest marks what it stores', 'a page learns that a person wrote'),
  mutant(
    learning,
    'guard: a request to stop marks the list',
    'a page learns that a person asked to stop, so that an open suppression list shows it',
  ),
  mutant(
    learning,
    'guard: the ledger marks operations',
    'a page learns how a send ended, also one of another caller',
  ),
  mutant(learning, 'guard: accounts are marked', 'a page learns that an operator disabled an account'),
  mutant(
    learning,
    'guard: a request is marked for its user',
    "a page learns that an agent with the user's key waits for an approval, and other users do not",
  ),
  mutant(
    streams,
    'guard: presence ends',
    'POST /chats/{chat_id}/presence 200 forgets a user after 30 s without a request',
    '([id]) => id !== user_id,',
  ),
  mutant(
    marks,
    'guard: own marks arrive once',
    'marks travel to the other process in notifications that PostgreSQL accepts, and come back to none',
    'this.#local.deliver(marks)',
  ),
  mutant(
    marks,
    'guard: many marks become one',
    'marks of a workspace beyond 100 become one, and those of another stay',
    'return',
  ),
  mutant(
    marks,
    'guard: below the limit of a notification',
    'marks fill notifications below 8,000 bytes',
    'if (bytes < 0) {',
  ),
]

/** Guards that a review took away and no test noticed. */
const unnoticed: readonly Mutant[] = [
  mutant(
    telegram('send'),
    'guard: only our random id proves our message',
    'treats an answer that names only the random id of another message as unknown',
    "const proof = updates.find((each) => each._ === 'updateMessageID')",
  ),
  mutant(
    telegram('peers'),
    'guard: a former owner does not show the name',
    'shows a name that passed on with its new owner only, also after a start',
    'const peer = undefined as Peer | undefined',
  ),
  mutant(
    telegram('peers'),
    'guard: who lost a name may have another',
    'shows a name that passed on with its new owner only, also after a start',
  ),
  ...[
    ['true', 'what the adapter has kept of a person is their name now'],
    ['shownAt !== undefined', 'a name that was shown once is theirs as long as the session lasts'],
    ['this.#nowMs() - (shownAt ?? 0) < shownMs', 'every kept name is shown in the first hour of a process'],
  ].map(([condition, what]) =>
    mutant(
      telegram('peers'),
      'guard: only a name that was shown is learned',
      'a kept name is nobody’s until Telegram shows it in this session, and an hour later it is nobody’s again',
      `const isShown = ${condition}`,
      what,
    ),
  ),
  mutant(
    { file: 'src/capabilities/people/names.test.ts' },
    'guard: no name that was not shown is learned',
    'a name does not end because the platform has not shown the names of the person',
    "const seen = people.filter(({ kind }) => kind === 'person')",
  ),
  ...[
    ['guard: no name that was not shown is stored', 'const people = all'],
    ['guard: names outlast an update without them', 'const latest = person'],
    ['guard: a username that is not shown stays', 'const names = shownNames'],
    ['guard: participants that are not listed stay', 'const isUnlisted = first.participants === null'],
  ].map(([marker = '', replace]) =>
    mutant(
      { file: worker('ingest') },
      marker,
      'a platform that reports no unread count with a message names that it has not shown are neither stored nor learned, and what was stored stays',
      replace,
    ),
  ),
  mutant(
    attemptingMessages,
    'guard: the outcome of an earlier message changes nothing',
    `${lateOutcome} has got the next message since, after an operator said so: it stays as it is`,
  ),
  mutant(
    { file: running('dispatch') },
    'guard: trouble of the account releases',
    'a platform that stops first messages uses up no recipient: the one whose message it stopped gets it once the account is enabled again',
    'if (!isTrouble(outcome.reason))',
    'a platform that stops first messages refuses for good',
  ),
  mutant(
    puttingBack,
    'guard: another row of the message is put back',
    'a campaign message that was attempted again under another id is put back in that row',
  ),
  mutant(
    { file: ledger('echoes') },
    'guard: an empty batch may report a gap',
    'a batch without updates is stored like any other: it may report a gap',
    'if (!updates.every((update) => this.#isExpected(advance, update)))',
  ),
  mutant(
    { file: ledger('echoes') },
    'guard: what the platform changed is stored',
    'an echo that shows another text than was recorded is stored',
    'return isOurs',
  ),
  mutant(
    attemptingMessages,
    'guard: trouble of the account ends no contact',
    'a look-up that fails because the account is needs_login marks the account, and the contact stays due',
    'if (false) {}',
  ),
  mutant(
    puttingBack,
    'guard: what was released may have been sent since',
    'listUnknown reports an attempt of which the database knows only an earlier one: released',
    "where o.attempt_token = g.token or o.state in ('completed', 'refused', 'released')",
  ),
  mutant(puttingBack, 'guard: a recipient belongs to the account of its message', anotherAccount),
  mutant(
    telegram('transport'),
    'guard: a failed write is not repeated',
    'the transport of a session reports a write that fails as the end of the connection, whatever the socket says',
    "throw new Error('The write failed.')",
  ),
  mutant(
    { file: running('message-attempt') },
    'guard: only the own attempt is taken back',
    'a crossing whose answer is lost takes back its own attempt, and none that another worker has made since',
    "if (row) await releaseNeverSent(app, { id: row.id, token: row.attempt_token ?? '' })",
  ),
  mutant(
    attemptingMessages,
    'guard: look ups a minute',
    'a look-up is not made once the account has had all of a minute, and the contact stays due',
    'void allowed',
  ),
  mutant(
    { file: running('dispatch-contacts') },
    'guard: look ups of a minute hide nobody',
    'contacts who must be looked up wait for the next minute, and those behind them are written to',
    ')',
  ),
  mutant(
    { file: running('dispatch-contacts') },
    'guard: look ups of a minute make no other wait',
    'contacts 1: go to an account that has sent so many when another has had its look-ups of a minute',
  ),
  mutant(
    { file: running('dispatch-contacts') },
    'guard: look ups of a minute leave no contact aside',
    'contacts 0: go to an account that has sent so many when another has had its look-ups of a minute',
  ),
  mutant(
    { file: running('pick') },
    'guard: look ups of a minute are waited for',
    'an account that has had its look-ups of a minute leaves the contact to the next, and sends what needs none',
  ),
  mutant(
    attemptingMessages,
    'guard: a username that the platform writes in capitals',
    'a person whose username the platform writes in capitals is on the list under it',
    "'username:' || r.username,",
  ),
  mutant(
    { file: ledger('echoes') },
    'guard: an echo whose recording failed is stored',
    'an echo whose recording failed is stored like any other update: the position stays where it is',
    'if (!recorded) return true',
  ),
  mutant(
    incoming,
    'guard: a reply to another account',
    `${elsewhere} ends a sequence whose campaign is paused: resumed, it would go on`,
    `and r.status in ('submitting', 'waiting', 'ambiguous') and exists (
        select from campaigns k where k.id = r.campaign_id and k.status in ('queued', 'sending'))`,
    'a reply to another account, where the campaign is paused',
  ),
  mutant(
    attempting,
    'guard: only what has crossed is submitted',
    'sends nothing where the database knows fewer writes than the worker saw',
    "if (status === 'no' || status === 'busy') return leave(app, operation, held)",
    'what is behind is submitted',
  ),
  mutant(
    attempting,
    'guard: only what has crossed is submitted',
    'sends nothing while another transaction has the account',
    "if (status === 'no' || status === 'behind') return leave(app, operation, held)",
    'what is busy is submitted',
  ),
  mutant(
    attempting,
    'guard: trouble of the account refuses no message',
    'an account that is needs_login when it prepares releases the request, so that its key may run again, and reports it',
    "if (reason) return settleQueued(app, operation, { to: 'refused', refusal: reason })",
  ),
  mutant(
    claiming,
    'guard: a neighbour that is alive keeps its accounts',
    'claimAccounts skips an account that a living worker of the same disk drives',
    'or true',
  ),
  mutant(
    claiming,
    'guard: an earlier lease of the same worker is lost',
    'requireLease throws when another worker has claimed the account, or this one has claimed it anew',
  ),
  mutant(
    { file: running('dispatch-contacts') },
    'guard: only people are written to',
    'contacts fail when the look-up finds no one, the same person again, or something other than a person',
    "if (person.kind === 'bot') {",
  ),
  mutant(
    { file: running('dispatch') },
    'guard: an unknown outcome that becomes known counts once',
    'an unknown outcome continues as answered when the platform proves it later',
    'const came = (to: string) => (state === to ? 1 : 0)',
  ),
  mutant(
    { file: running('outcomes') },
    'guard: the first reply is kept',
    'a reply to message 1 while message 2 is in flight stays the reply when the person writes again',
  ),
  mutant(
    incoming,
    'guard: what came before one closed as sent is no reply',
    'while a message is in flight what the person wrote before a message that an operator closed as sent is no reply',
  ),
  mutant(
    { file: running('dispatch') },
    'guard: stopped first messages hide nobody',
    'a platform that stops first messages does not hold up those who have written behind those who have not',
    'return sql`case when false then 0',
  ),
  mutant(
    telegram('view'),
    'guard: a reaction is no edit',
    'a message whose edit Telegram hides is not edited, in a page of history as in an update',
    'edited_at: message.editDate ? timeOf(message.editDate) : null,',
  ),
  mutant(
    telegram('media'),
    'guard: a part that is cut short ends the download',
    'a download of a file that is cut short fails, also one of a single part',
    'if (bytes === undefined)',
  ),
  mutant(
    telegram('read'),
    'guard: a short form denies no name',
    'askPerson says nothing when Telegram shows only the short form of a person, without their names',
    "if (user?._ !== 'user' || !person) return null",
  ),
  mutant(
    { file: running('dispatch') },
    'guard: gates of branches',
    'branches a step waits while the gate branching is closed',
  ),
  mutant(
    { file: running('dispatch') },
    'guard: gates of branches',
    'branches a step waits while the gate read_receipts is closed',
    "|| case when k.branching_enabled then '{branching}' else '{}' end::text[]",
    'gates of branches: read receipts',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/suppressions.test.ts' },
    'guard: usernames of the list have no case',
    'POST /chats/start a username is on the list in any letter case, as listed and as asked about',
    `...(username ? [\`username:${value('username')}\`] : []),`,
  ),
  mutant(
    incoming,
    'guard: a deletion waits for the message that it names',
    `${unrecorded} waits while the outcome is being recorded`,
    'false,',
  ),
  mutant(
    incoming,
    'guard: deleted before it was recorded',
    `${unrecorded} holds for the message, which is stored without its text and is not the last of its chat`,
    '})} as given cross join lateral (select false as is_deleted) d',
  ),
  mutant(
    incoming,
    'guard: a deleted message is not the last',
    `${unrecorded} holds for the message, which is stored without its text and is not the last of its chat`,
    ') is not null or true',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/suppressions.test.ts' },
    'guard: only messages of people are handled',
    'a message that asks to stop is not one that only contains the word, our own, or one in a group',
    'const fromPeople = stored.filter(({ message }) => !message.is_sender)',
    'only messages of people are handled: not those in groups',
  ),
]

export const mutants: readonly Mutant[] = [
  {
    what: 'a connection whose server process changes counts as one of its own',
    patches: [{ marker: 'guard: a connection keeps its server process', replace: 'void seen' }],
    file: 'test/own-postgresql.test.ts',
    test: 'a pooler that works by transaction and gives each connection another server at first is refused as well',
    still: 'a pooler that works by session is used as installed, with our time limits',
  },
  {
    what: 'a pooler that mixes up the names of statements is a bug in Parley',
    patches: [{ marker: 'guard: names that a pooler mixes up', replace: '' }],
    file: 'test/own-postgresql.test.ts',
    test: 'a pooler that was not noticed is named after the error 42P05',
    still: 'a pooler that works by transaction is refused with a sentence',
  },
  {
    what: 'no answer says that browsers must come back over TLS',
    patches: [
      {
        marker: 'guard: browsers return over https',
        replace: "    reply.headers({ 'x-request-id': request.id, ...answerHeaders })",
      },
    ],
    file: 'src/http/server.test.ts',
    test: 'Strict-Transport-Security is in every answer, also in refusals, where the base URL is https',
    still: 'Strict-Transport-Security is in no answer where it is http, or not known',
  },
  {
    what: 'answers to what is no request do not say that browsers must come back over TLS',
    patches: [{ marker: 'guard: also broken requests return over https', replace: '' }],
    file: 'src/http/server.test.ts',
    test: 'Strict-Transport-Security is in the answer to what is no request, where the base URL is https',
    still: 'Strict-Transport-Security is in every answer, also in refusals, where the base URL is https',
  },
  {
    what: 'the host of a proxy is judged as it is written',
    patches: [{ marker: 'guard: the host of a proxy is normalised', replace: 'const url = URL.parse(text)' }],
    file: 'src/lib/proxy-url.test.ts',
    test: 'the host of a proxy %31%32%37.0.0.1 is judged as the address it stands for, under every scheme',
    still: 'the host of a proxy the standard ports of the web are ports like others',
  },
  {
    what: 'the log holds its lines while the welcome is printed',
    patches: [{ marker: 'guard: the welcome follows the log', replace: '' }],
    file: 'src/cli/log-lines.test.ts',
    test: 'a logger that is asked to flush has written its lines at once',
  },
  {
    what: 'libraries are sought only where a script of npm has made their links',
    patches: [{ marker: 'guard: libraries without a script of npm', replace: 'return shipped' }],
    file: 'src/db/embedded-cluster.test.ts',
    test: 'libraries without the links of npm’s script are found under all their names, also after an upgrade',
    still: 'PostgreSQL uses the same directory when its path is relative',
  },
  ...live,
  ...team,
  ...databaseMutants,
  ...erasingMutants,
  ...restoredMutants,
  ...retentionMutants,
  ...unnoticed,
  // The boundary.
  crosses('guard: dispatch', 'dispatch is off'),
  mutant(crossing, 'guard: restore_counter', 'does not cross the restore counter is lower', 'where true'),
  crosses('guard: generation', 'the generation is another'),
  crosses('guard: owes', 'a worker still has to put its journals back'),
  crosses('guard: writes', 'the database knows fewer writes'),
  crosses('guard: queued', 'its caller has withdrawn it'),
  crosses('guard: expires_at', 'it has expired'),
  crosses('guard: seen token', 'the row has another token than was read'),
  crosses('guard: lease_owner', 'another worker holds the lease'),
  crosses('guard: lease_epoch', 'the lease has a later epoch'),
  mutant(
    crossing,
    'guard: each by its own epoch',
    'an attempt under an earlier lease does not cross in one batch with one under the present lease',
  ),
  crosses('guard: lease_until', 'the lease has run out'),
  crosses('guard: account status', 'the account is DISABLED'),
  crosses('guard: live', 'the session is not caught up'),
  crosses('guard: flood_until', 'a flood wait lasts'),
  mutant(
    crossing,
    'guard: proven is not sent',
    'a stored message with the random id is proof: no worker may submit it',
  ),
  mutant(
    crossing,
    'guard: the release waits for the row',
    'a crossing whose answer was lost is released after its pending commit, which the release waits for',
  ),
  mutant(
    crossing,
    'guard: a late crossing finds another token',
    'a crossing whose answer was lost does nothing when it arrives late on a row that is still queued, and the next attempt crosses',
  ),

  {
    what: 'a release that asks for no token, anywhere',
    patches: [
      { marker: 'guard: token of a release', replace: 'const ours = row !== undefined' },
      { marker: 'guard: settle token', replace: 'true' },
    ],
    test: 'a crossing whose answer was lost changes nothing when the token belongs to another attempt',
    ...crossing,
  },

  // The one way to end.
  mutant(settling, 'guard: settle token', 'another attempt settles submitting: nothing changes', 'true'),
  mutant(
    settling,
    'guard: settle queued_no',
    'no attempt settles a caller who queued it for another time ends nothing',
  ),
  mutant(settling, 'guard: settle crossed rows only', "the row's own attempt settles queued: released"),
  mutant(settling, 'guard: settle queued rows only', 'no attempt settles submitting: only a queued row ends'),
  mutant(settling, 'guard: settle unknown once', "the row's own attempt settles ambiguous: ambiguous"),
  mutant(
    settling,
    'guard: the kind settles in the same transaction',
    "the kind's own changes in the same transaction commit with the row",
  ),
  mutant(
    settling,
    'guard: counted once',
    'a completion that is reported twice counts once',
    'const fresh = changed ? own : []',
  ),

  // Leases, positions, the sweep.
  mutant(
    advancing,
    'guard: updates lease_owner',
    'advancePositions moves nothing where another worker holds the lease',
  ),
  mutant(
    advancing,
    'guard: updates lease_epoch',
    'advancePositions moves nothing where the lease has a later epoch',
  ),
  mutant(
    advancing,
    'guard: updates writes',
    'advancePositions moves nothing where the database knows fewer writes',
  ),
  mutant(
    advancing,
    'guard: live once caught up',
    'advancePositions makes the session live with the first batch that was read to the end, and not before',
    'observed_at = real_now()',
  ),
  mutant(
    claiming,
    'guard: account lease too far ahead',
    'claimAccounts claims one whose lease is further ahead than possible: the clock was set back',
  ),
  mutant(
    claiming,
    'guard: not live until caught up',
    'claimAccounts makes it not live, and renewing the lease does not change that',
    'observed_at = real_now()',
  ),
  mutant(
    claiming,
    'guard: renewing makes nothing live',
    'claimAccounts makes it not live, and renewing the lease does not change that',
    'when true',
  ),
  mutant(
    claiming,
    'guard: no account of a disabled workspace is claimed',
    'claimAccounts skips those of a disabled workspace, also while it is being disabled',
  ),
  mutant(
    claiming,
    'guard: a claim sees a workspace that was just disabled',
    'claimAccounts skips those of a disabled workspace, also while it is being disabled',
    ')',
  ),
  ...(
    [
      [
        'guard: disabling takes the accounts from their workers',
        'POST /workspaces/{workspace_id}/disable 200: once answered no worker has its accounts, and none takes them',
      ],
      ['guard: keys of a disabled workspace', disabledRefused],
      ['guard: members of a disabled workspace', disabledRefused],
    ] as const
  ).map(([marker, test]) => mutant(disabled, marker, test)),
  mutant(
    claiming,
    'guard: only accounts that may act are claimed',
    'claimAccounts skips one that is DISABLED, whichever worker drove it before',
  ),
  mutant(
    claiming,
    'guard: a lease is given back by its epoch',
    'releaseLease ends the lease of this epoch only: its worker may have claimed the account again',
  ),
  mutant(claiming, 'guard: a lease that has run out is not held', 'holdsLease where it has run out'),
  // The database of DATABASE_URL.
  mutant(
    ownServer,
    'guard: time limits of a connection',
    'a pooler that works by session is used as installed, with our time limits',
  ),
  mutant(
    ownServer,
    'guard: no pooling by transaction',
    'a pooler that works by transaction is refused with a sentence',
    '',
  ),
  mutant(
    ownServer,
    'guard: a migrated database is only read',
    'a role that may create nothing opens a migrated database',
    'await client.query(makeMigrationsTable)',
  ),
  mutant(
    ownServer,
    'guard: a command knows the schema',
    'a sentence for a verb on a database that lacks a migration',
  ),
  mutant(
    ownServer,
    'guard: few connections are warned of',
    'a role whose connections do not suffice for the pool is warned',
    'return',
  ),
  mutant(ownServer, 'guard: one host', 'a sentence for several hosts: postgres://parley:a,b@one,two/parley'),
  // A limiter in Redis.
  mutant(
    counting,
    'guard: no queue while redis is away',
    '503 within 100 ms while Redis is away, and 200 once it is back',
    'enableOfflineQueue: true,',
  ),
  mutant(
    counting,
    'guard: a lost connection fails its requests',
    '503 for requests in flight when the connection is lost, also if the next one answers',
    'maxRetriesPerRequest: null,',
  ),
  mutant(
    counting,
    'guard: a silent redis is disconnected',
    '503 within 100 ms, after the first request, while Redis accepts connections and answers nothing',
  ),
  mutant(counting, 'guard: readiness asks the limiter', '200 while Redis answers, and /readyz says so'),
  mutant(
    claiming,
    'guard: the remainder is divided',
    'readShares gives all accounts out, and to no worker over one more than to another, also over two platforms',
    'return Math.ceil(accounts / workers)',
  ),
  // Accounts that change hands.
  mutant(
    handingOver,
    'guard: an account that changes hands is reachable',
    `${wasLive} 200 after its worker stopped: it stays queued until the next worker has caught up`,
  ),
  mutant(
    handingOver,
    'guard: no waiting for a lease that no worker may claim',
    `${wasLive} 503 at once when no worker may claim the lease while the caller waits`,
    ')',
  ),
  mutant(
    handingOver,
    'guard: a claim hands over',
    `${wasLive} 200 after its worker was killed and another one has claimed it`,
  ),
  mutant(
    handingOver,
    'guard: a claim hands over',
    `${wasNotLive} 503 at once while its session is lost, and after its worker stopped`,
    'handed_over_at = real_now(),',
    'a claim hands over what was not live',
  ),
  mutant(
    handingOver,
    'guard: a release hands over',
    `${wasLive} 200 after its worker stopped: it stays queued until the next worker has caught up`,
    'handed_over_at = handed_over_at',
  ),
  mutant(
    handingOver,
    'guard: a release hands over',
    `${wasNotLive} 503 at once while its session is lost, and after its worker stopped`,
    'handed_over_at = real_now()',
    'a lost session hands over',
  ),
  mutant(
    handingOver,
    'guard: handed over until caught up',
    `${wasLive} 200 after its worker stopped: it stays queued until the next worker has caught up`,
  ),
  mutant(
    handingOver,
    'guard: nothing waits for a login',
    `${wasLive} 503 at once after a login has claimed it`,
    'handed_over_at = handed_over_at',
  ),
  mutant(
    claiming,
    'guard: the takeover time is stored with the lease',
    'claimAccounts when a platform requires 75 seconds before another worker takes over stores that time with the lease',
  ),
  mutant(
    sweeping,
    'guard: an operation waits while its account changes hands',
    'settleUncrossed leaves it queued while its account changes hands, until it expires',
  ),
  mutant(
    attempting,
    'guard: given up during preparation',
    'leaves it queued when the account is given up during preparation',
  ),
  mutant(
    sweeping,
    'guard: uncrossed under our lease',
    'settleUncrossed leaves an operation to the next holder of the account where another worker holds the lease',
  ),
  mutant(
    sweeping,
    'guard: an owing worker is not forgotten',
    'forgetWorkers keeps one that has not put its journals back, however long ago it ended: they may know what the database has lost',
  ),
  mutant(
    sweeping,
    'guard: lease too far ahead',
    'sweep treats a lease further ahead than possible as expired',
  ),
  mutant(
    sweeping,
    'guard: swept with its worker',
    'sweep makes an attempt whose owner has stopped unknown immediately',
  ),
  mutant(
    sweeping,
    'guard: swept is ambiguous',
    'sweep makes an attempt whose lease has expired unknown, never queued',
    "return { id, token, ending: { to: 'released', reason: 'never_written' } }",
  ),
  mutant(
    sweeping,
    'guard: sweep skips locked rows',
    'sweep skips a row that another transaction has locked, and not the others',
    'for update of o',
  ),
  mutant(
    sweeping,
    'guard: a chat hides no other',
    'listQueued many waiting in one chat do not hide another chat',
    'select',
  ),
  mutant(
    { file: ledger('lanes'), still: 'runs one at a time in each chat, and four at a time of each account' },
    'guard: files are fair',
    "one account's hanging files leave room for another account's, and for its own texts",
    'if (file && this.#files.size >= filesMax) return undefined',
  ),

  mutant(
    { file: ledger('floods'), still: 'of 5 s and then 600 s the longer one applies' },
    'guard: the longer flood wait holds',
    'of 600 s and then 5 s the longer one applies',
    `set ${value('end')} = domain_now() + make_interval(secs => ${value('retry_after_seconds')})`,
  ),

  // Putting back.
  mutant(
    puttingBack,
    'guard: a known attempt is not put back',
    'putBack submitting, and this very attempt is known',
    '',
    'put back without a look at the attempt',
  ),
  mutant(
    puttingBack,
    'guard: a repeat of the key is put back',
    'putBack blocks the row that a repeat has made for the key, and keeps its public name',
  ),
  mutant(
    restoring,
    'guard: a start counts as a heartbeat',
    'at the start a start on a disk that knows the database counts as a heartbeat: a new disk beside it joins',
    'return instance',
  ),
  mutant(
    journalling,
    'guard: a directory that cannot be read is not empty',
    'a directory that is not there has no journals; one that cannot be read is an error',
    'return []',
  ),
  mutant(
    restoring,
    'guard: journals are put back',
    'at the start puts the journals back into an older copy, and an operator switches sending on',
  ),
  mutant(
    restoring,
    'guard: the disk keeps what it knew of an older copy',
    'an older copy of another history that could not be reported at the start is one at the next start as well',
    'const guard = new RestoreGuard(app, options, instance)',
  ),
  mutant(
    restoring,
    'guard: an older copy is noticed',
    'at the start puts the journals back into an older copy, and an operator switches sending on',
  ),
  mutant(
    restoring,
    'guard: another generation is noticed',
    'at the start puts the journals back first when the generation is another',
    'return undefined',
  ),
  mutant(
    restoring,
    'guard: what provably sent nothing is not put back',
    'at the start does not restore what provably did nothing: not_written',
    "if (kind === 'refused') nothing.add(entry.token)",
  ),
  mutant(
    restoring,
    'guard: owing worker crosses nothing',
    'a put-back that fails blocks every crossing, here and in other processes, until it is complete',
  ),
  mutant(
    restoring,
    'guard: a debt is kept on the disk',
    'a put-back that fails is recorded on the disk: the next process on it continues',
  ),
  mutant(
    restoring,
    'guard: the debt of an ended worker is taken over',
    'a worker that dies before it put its journals back, next to one on its disk that is done the other one takes over its journals once it has ended',
  ),
  mutant(
    restoring,
    'guard: a living worker keeps its debt',
    'a worker that dies before it put its journals back, next to one on its disk that is done the other one takes over its journals once it has ended',
    'const debts = others',
  ),
  mutant(
    restoring,
    'guard: an inherited debt is put back',
    'a worker that dies before it put its journals back, next to one on its disk that is done also puts back what it noticed while the database was unreachable',
  ),
  mutant(
    restoring,
    'guard: the slower of two processes does not set the counter back',
    'the counter on the disk does not go back when the slower of two processes writes last',
  ),
  mutant(
    restoring,
    'guard: noticed while a debt ended',
    'starts again when commits are found lost at the moment at which a put-back finishes',
  ),
  mutant(
    restoring,
    'guard: a living journal is not set aside',
    'journals of others are not set aside while their process is alive',
    'if (replayedSizes.get(name) === size && ended) await markReplayed(directory, file)',
  ),

  mutant(
    restoring,
    'guard: an older copy stays one',
    'an older copy that could not be reported stays one, also when another generation is noticed later',
    'this.#unreported = why',
  ),
  mutant(
    restoring,
    'guard: a generation begun meanwhile',
    'a heartbeat answered before lost commits were noticed does not bring the earlier generation back',
  ),
  mutant(
    restoring,
    'guard: damaged lines keep sending off',
    'a damaged line keeps sending off, also when nothing was lost',
  ),
  mutant(
    restoring,
    'guard: a put back that noticed more is not done',
    'what is noticed while the journals are put back is kept: they are put back again',
  ),
  mutant(
    restoring,
    'guard: noticed during a put back',
    'what is noticed while the journals are put back is kept: they are put back again',
  ),
  mutant(
    restoring,
    'guard: a journal that failed is not done',
    'journals of others that could not be replayed are not set aside, and the put-back is not complete',
  ),
  mutant(
    restoring,
    'guard: a failed replay is no put back',
    'journals of others that could not be replayed are not set aside, and the put-back is not complete',
    'await replay(app, parts, file)',
  ),
  mutant(
    puttingBack,
    'guard: use is put back',
    anotherAccount,
    'return use(1, entry)',
    'use is counted twice',
  ),
  mutant(puttingBack, 'guard: use is put back', anotherAccount, 'return use(-1, counted)', 'use is lost'),
  mutant(puttingBack, 'guard: the account is put back', anotherAccount),
  mutant(puttingBack, 'guard: the day is put back', anotherAccount, 'cold = cold'),

  // The journal.
  mutant(
    {
      file: worker('sync'),
      still: 'an older page that carries the random id of an unknown outcome proves it',
    },
    'guard: asked once',
    'does not request a page that was answered after it was listed',
  ),
  mutant(journalling, 'guard: journal is flushed', 'an intent resolves only when it is on disk'),
  mutant(
    journalling,
    'guard: checksum of a line',
    'skips and counts a line whose bytes have changed, and reads the others',
  ),
  mutant(
    journalling,
    'guard: a journal that grew is not done',
    'a journal that was set aside and has grown since is not done',
    'const done = done_of_old !== undefined || size_done !== undefined',
  ),
  mutant(
    journalling,
    'guard: only replayed journals are removed',
    'removes a journal past its retention once it was replayed, and not before',
    'if (Date.now() - mtimeMs > keepMs) await unlink(join(directory, name))',
  ),
  mutant(
    journalling,
    'guard: a failed line is not written',
    'a line that the disk did not flush does not count as written',
    'for (const line of lines) line.resolve()',
  ),
  mutant(
    { file: worker('account-pool') },
    'guard: unwritable journal gives accounts up',
    'claims accounts, and gives them up while the journal cannot be written',
  ),
  mutant(
    restoring,
    'guard: a disk that forgot the database puts its journals back',
    'a disk whose record of the database is gone lost: its journals are still put back',
    'const stranger = false',
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: what was never asked is not unknown',
    'without a connection for the row nothing was started, and the caller does not get outcome_ambiguous',
    'return error instanceof LostCommit || isConnectionLost(error)',
  ),
  mutant(
    { file: worker('sync') },
    'guard: the past proves as well',
    'an older page that carries the random id of an unknown outcome proves it',
  ),
  mutant(
    { file: worker('account-pool') },
    'guard: sessions end with their leases',
    'ends the sessions when the database is unreachable for longer than a lease',
  ),
  mutant(
    { file: ledger('echoes') },
    'guard: what was seen stays seen',
    'a late answer does not lower the known count of writes',
    'writes.seen = committed',
  ),

  // One attempt.
  mutant(
    attempting,
    'guard: unwritable journal',
    'sends nothing when the journal cannot be written',
    'return true',
  ),
  mutant(
    attempting,
    'guard: journal before call',
    'writes the journal before it calls the platform',
    'const intended = true',
  ),
  mutant(
    attempting,
    'guard: deadline',
    'sends nothing after a freeze that began before the boundary, and reports that',
    'if (!intended) {',
  ),
  mutant(
    attempting,
    'guard: one kind of an account at a time',
    'records messages of two kinds of one account one kind after the other, without a deadlock with an update about both',
    'for (const together of [attempts]) {',
  ),
  {
    what: 'the clock starts after the boundary',
    patches: [{ marker: 'guard: clock starts before the boundary', replace: noClock }, clockAfterCommit],
    test: 'sends nothing after a freeze that began before the boundary, and reports that',
    ...attempting,
  },
  mutant(
    attempting,
    'guard: lost commit is not sent',
    'when the answer to the crossing is lost sends nothing, and releases the row',
    "if (isLost(err)) return crossings.map(({ id, token }) => ({ id, token, status: 'crossed', writes: null }))",
  ),
  mutant(
    attempting,
    'guard: lost commit is in the journal',
    'when the answer to the crossing is lost, and the worker ends before the database is back its journal says that nothing was sent',
  ),
  mutant(
    attempting,
    'guard: lost commit is released',
    'when the answer to the crossing is lost sends nothing, and releases the row',
  ),
  mutant(
    attempting,
    'guard: lost commit is released',
    'when the answer to the crossing is lost retries a release that fails at first until it succeeds',
    'await release().catch(() => {})',
    'release tried once',
  ),
  mutant(
    attempting,
    'guard: tried until stored',
    'retries an outcome until the database accepts it',
    'throw err',
  ),
  mutant(
    attempting,
    'guard: recorded in the order of ids',
    'outcomes of several kinds at once lock their rows in the order of the ids',
  ),
  mutant(attempting, 'guard: drain before the end', 'a stopping worker waits for what it has submitted'),
  mutant(
    attempting,
    'guard: flood wait from its own time',
    'a flood wait from a journal counts from its own time',
    'return seconds',
  ),
  mutant(
    { file: 'test/limits/unknown.test.ts' },
    'guard: no answer is unknown',
    'an ambiguous operation is listed, closed once by an operator, audited, and its key is 409 forever',
    "const known: Outcome<unknown> = outcome ?? { kind: 'not_written', reason: 'timeout' }",
  ),

  mutant(
    attempting,
    'guard: who may not send does not ask',
    'before its preparation calls the platform a flood wait lasts: no look-up is made, and the row is released',
  ),
  mutant(
    attempting,
    'guard: trouble of the account releases',
    'an account that is needs_login releases the message, so that its key may run again, and reports it',
    "return { to: 'refused', refusal: outcome.reason }",
  ),
  mutant(
    attempting,
    'guard: only our own messages prove',
    "another person's message proves nothing, whatever random id it shows",
    'random_id !== null ? [{ random_id, message_id: id, at: timestamp }] : [],',
  ),
  mutant(
    attempting,
    'guard: a late answer is recorded',
    'it records a late answer, so that the unknown outcome becomes known',
  ),

  // Callers.
  mutant(
    { file: ledger('waiting'), still: 'two callers of one row both get its outcome' },
    'guard: waits for its attempt',
    "a caller that has queued a key again does not get the earlier attempt's outcome",
    'waiter.end(row)',
    'the first outcome wins',
  ),
  mutant(
    { file: ledger('waiting'), still: 'two callers of one row both get its outcome' },
    'guard: poll of settled rows',
    'the poll finds an outcome whose wake-up was lost',
    'const poll = setInterval(() => {}, pollMs)',
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: key is looked up',
    'a second API key of the workspace finds the same operation',
    `where idempotency_key = ${value('key')} and key_id is null`,
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: key is stored',
    'a second API key of the workspace finds the same operation',
    `${value("[caller.via.kind === 'key' ? caller.via.id : '', key].join(' ')")},`,
    'keys are scoped by API key',
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: random id of the key',
    'the same key has the same random id, also when its row was deleted',
    `${value('randomIdOf(app, caller.workspace_id, kind, id)')}::bigint,`,
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: a key runs again for the same payload only',
    '400 a released key that another payload took since it was looked up',
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: a released key stays bound to its payload',
    '409 a released key that another payload took since it was looked up',
  ),
  mutant(
    { file: 'src/capabilities/messages/send.test.ts' },
    'guard: suppression in the second half',
    'POST /chats/start 409 for a first text that got a flood wait, once the person has opted out',
  ),
  mutant(
    clockSetBack,
    'guard: heartbeat from the future',
    'a clock that was set back a worker whose heartbeat is in the future does not count for shares of the accounts',
  ),
  mutant(
    clockSetBack,
    'guard: observed in the future',
    'a clock that was set back renewing a lease resets a session time that is in the future',
    'h.observed_at,',
  ),
  mutant(
    restoring,
    'guard: raised in the future',
    "at the start a disk that does not know the database, + interval '1 hour': was worked on in the future of a clock set back, sending is on: false",
  ),
  mutant(
    puttingBack,
    'guard: a repeat of this moment is put back',
    'putBack also blocks a repeat that is being queued at this moment',
  ),
  mutant(
    restoring,
    'guard: owing before the database is asked',
    'when commits are lost, and the database is unreachable at that moment a crossing notices, and it is remembered until the journals are put back',
  ),
  mutant(
    restoring,
    'guard: forgotten switches off at once',
    'an operation that a failed attempt restored still switches sending off',
  ),
  mutant(
    {
      file: worker('account-pool'),
      still: 'claims accounts, and gives them up while the journal cannot be written',
    },
    'guard: writes are kept over sessions',
    'knows how far the account had come when commits are lost, including its own lease',
    'const writes = { seen: committed }',
  ),
  mutant(rechecking, 'guard: recheck', 'a suppressed person gets no first message by their id'),
  mutant(
    rechecking,
    'guard: entries wait for crossings',
    'entries and crossings have one order: an operator waits for a crossing in progress',
  ),

  // Clocks.
  mutant(
    {
      file: 'src/rules/sending-window.test.ts',
      still: 'a sending window opens at its first minute and is closed at its last',
    },
    'guard: a clock change on the way to the window',
    'a sending window opens again when clocks pass it twice, or go back into it',
    'const change = undefined as number | undefined',
  ),

  // Campaigns.
  mutant(
    messages,
    'guard: one in flight',
    'a message waits while the account has another message in flight',
    'where false',
  ),
  mutant(
    messages,
    'guard: quota is used with the crossing',
    'a message that was released crosses again under its id, and uses the quota once',
    'used = d.used,',
    'the use of a day is not counted with the crossing',
  ),
  mutant(
    messages,
    'guard: refund',
    'a message that was released crosses again under its id, and uses the quota once',
    'return day !== null && !nothing ? [{ account_id, workspace_id, day, cold, by: -1 }] : []',
    'the refund is swapped',
  ),
  mutant(
    messages,
    'guard: a recipient is put back with its operation',
    'a message that a restored database has lost is restored with its recipient and its use of the quota',
  ),
  mutant(
    attemptingMessages,
    'guard: suppression at the pick',
    'a look-up is not made of somebody on the list, nor is the platform asked about them',
    'false as suppressed,',
  ),
  mutant(
    attemptingMessages,
    'guard: a number of the list however it is spelled',
    'a look-up is not made of a number on the list, however the contact spells it',
    'r.contact',
  ),
  mutant(
    attemptingMessages,
    'guard: asking about a number waits as look ups do',
    'a look-up is not needed for a number: a flood wait when the platform is asked about it holds look-ups, and the contact stays due',
    'const { stops } = asked',
  ),
  mutant(
    {
      file: 'src/capabilities/people/people.test.ts',
      still: 'names that two people swap end for the one and begin for the other',
    },
    'guard: who is on the list and has no chat ends',
    'a phone number on the list that only one account can see stops a campaign of contacts by the other account',
  ),
  mutant(
    attemptingMessages,
    'guard: a retry is asked about',
    'a person who is suppressed while their message is in flight an id: accepted or not, nothing follows',
    'case when false',
  ),
  mutant(
    attemptingMessages,
    'guard: a follow_up is asked about',
    'a person who is suppressed while their message is in flight an id: accepted or not, nothing follows',
    'select 1 where false))',
  ),
  mutant(
    messages,
    'guard: suppression list is read under its lock',
    'a message to a person who is suppressed at this very moment ends the recipient',
    'const listed = false',
  ),
  mutant(
    messages,
    'guard: campaign is held',
    'while a cancel is in progress no message crosses on what was read before it',
    '',
    'the status is read outside of the locks',
  ),
  mutant(
    messages,
    'guard: decided on this version',
    'a message does not cross to a recipient that has changed',
    '',
    'a change without a version',
  ),
  mutant(
    messages,
    'guard: a settlement sees the cancel',
    'while a cancel is in progress a recipient that ends in the meantime waits for it, so that none stays pending',
    'order by id',
  ),
  mutant(
    messages,
    'guard: single sends go first',
    'a message is not picked while a caller waits for a single send of the account',
    'select from operations q where false)',
  ),
  mutant(
    messages,
    'guard: pool accounts that are driven',
    'a message to a contact is left to the account with most quota left, unless its worker has died',
  ),
  mutant(
    messages,
    'guard: the recipient crosses with its operation',
    'a message crosses with its operation, its recipient and the use of its day',
  ),
  mutant(
    messages,
    'guard: lost commit is not sent',
    'a message whose crossing gets no answer is not sent, and its worker reports that',
    '',
    'lost commit of a message is not sent',
  ),
  {
    what: 'the clock of a message starts after the boundary',
    patches: [
      { marker: 'guard: clock starts before the boundary of a message', replace: noClock },
      clockAfterCommit,
    ],
    test: 'a message whose process freezes after it has crossed is not sent after a cancel in the meantime, and its worker reports that',
    ...messages,
  },
  mutant(
    messages,
    'guard: lost commit is in the journal',
    'a message whose crossing gets no answer is journaled as not sent when its worker ends before the database is back',
    '',
    'lost commit of a message is in the journal',
  ),
  mutant(
    messages,
    'guard: proven message is not sent',
    'a message that the platform has shown before crosses with its proof, and no worker submits it',
    "return { status: 'crossed', writes, operation: operationOf(decision.attempt), proof: null }",
  ),
  mutant(
    { file: 'src/capabilities/campaigns/running/dispatch.test.ts' },
    'guard: a reply ends what waits',
    'a reply ends the sequence, emits one event, and counts',
    'const replied = []',
  ),
  mutant(
    { file: worker('sync') },
    'guard: the sync continues at its page',
    'the list of chats continues at its page after a wait, and in the next session',
    "if (phase === 'chats') await syncChats(app, syncing, null)",
  ),
  mutant(
    { file: 'src/capabilities/campaigns/verify-platform.test.ts' },
    'guard: what cannot be seen is said',
    'what the platform has says where it cannot see such messages, because the platform shows no random ids',
    'const blind = 0',
  ),
  mutant(
    incoming,
    'guard: history is handled as incoming',
    `${byHistory} end the sequence, and nothing is announced`,
    'const events = []',
  ),
  mutant(
    incoming,
    'guard: edits are handled as incoming',
    'a reply, and a request to stop in an edit that also stores a message end the sequence',
    'handleIncoming(app, tx, held, stored),',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/suppressions.test.ts' },
    'guard: only messages of people are handled',
    'a message that asks to stop is not one that only contains the word, our own, or one in a group',
    'const fromPeople = stored',
  ),
  mutant(
    incoming,
    'guard: history asks to stop after a message of ours',
    `${byHistory} end the sequence, and nothing is announced`,
  ),
  mutant(
    incoming,
    'guard: history asks to stop after a message of ours',
    `${byHistory} do not count if they are older than our message`,
    'or true',
    'history asks to stop at any time',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/running/replies.test.ts' },
    'guard: written by what was sent',
    'a message that only history contains as an opt-out suppresses a person whom the API wrote to',
    'where false),',
  ),
  mutant(
    incoming,
    'guard: written by a campaign',
    'while a message is in flight counts an opt-out that came after the crossing',
    'where false)',
  ),
  mutant(
    incoming,
    'guard: a stored answer is an answer',
    'while a message is in flight counts a stored reply to a message that a restore has lost, once the message is known',
    'and false',
  ),
  mutant(
    incoming,
    'guard: older than the campaign',
    'while a message is in flight does not even record what is older than the campaign',
    'true',
  ),
  mutant(
    incoming,
    'guard: newest is kept',
    'while a message is in flight keeps the newest of a page, which decides once the message is accepted',
  ),
  mutant(
    incoming,
    'guard: a reply to another account',
    `${elsewhere} receives the reply: the sequence ends, and the event names the account that has the message`,
    'and false',
  ),
  mutant(
    incoming,
    'guard: nothing is left to end elsewhere',
    `${elsewhere} does not end a campaign whose sequence is over; an account of no pool of a campaign ends one`,
  ),
  // Whom an entry of the suppression list stops.
  mutant(
    entryPeople,
    'guard: names of this workspace only',
    'the people of an entry 200 with their other names, and since when the name is of somebody else',
    '',
  ),
  mutant(
    entryPeople,
    'guard: only who had the name while the entry stood',
    'the people of an entry 200 without those who gave the name up before it was listed',
    '',
  ),
  mutant(
    entryPeople,
    'guard: another entry holds them',
    'the people of an entry 200 with their other names, and since when the name is of somebody else',
    'where false)`',
  ),
  // A new time zone.
  mutant(
    zoneChanges,
    'guard: a new zone holds from the end of the day',
    'a zone that changes holds from the end of the day that has begun',
    'return timezone',
  ),
  mutant(
    zoneChanges,
    'guard: days do not go back',
    'a zone that changes several times a day opens no other day: days only go on, and each change keeps the day that has begun',
    'return day',
  ),
  mutant(
    zoneChanges,
    'guard: the day goes on in a zone that is behind',
    'a zone that changes holds from the end of the day that has begun',
    'while (false)',
  ),
  mutant(
    zoneChanges,
    'guard: the window follows the new zone',
    'a zone that changes moves the sending window with it',
    'return opens',
  ),
  mutant(
    { file: 'src/capabilities/workspaces/zone-changes.test.ts' },
    'guard: a change keeps the day that has begun',
    'PATCH /workspace 200: the quota of the day that has begun stays used, however often the zone changes',
    'timezone_before = null, timezone_from = null, day_floor = null',
  ),
  // Written by hand.
  mutant(
    byHand,
    'guard: closed as sent with this text',
    'while an operation to the chat is unknown an operation that an operator closes as sent is not taken for a message with another text',
    '',
  ),
  mutant(
    byHand,
    'guard: only who asked for it',
    'stop_on_own_message without it a message by hand ends nothing',
    'join campaigns k on k.id = r.campaign_id',
  ),
  mutant(
    byHand,
    'guard: a message by hand ends sequences of its workspace',
    'stop_on_own_message ends nothing in another workspace, and holds nothing there while it is undecided',
    'where true',
  ),
  mutant(
    byHand,
    'guard: an undecided message holds its workspace',
    'stop_on_own_message ends nothing in another workspace, and holds nothing there while it is undecided',
    'where true',
  ),
  mutant(
    byHand,
    'guard: a message by hand while ours is in flight',
    'stop_on_own_message ends a sequence whose first message is in flight, once that is accepted',
    "and r.status = 'waiting'",
  ),
  mutant(
    byHand,
    'guard: a queued send of a member is not decided',
    'stop_on_own_message a send of a member that no worker has taken yet holds the follow-up',
    "when o.state = 'submitting'",
  ),
  mutant(
    { file: 'src/capabilities/people/people.test.ts' },
    'guard: a reply ends sequences of its workspace',
    'a reply to one account ends nothing in another workspace that has written to the person',
    '',
  ),
  mutant(
    byHand,
    'guard: only who was written to before',
    'stop_on_own_message ends only what was written before the message, by the clock of the platform',
    '',
  ),
  mutant(
    byHand,
    'guard: an operation in flight may have sent it',
    'while an operation to the chat is unknown the follow-up waits for the decision, and says so',
    "and false) then 'open'",
  ),
  mutant(
    byHand,
    'guard: a message of an operation',
    "stop_on_own_message ignores an operation's message that the platform shows without its random id",
    'and (false',
  ),
  mutant(
    byHand,
    'guard: a message in flight is decided later',
    'a message by hand that arrives while the follow-up crosses ends the others at once, and the one in flight when its message is proven',
    'where h.id = v.id)',
  ),
  mutant(
    byHand,
    'guard: who waits for a decision hides nobody',
    'while an operation to the chat is unknown a recipient that waits for the decision hides no other of its campaign',
    '',
  ),
  mutant(
    byHand,
    'guard: only live messages are of a hand',
    'stop_on_own_message ignores a message from history',
    "if (message.is_sender && chat.kind === 'private') sorted.own.set(place, own)",
  ),
  mutant(
    byHand,
    'guard: only campaigns of contacts stop for a hand',
    '400 with recipients, and for what is not a boolean',
    'if (false) {',
  ),
  mutant(
    messages,
    'guard: an undecided message at the boundary',
    'a message of a sequence that a message by hand ends does not cross while that is undecided',
    'false as undecided,',
  ),
  mutant(
    planning,
    'guard: a follow_up waits for the decision',
    'the plan a follow-up waits until it is decided whether somebody has written by hand',
    '',
  ),
  mutant(
    incoming,
    'guard: a stored answer to another account',
    `${restored} is answered in another account before it is put back: no follow-up goes out`,
    'and false',
  ),
  mutant(
    incoming,
    'guard: a stored answer came later',
    `${restored} was not answered by what another account got before it`,
    '',
  ),
  mutant(
    incoming,
    'guard: a stored answer of the same person',
    `${restored} is not answered by a person with the same number on another platform`,
    '',
  ),
  mutant(
    incoming,
    'guard: answers in two accounts are compared by time',
    `${restored} is answered in another account before it is put back: no follow-up goes out`,
    'return false',
  ),
  mutant(
    incoming,
    'guard: a message by hand before its recipient is known',
    `${restored} and was followed by a message by hand from another account ends once it is put back`,
    '',
  ),
  mutant(
    incoming,
    'guard: what the person has written is not by hand',
    'while a message is in flight what the person wrote within the second before it is neither a reply nor written by hand',
    '',
  ),
  mutant(
    incoming,
    'guard: a reply within the second of the crossing',
    'while a message is in flight counts a reply within the second of the crossing, of which the platform reports only the second',
    'if (replied_at.getTime() > crossed_at.getTime()) return true',
  ),
  mutant(
    incoming,
    'guard: a stored message to the same person',
    `${restored} goes on after what another platform sent by hand to the same number`,
    '',
  ),
  mutant(
    incoming,
    'guard: a journal may have its operation',
    `${restored} and may be in a journal is not taken for written by hand until every journal is put back`,
    '',
  ),
  mutant(
    incoming,
    'guard: two accounts are compared by time',
    `${elsewhere} receives the reply: the sequence ends, and the event names the account that has the message`,
    'else true',
  ),
  mutant(
    incoming,
    'guard: numbers of two accounts are not compared',
    `${elsewhere} while one is in flight, a message from before the crossing is not a reply, whatever its number`,
    'const comparable = true',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/running/pick.test.ts' },
    'guard: the first contact is taken first',
    'an account takes the first remaining contact, also when an account before it has other work',
    'const row = head',
  ),
  mutant(
    repliedInFlight,
    'guard: what was refused after a reply is replied',
    'a reply to message 1 while message 2 is in flight, which is refused: nothing follows',
    'return true',
  ),
  mutant(
    repliedInFlight,
    'guard: what was released is not sent after a reply',
    'a reply to message 1 while message 2 is in flight, which meets a flood wait: nothing follows',
  ),
  mutant(
    repliedInFlight,
    'guard: an answer to an earlier message counts',
    'a reply to message 1 while message 2 is in flight, which is accepted: nothing follows',
  ),
  mutant(
    repliedInFlight,
    'guard: a reply that overtakes our answer counts',
    'a reply that overtakes our answer, which is then accepted: nothing follows',
    'return false',
  ),
  mutant(
    attemptingMessages,
    'guard: only what is in flight is released',
    `${lateOutcome} failed because an operator said so, and it was not sent: it stays failed`,
  ),
  mutant(
    messages,
    'guard: what was stopped stays so',
    'a message that a restored database has lost is recorded, and a recipient that was suppressed in the meantime stays so',
  ),
  mutant(
    attemptingMessages,
    'guard: what is final stays so',
    `${lateOutcome} failed because an operator said so, and it was sent: it is completed, and nothing follows`,
    "const over = was === 'ambiguous' || row.campaign_status === 'cancelled'",
    'what failed is followed up',
  ),
  mutant(
    attemptingMessages,
    'guard: what is final stays so',
    `${lateOutcome} became final as unknown, and it was sent: it is completed, and nothing follows`,
    "const over = was === 'failed' || row.campaign_status === 'cancelled'",
    'what was unknown is followed up',
  ),
  mutant(
    attemptingMessages,
    'guard: what was released in a cancelled campaign ends',
    `${lateOutcome} is in a cancelled campaign, and it was not sent: it ends, because nobody would pick it again`,
  ),
  mutant(
    attemptingMessages,
    'guard: unknown in a cancelled campaign is final',
    `${lateOutcome} is in a cancelled campaign, and it is unknown: it is final immediately`,
    'const due = dueAfter(row, row.crossed_at)',
  ),
  mutant(
    attemptingMessages,
    'guard: ends as it was picked',
    'a look-up that finds no one ends the contact as it was picked, and not one that has changed since',
  ),
  mutant(
    attemptingMessages,
    'guard: a flood wait of a look up is noted',
    'a look-up that gets a flood wait holds the account that long, and the contact stays due',
  ),
  mutant(
    attemptingMessages,
    'guard: a proven message makes no call',
    'a proof found at the boundary completes the message as shown, without a call',
    'if (false) await null',
  ),
  mutant(
    attemptingMessages,
    'guard: a proven message is in the journal',
    'a proof found at the boundary completes the message as shown, without a call',
  ),
  mutant(
    attemptingMessages,
    'guard: the phone that a look_up returns',
    `${lookedUp} gets nothing when the platform returns the number`,
  ),
  mutant(
    crossingDirectly,
    'guard: cold messages add up',
    'a message that crosses increments used_cold, also for the second one of a day',
    'used_cold = excluded.used_cold',
  ),
  mutant(
    crossingDirectly,
    'guard: messages raise writes',
    "a message that crosses increments its account's writes, and its worker remembers them",
    'writes = h.writes',
  ),
  mutant(
    crossingDirectly,
    'guard: writes are remembered',
    "a message that crosses increments its account's writes, and its worker remembers them",
  ),
  mutant(
    crossingDirectly,
    'guard: one message of an account in a batch',
    'a message that crosses shares no batch with another of its account: broadcast',
    'const taken = places.slice(1).some((place) => sending.has(place))',
  ),
  mutant(
    crossingDirectly,
    'guard: only what was released is taken up again',
    'a message that crosses does not cross again in another attempt while it is in flight',
  ),
  mutant(
    crossingDirectly,
    'guard: a message without its operation does not cross',
    'a message that crosses without its operation does not cross: the whole batch is rolled back',
  ),
  mutant(crossingDirectly, 'guard: locked days are skipped', `${leftAlone} the account's day`, 'for update'),
  mutant(
    crossingDirectly,
    'guard: what another transaction holds is left alone',
    `${leftAlone} the account's day`,
    "if (row.forbidden === 'busy' || contended.has(recipient_id)) return { do: 'busy' }",
    'a day that another transaction holds is taken',
  ),
  mutant(
    crossingDirectly,
    'guard: what another transaction holds is left alone',
    `${leftAlone} the person that a contact resolved to`,
    "if (day.busy || row.forbidden === 'busy') return { do: 'busy' }",
    'a person whom another transaction holds is taken',
  ),
  mutant(
    { file: 'test/doctor.test.ts' },
    'guard: connections of all processes',
    connectionsOfAll,
    'if (false) {',
  ),
  mutant(
    { file: 'test/doctor.test.ts' },
    'guard: connections of other clients',
    connectionsOfAll,
    'min(allowed)::int as ours,',
  ),
  mutant({ file: 'test/doctor.test.ts' }, 'guard: processes can be counted', connectionsOfAll),
  mutant(
    { file: 'test/full-disk.test.ts' },
    'guard: a full disk is named',
    'a cluster that does not fit on its disk says that the disk is full',
    'if (false) {',
  ),
  // Where the time of a send shows.
  ...[
    'guard: the wait for a worker is observed',
    'guard: the call is observed',
    'guard: the recording is observed',
  ].map((marker) =>
    mutant(timings, marker, 'a send is counted once in each histogram, and its operation shows its course'),
  ),
  ...['', 'this.#lag(lagMs / 1_000)'].map((replace) =>
    mutant(
      timings,
      'guard: the lag of accepted deliveries',
      'a delivery is counted in the lag of webhooks once its endpoint accepts it',
      replace,
    ),
  ),
  mutant(
    timings,
    'guard: an operation waits up to the boundary',
    'the course of an operation is what its row says, up to the boundary and from there on',
    'crossed_at',
  ),
  mutant(
    timings,
    'guard: an operation is submitted from the boundary on',
    'the course of an operation is what its row says, up to the boundary and from there on',
    'finished_at - created_at',
  ),
  mutant(
    timings,
    'guard: operations by their public id',
    'the course of an operation is what its row says, up to the boundary and from there on',
  ),
  // Traces.
  mutant(
    { file: 'src/lib/traceparent.test.ts' },
    'guard: one traceparent',
    'a traceparent is ignored: two, even the same',
  ),
  mutant(
    { file: 'src/lib/traceparent.test.ts' },
    'guard: form of a traceparent',
    'a traceparent is ignored: version 00 with more',
  ),
  mutant(
    { file: 'test/request-log.test.ts' },
    'guard: trace in the line of a request',
    'traceparent of the caller is logged in the line of its request, also of a refused one, and of no other',
  ),
  mutant(
    { file: 'test/request-log.test.ts' },
    'guard: trace in the line of a failure',
    'traceparent of the caller is logged in the line about an unexpected failure',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: a trace is that of one request',
    "the trace of a caller's request is that of one request: the next one of the same key has none, nor has a message that arrives",
    'return Object.assign(caller, { traceparent })',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: a stored trace is read again',
    "the trace of a caller's request brings no other header, whatever a restored row says",
    'const trace = traceparent as never',
  ),
  // Webhooks.
  mutant(
    { file: webhooks('webhooks') },
    'guard: webhooks counted under a lock',
    'POST /webhooks 409 for the eleventh, however many callers create at once; inactive ones count',
  ),
  ...[
    'guard: no endpoint of a disabled workspace is claimed',
    'guard: nothing is loaded for a disabled workspace',
  ].map((marker) =>
    mutant(
      { file: webhooks('endpoints') },
      marker,
      'an endpoint of a disabled workspace is neither claimed nor loaded, and nothing of it is due; enabled, it goes on',
    ),
  ),
  mutant(
    { file: webhooks('endpoints') },
    'guard: lease of an endpoint',
    'the lease of an endpoint excludes other processes until it is released or has expired',
    'and (true',
  ),
  mutant(
    { file: webhooks('endpoints') },
    'guard: count of the owner',
    "the lease of an endpoint lets only its owner count: a process that has lost it only records the delivery's outcome",
    '),',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: leases of endpoints renewed',
    'a long attempt keeps its endpoint: the lease is renewed in the meantime',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: one probe at a time',
    'a failing endpoint gets one delivery at a time after three failures, with gaps that double',
  ),
  mutant(
    { file: 'test/limits/webhook-calls.test.ts' },
    'guard: url checked at every call',
    'does not call a literal address that is not public, in any notation',
  ),
  mutant(
    { file: 'test/limits/webhook-calls.test.ts' },
    'guard: every address of a name is checked',
    'does not call a name if one of its addresses is not public',
  ),
  mutant(
    { file: 'test/limits/webhook-calls.test.ts' },
    'guard: one buffer for all sockets',
    'reads an endless answer in small pieces, so that hundreds of them fit into memory',
  ),
  mutant(
    stopping,
    'guard: attempts may end at a stop',
    'a stop lets an attempt finish: it is recorded and not repeated',
  ),
  mutant(
    stopping,
    'guard: attempts cut off at a stop',
    'a stop cuts off an attempt that continues: its result is unknown, so it is repeated',
  ),
  mutant(
    stopping,
    'guard: leases of endpoints at a stop',
    'a stop keeps the endpoint while it waits, and releases it immediately',
    'const renewed = Promise.resolve()',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: nothing for a deleted endpoint',
    'an endpoint with loaded deliveries gets none of them once it is deleted',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: nothing is loaded for a deleted endpoint',
    'an endpoint with loaded deliveries gets none of them once it is deleted',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: nothing for an endpoint that is off',
    'an endpoint with loaded deliveries gets none of them once it is switched off',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: count of the address',
    'a failing endpoint does not count a late failure of its previous address',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: queued again',
    'resending 200 during the last attempt of a series keeps the new series',
    'const queuedAnew = sql`false`',
  ),
  mutant(
    { file: 'src/capabilities/events/events.test.ts' },
    'guard: poll of waiting readers',
    'GET /events?wait= 200 without a wake-up: the poll finds the event',
    'const poll = undefined',
  ),
  ...people,
  ...pools,
  ...contract,
  ...terminal,

  // Approvals.
  mutant(
    approving,
    'guard: words for an agent',
    '409 while another call with the token is in progress, in words for an agent, which has no Idempotency-Key',
    'throw error',
  ),
  mutant(approving, 'guard: approval is of the key', 'the update does not consume it for another key'),
  mutant(approving, 'guard: approval is of the user', 'the update does not consume it for another user'),
  mutant(
    approving,
    'guard: approval is of the workspace',
    'the update does not consume it for another workspace',
  ),
  mutant(
    approving,
    'guard: approval is for the operation',
    'the update does not consume it for another operation',
  ),
  mutant(
    approving,
    'guard: approval is for the account',
    'the update does not consume it for another account',
  ),
  mutant(approving, 'guard: approval is for the chat', 'the update does not consume it for another chat'),
  mutant(
    approving,
    'guard: approval is for the payload',
    'the update does not consume it for another payload',
  ),
  mutant(approving, 'guard: approval is used once', 'the update does not consume it a second time'),
  mutant(
    approving,
    'guard: account of an approval',
    'the update does not consume it while the account is not READY, also where this process does not know yet',
  ),
  mutant(
    approving,
    'guard: approval expires',
    'two minutes of domain time does not run 120.1 s after it: send_message',
  ),
  mutant(
    approving,
    'guard: approval is of this database',
    'a database restored to before the use refuses a token of an earlier generation of the database',
  ),
  mutant(approving, 'guard: key of an approval', 'what must still exist 403 after the key was revoked'),
  mutant(approving, 'guard: user of an approval', 'what must still exist 403 after the user was disabled'),
  mutant(
    approving,
    'guard: membership of an approval',
    'what must still exist 403 after the membership ended, also where the key still exists',
  ),
  mutant(
    approving,
    'guard: identity of an approval',
    'what must still exist 403 after the identity was linked to another user',
  ),
  mutant(
    approving,
    'guard: uuid of an approval',
    'a token used for something other than was approved 403 twice, and the token is not consumed: the UUID of the identity',
  ),
  mutant(
    approving,
    'guard: platform identity of an approval',
    "a token used for something other than was approved 403 twice, and the token is not consumed: the account's identity on its platform",
  ),
  mutant(
    approving,
    'guard: key of an approved operation',
    'a database restored to before the use does not send again when only the message itself is known',
    'return keyPrefix + crypto.randomUUID()',
  ),
  mutant(
    approving,
    'guard: operation of a used approval',
    'a database restored to before the use consumes the approval when the ledger has the operation',
    "export const isUsed: Sql = sql`a.state = 'used'`",
  ),
  mutant(
    approving,
    'guard: a taken key consumes nothing',
    'an operation whose key is taken consumes nothing and does nothing: send_message',
  ),
  mutant(
    approving,
    'guard: a taken local key consumes nothing',
    'an operation whose key is taken consumes nothing and does nothing: set_column',
  ),
  mutant(
    { file: 'src/capabilities/approvals/approvals.test.ts' },
    'guard: gate of the tool',
    "a write without a token 503 while the tool's gate is closed, with a token and without",
  ),
  mutant(
    { file: 'src/capabilities/campaigns/campaigns.test.ts' },
    'guard: missing things are reported before the limit',
    'POST /campaigns 429 above the limit per minute, not counting replays',
  ),
  mutant(
    { file: 'src/capabilities/approvals/dashboard-routes.test.ts' },
    'guard: a request is decided once',
    'POST /approvals/{request_id}/approve 200 with a token once, and then 409',
  ),
  // Connections of requests and of the background.
  mutant(
    connections,
    'guard: connections of the background',
    'the connections of a process of requests leave some to the background: of 10 they have 6 at most',
    'const requestsMax = pool_size',
  ),
  mutant(
    connections,
    'guard: connections of requests',
    'the connections of a process of the background leave some to requests: of 10 they have 8 at most',
    'const backgroundMax = pool_size',
  ),
  mutant(
    ownConnections,
    'guard: connections of the worker',
    'heartbeats and settings go on while requests hold every connection that they may have',
    'const background = this.app',
  ),
  mutant(
    ownConnections,
    'guard: connections of the settings',
    'heartbeats and settings go on while requests hold every connection that they may have',
    'const settings = openSettings(db)',
  ),
  mutant(
    fairShares,
    'guard: costly reads take turns',
    'while a workspace has a costly read under way its next search is 429 with Retry-After, at the API, at the dashboard and for agents; others get 200',
    'return work()',
  ),
  mutant(
    fairShares,
    'guard: long lists take turns',
    'while a workspace has a costly read under way its long lists wait as well, and short requests do not',
    'const inTurn = <T>(read: () => Promise<T>) => read()',
  ),
  mutant(
    fairShares,
    'guard: a share of costly work',
    'while a workspace has a costly read under way its next search is 429 with Retry-After, at the API, at the dashboard and for agents; others get 200',
    'eachMax: 2,',
  ),
  mutant(
    fairShares,
    'guard: connections beside costly work',
    'half of the connections of requests stay for short ones, whoever reads what takes long',
    'atOnceMax: requestsMax,',
  ),
  mutant(
    {
      file: 'src/lib/parse.test.ts',
      still: 'a long list is read whole if it has no fault, also where it is optional or has a default',
    },
    'guard: a long list is read up to its first fault',
    'a long list is not read beyond its first fault, which is named',
    'const given = value',
  ),
  mutant(
    largeBodies,
    'guard: values of a body',
    'the size of a body, before it is parsed 400 for a body of small lists with one more',
  ),
  mutant(
    largeBodies,
    'guard: property names of a body',
    'the size of a body, before it is parsed 400 for a body of many names with one more',
  ),
  mutant(
    sentFiles,
    'guard: files sent to a workspace',
    '429 with Retry-After beyond the places of a workspace, and 200 once one has ended; another workspace gets 200',
  ),
  mutant(
    sentFiles,
    'guard: files sent by a process',
    'when the process has no place, the oldest answer of the workspace with the most ends; nobody gives way to one with as many',
  ),
  mutant(
    { file: 'test/limits/sent-files.test.ts' },
    'guard: a file that was sent is counted no more',
    'a file that was read to its end has no place any more, nor has one that was only asked about',
  ),
  mutant(
    slowStart,
    'guard: a start waits for a slow database',
    'it begins although each question is answered only at the third time, with and without a demo',
    'throw error',
  ),
  mutant(slowStart, 'guard: a start that is stopped asks no more', 'a start that is stopped asks no more'),
  mutant(
    fairShares,
    'guard: connections beside long work',
    'what holds a connection for long 200 for a short request while three tenants read, two create and one imports',
    'const most = requestsMax',
  ),
  mutant(
    fairShares,
    'guard: a share of long work',
    'what holds a connection for long a workspace has half of the places, so that another one finds one',
    'eachMax: most,',
  ),
  ...(
    [
      [
        'guard: costly reads take places',
        'a costly read',
        'const run = <T>(turn: WorkspaceTurn, work: () => Promise<T>) => inTurn(turn, work)',
      ],
      ['guard: creations take places', 'a creation', 'const inPlace = run'],
      ['guard: reads of plays take places', 'a preview', 'const { head, facts } = await read()'],
      ['guard: pieces of exports take places', 'an export', 'const next = () => pieces.next()'],
    ] as const
  ).map(([guard, kind, without]) =>
    mutant(
      fairShares,
      guard,
      `what holds a connection for long ${kind} waits for a place while all are taken`,
      without,
    ),
  ),
  mutant(
    fairShares,
    'guard: imports take places',
    'what holds a connection for long an import waits for a place while all are taken',
    'return await importFile(app, actor, given)',
  ),
  mutant(
    fairShares,
    'guard: a reader of a long list who leaves waits no longer',
    'while a workspace has a costly read under way a caller of a long list that leaves waits no longer',
    'const turn = { workspace_id, left: undefined }',
  ),
  mutant(
    fairShares,
    'guard: an agent that leaves waits no longer',
    'while a workspace has a costly read under way a caller at the endpoint of agents that leaves waits no longer',
  ),
  mutant(
    { file: 'src/capabilities/search/index/evaluations.test.ts', still: 'short ones are evaluated at once' },
    'guard: long posting lists in a thread',
    'long posting lists leave the event loop free',
    'return evaluatePacked(segments)',
  ),
  mutant(
    { file: 'src/lib/slices.test.ts', still: 'a short list is done at once' },
    'guard: slices give way',
    'a long list gives way to other work, and keeps its order',
  ),
  mutant(atRest, 'guard: collects at rest only', 'a process at work is not stopped'),
  mutant(
    atRest,
    'guard: memory at rest',
    'garbage is collected once the process rests, and again after the next burst',
  ),
  mutant(
    atRest,
    'guard: what stays is not collected again',
    'what stays in use is not collected for again, and no little growth is',
  ),
  mutant(
    {
      file: 'src/lib/threads.test.ts',
      still: 'keeps a thread for the next call, and gives two calls at once one each',
    },
    'guard: idle threads end',
    'a thread that is idle for too long ends, and with it its memory',
  ),
  // Plays of campaigns.
  mutant(
    turnsOfKeys,
    'guard: places of one key',
    'turns of many keys runs as many per key as it may have, and leaves the rest of the places to other keys',
  ),
  mutant(
    turnsOfKeys,
    'guard: callers that may wait',
    'turns of many keys a key with nothing running does not wait behind another that has too much',
  ),
  mutant(
    turnsOfKeys,
    'guard: keys take turns',
    'turns of many keys runs one at a time per key, two in all, and the keys take turns',
  ),
  mutant(
    turnsOfKeys,
    'guard: places of all keys',
    'turns of many keys runs one at a time per key, two in all, and the keys take turns',
  ),
  mutant(
    turnsOfKeys,
    'guard: a caller who leaves waits no longer',
    "turns of many keys a caller that leaves stops waiting, and takes no other caller's place",
  ),
  mutant(
    { file: 'test/limits/plays.test.ts' },
    'guard: the thread learns that the caller left',
    '429 with Retry-After for the same workspace while one runs, 200 for another one; and a caller who leaves ends it',
  ),
  mutant(
    playing,
    'guard: a play is kept for a minute',
    'a play serves further pages for a minute, but not after something has changed',
    'return undefined',
  ),
  mutant(
    playing,
    'guard: a play stops when the caller leaves',
    'a play stops when no caller waits for it, and is not kept',
  ),
  mutant(
    playing,
    'guard: a play has a budget of processor time',
    'a play returns what it has, without an end, when its processor time is used up',
  ),
  mutant(
    telegram('transport'),
    'guard: held before every write',
    'a connection whose lease has expired writes no byte, and ends',
    'const mayWrite = true',
  ),
  mutant(
    telegram('transport'),
    'guard: transport error',
    'a connection that gets a frame of four bytes, which is a transport error, ends',
    'if (length === 5) {',
  ),
  mutant(
    telegram('first-day'),
    'guard: the next client has the right time',
    'a clock that is wrong by ten minutes ahead connects at the second try, and says how far it is off',
  ),
  ...(
    [
      ['first-day', 'a clock that is wrong by ten minutes ahead logs out at the first call'],
      ['first-day', 'a clock that is wrong by ten minutes ahead imports a session at the first call'],
      ['rehearse', 'all twenty checks pass with a clock that is ten minutes fast'],
    ] as const
  ).map(([file, test]) =>
    mutant(telegram(file), 'guard: one more try with the right time', test, 'const isCorrected = false'),
  ),
  mutant(
    telegram('first-day'),
    'guard: a corrected time is known while connected',
    'a clock that is wrong by ten minutes behind connects, and says while connected how far it is off',
  ),
  mutant(
    telegram('first-day'),
    'guard: a clock that was set is right',
    'a clock that is wrong is right as soon as it is set, without a restart',
    'return this.#offset - origin',
  ),
  mutant(
    telegram('first-day'),
    'guard: a corrected clock keeps no account away',
    'a clock that is wrong is not what keeps an account away once it is corrected for',
    'const isCorrected = true',
  ),
  mutant(
    telegram('first-day'),
    'guard: the doctor asks the time through a proxy',
    'the doctor asks the time through a proxy by socks5 if no account connects without one',
    'const ways = ownWay ? [ownWay] : []',
  ),
  mutant(
    telegram('first-day'),
    'guard: a code expires by the time of the server',
    'a clock that is wrong by -600 s shows QR codes for as long as they are valid',
    'const leftMs = told.expires * 1000 - Date.now()',
  ),
  mutant(
    telegram('first-day'),
    'guard: an unknown login may pass',
    'a login that Telegram does not know for a moment (-404) connects when it is asked again',
    'const isOver = true',
  ),
  mutant(
    telegram('first-day'),
    'guard: a 401 in a session may pass',
    'a login that Telegram does not know in the middle of a session for a moment: the session is lost, the send may be repeated, and the next session sends',
    'const doubt = undefined',
  ),
  mutant(
    telegram('first-day'),
    'guard: a short session settles no doubt',
    'a login that Telegram does not know in the middle of a session for minutes needs a login, also if every connect succeeds',
    'const wasSteady = this.#connectedAt !== undefined',
  ),
  mutant(
    telegram('connect-memory'),
    'guard: a short session settles no doubt',
    'a login that Telegram does not know a second time is tried again if a session in between lasted, however soon after a reconnect',
    'const wasSteady = false',
    'no session settles a doubt',
  ),
  mutant(
    telegram('first-day'),
    'guard: a session that ends settles the doubt before it',
    'a login that Telegram does not know in the middle of a session for a moment, and hours after it was known again for another one: it is tried again',
  ),
  ...(
    [
      ['const isFinal = true', 'of a login that Telegram does not know for a moment ends it'],
      [
        'const isFinal = tries === logoutTriesMax',
        'of a login that is over already (401 SESSION_REVOKED) believes it at answer 1',
      ],
    ] as const
  ).map(([replace, test]) =>
    mutant(telegram('first-day'), 'guard: a logout is tried again', `a logout ${test}`, replace),
  ),
  ...(
    [
      ['if (seconds === undefined) throw error', '406 SEND_CODE_UNAVAILABLE'],
      ['if (!isUnavailable) throw error', '420 FLOOD_WAIT_300'],
    ] as const
  ).map(([replace, error]) =>
    mutant(
      telegram('first-day'),
      'guard: a code stays valid where no other can be sent',
      `a code stays valid where Telegram refuses to send another (${error})`,
      replace,
    ),
  ),
  ...(
    [
      'guard: the terminal shows where a code is',
      'guard: the terminal says how a code is sent again',
    ] as const
  ).map((marker) =>
    mutant(
      { file: 'test/telegram.test.ts' },
      marker,
      'a login says where a code is, and has it sent again by an empty line',
    ),
  ),
  mutant(
    telegram('first-day'),
    'guard: an account that left has no clock',
    'a clock that is wrong is forgotten with the account that this process gives up',
    'forgetAccount: () => {},',
  ),
  ...(
    [
      ['guard: an account that leaves is forgotten', ''],
      ['guard: an account that came back is not forgotten', 'const isGone = true'],
    ] as const
  ).map(([marker, replace]) =>
    mutant(
      { file: worker('account-pool') },
      marker,
      'has the platform forget an account that it gives up, but not one that it has claimed again',
      replace,
    ),
  ),
  mutant(
    { file: 'test/telegram.test.ts' },
    'guard: the clock of a platform is a metric',
    'a clock that is wrong is at /metrics while an account connects with it, and not once the account has left',
    "figure: 'uploads',",
  ),
  mutant(
    { file: alerting },
    'guard: held campaigns are worth an alert',
    'an alert of the kind campaigns_held is posted when it begins and when it is over, once each, and not again and again within an hour',
    'return []',
  ),
  mutant(
    telegram('first-day'),
    'guard: a login that was ended never passes',
    'a login that Telegram does not know in the middle of a session for good (401 SESSION_REVOKED)',
    'return name !== undefined',
  ),
  mutant(
    telegram('first-day'),
    'guard: the account says that the clock is wrong',
    'a clock that is wrong by ten minutes ahead connects at the second try, and says how far it is off',
  ),
  mutant(telegram('first-day'), 'guard: a code that costs money', 'a code that has to be paid for says so'),
  mutant(
    telegram('first-day'),
    'guard: an address of a code is shown',
    'a code by fragment is what a person types',
  ),
  mutant(
    telegram('errors'),
    'guard: names beyond the documentation',
    'the table of errors USER_ID_INVALID is chat_unavailable, whatever its code',
    'const listed = Object.entries(names)',
  ),
  mutant(
    telegram('adapter'),
    'guard: no text goes out without its file',
    'telegram, on a data centre on loopback send accepts one file, and its handle once',
    '',
  ),
  mutant(
    { file: ledger('recovery'), still: 'a message with its random id proves that it was sent' },
    'guard: another message of ours is no proof',
    'a message of ours with another random id proves nothing, whatever its text',
    'const proven = own.filter(({ random_id }) => random_id !== null)',
  ),
  mutant(
    attempting,
    'guard: lost commit of one alone',
    'when the answer to the crossing is lost also when it crosses alone because its batch was rejected',
    "(err) => uncrossed(alone, 'failed'),",
  ),
  mutant(
    rechecking,
    'guard: what we have sent is no answer',
    'while first messages are stopped, a chat gets none before the person has written, whatever was sent there',
    '',
  ),
  mutant(
    incoming,
    'guard: a reply on another platform',
    `${elsewhere} does not receive it on another platform, where the number is another person`,
    '',
  ),
  mutant(
    identities,
    'guard: a contact is known by its own number',
    'a follow-up to a person whose names no account knows is not sent before the account has asked',
    '',
  ),
  mutant(
    telegram('updates'),
    'guard: a stored state has a difference to come',
    'a push that arrives before the first difference is not caught up either where it waits behind another until the session begins',
    'this.#isCaughtUp = true',
  ),
  mutant(
    claiming,
    'guard: a login takes no account that a worker drives',
    'claimAccount, for a login takes an account whose lease has expired, but none that a worker drives',
    'or true',
  ),
  mutant(
    telegram('trouble'),
    'guard: a frozen account appeals',
    'FROZEN_METHOD_INVALID is a restriction that a person lifts',
    'const known = name',
  ),
  mutant(
    telegram('trouble'),
    'guard: the cheap act comes first',
    'AUTH_KEY_UNREGISTERED asks for one more try, then for a login',
    `AUTH_KEY_UNREGISTERED: (id) => \`The login was ended at Telegram. ${value('logIn(id)')}\`,`,
  ),
  ...(
    [
      ['guard: a login names a real system', "systemVersion: '',"],
      ['guard: a login names the language of its system', "systemLangCode: '',"],
      ['guard: a login names its language', "langCode: '',"],
    ] as const
  ).map(([marker, replace]) =>
    mutant(
      telegram('adapter'),
      marker,
      'on one data centre a session shows as the device Parley with its version, its system and its language',
      replace,
    ),
  ),
  mutant(
    telegram('first-day'),
    'guard: a login begins again when asked to',
    'a code is asked for again when Telegram wants the login to begin again, and not for ever',
    'const isRestart = false',
  ),
  mutant(
    telegram('first-day'),
    'guard: a login that began again notices a lost connection',
    'a code that Telegram refused at first and then sent is asked for until the connection is lost',
  ),
  mutant(
    { file: 'test/command-line.test.ts' },
    'guard: surplus arguments are not repeated',
    'an argument that a verb does not take is not repeated',
    'return text',
  ),
  mutant(
    { file: 'src/lib/text.test.ts' },
    'guard: a session string is not repeated',
    'contains no secret, and an id stays',
    'const sessionStrings = /(?!)/',
  ),
  mutant(
    telegram('first-day'),
    'guard: a password is proven again',
    'a password whose question has changed since is proven again',
    'const isStale = false',
  ),
  mutant(
    telegram('first-day'),
    'guard: an empty code has it sent again',
    'a code is sent again by the next way after an empty answer',
  ),
  mutant(
    loginRoutes,
    'guard: an answer that asks for the code again',
    'POST /accounts/{account_id}/login/answer 200 for again: the code comes by the next way, the same question stands until then, and nothing counts as wrong',
  ),
  mutant(
    { file: 'web/src/pages/accounts/account-acts.test.ts' },
    'guard: a login is tried once more',
    'an account that needs a login, and one is stored offers enabling or not',
  ),
  mutant(
    telegram('first-day'),
    'guard: a code by mail is sent as one',
    'a code by email is what a person types',
  ),
  mutant(
    telegram('first-day'),
    'guard: a phrase keeps its spaces',
    'a code by phrase is what a person types',
    'const isText = false',
  ),
  mutant(
    telegram('first-day'),
    'guard: strangers are not kept',
    'strangers who write in supergroups are not kept when the list of chats brings the last message of each supergroup',
    'const isKept = () => true',
  ),
  mutant(
    telegram('first-day'),
    'guard: an import stops at a duplicated key',
    'the session of another program is refused as session_duplicated (AUTH_KEY_DUPLICATED), and its string is in no report',
  ),
  mutant(
    telegram('session-string'),
    'guard: a session string is checked',
    'a session string that is none is refused: case 5',
    'const isPlausible = found',
  ),
  mutant(
    telegram('first-day'),
    'guard: the doctor compares the clocks',
    'the doctor says how far the clock is off',
    'const problem = explainClock(0)',
  ),
  mutant(
    { file: 'src/capabilities/accounts/import.test.ts' },
    'guard: a refused import ends no session',
    'a session that is refused here stays with the program that has it',
  ),
  mutant(
    telegram('updates'),
    'guard: nothing is queued for strangers',
    'pushed updates of channels and of who is online are dropped before the queue, however many arrive',
    'return container',
  ),
  mutant(
    telegram('updates'),
    'guard: an empty container is no batch',
    'pushed updates of channels that have a place among the containers move it, and are no batch',
  ),
  mutant(
    telegram('view'),
    'guard: the service chat is not shown',
    'of the service chat shows that a code came and when, and nothing else',
  ),
  mutant(
    telegram('peers'),
    'guard: the service user is not kept',
    'never keeps the service user, whose chat brings login codes',
    "const isKept = user._ === 'user' && !user.min",
  ),
  mutant(
    telegram('read'),
    'guard: the cursor keeps the channel',
    'listChats begins the next page with the channel that ended the last one, and its access hash',
    'return String(id)',
  ),
  mutant(
    { file: 'src/capabilities/accounts/tidy.test.ts' },
    'guard: only admins see that a code came',
    'only an admin or owner sees that a login code came, and when',
    'const isAdmin = true',
  ),
  mutant(
    telegram('updates'),
    'guard: an outdated position is no gap',
    'the difference from a state that Telegram has not reached yet is requested again, and no gap',
    'else if (/^(PERSISTENT_TIMESTAMP|DATE_EMPTY)/.test(text)) {',
  ),
  mutant(
    telegram('updates'),
    'guard: a difference advances',
    'the difference whose slices do not advance ends the stream after a few of them',
  ),
  mutant(
    { file: 'src/config.test.ts' },
    'guard: an empty variable that must not be',
    'the configuration refuses an empty PARLEY_TELEGRAM_DC: a script that meant a data centre for tests would reach Telegram',
    'const isFault = false',
  ),
  mutant(
    telegram('updates'),
    'guard: no push is caught up before the difference',
    'a push that arrives before the first difference is not caught up: what was sent before the session is not known yet',
    'const caught_up = this.#waiting.length === 0',
  ),
  mutant(
    telegram('updates'),
    'guard: a push before the beginning',
    'the start without a state ignores what is pushed before it, and does not fail',
  ),
  mutant(
    telegram('updates'),
    'guard: what still waits is asked for again',
    'the difference is requested again while something waits that it did not bring',
  ),
  mutant(
    { file: worker('account-pool') },
    'guard: restricted before the gap is stored',
    'restricts an account before it stores the gap for which it does',
  ),
  mutant(
    telegram('adapter'),
    'guard: an unknown key needs a login',
    'on one data centre a key that Telegram does not know asks for a login',
  ),
  mutant(
    telegram('transport'),
    'guard: bounded frame',
    'a connection that gets a frame of more than 4 MiB ends before the frame is read',
  ),
  mutant(
    platformStore,
    'guard: peers are written under the lease',
    'the peers of an account are not written by a worker that has lost the lease, whichever worker holds it now',
  ),
  mutant(
    platformStore,
    'guard: a session is bound to its account',
    'the session of an account is bound to its row: copied to another account it does not open',
    "return account_id && 'platform_sessions'",
  ),
  mutant(
    platformStore,
    'guard: an ended session says nothing of a new login',
    'trouble of an ended session counts only while its lease is held',
  ),
  mutant(
    attempting,
    'guard: an ended session says nothing of a new login',
    'trouble of an account that a call learns after its lease has passed on is not noted: the account may be logged in again',
  ),
  mutant(
    platformStore,
    'guard: connected under the present lease',
    'trouble is not hidden by a session that connected under an earlier lease',
  ),
  mutant(
    platformStore,
    'guard: connecting does not undo trouble',
    'trouble is not undone by a session of a NEEDS_LOGIN account that connects late',
  ),
  mutant(
    loggingIn,
    'guard: one login of an account at a time',
    'a login runs once at a time per account; another account does not wait',
  ),
  mutant(
    loggingIn,
    'guard: log out first',
    'a login of an account that is logged in is refused, also once it is READY',
  ),
  mutant(
    loggingIn,
    'guard: a refused login leaves no key behind',
    'a user of the platform is one account of the instance until logged out; the refusal names no workspace',
    "const outcome = { kind: 'accepted' }",
  ),
  mutant(
    loggingIn,
    'guard: an account keeps its user',
    'a user of the platform is the only one that an account accepts after its first login',
  ),
  mutant(
    loggingIn,
    'guard: one user is one account',
    'a user of the platform is one account of the instance until logged out; the refusal names no workspace',
  ),
  mutant(
    loggingIn,
    'guard: a copy logs no account of the original out',
    'a logout in a database that may be a copy is only local',
    'if (false) {',
  ),
  mutant(
    loggingIn,
    'guard: the worker has let go',
    'a logout waits until the worker has released the account',
    'return',
  ),
  mutant(
    {
      file: 'src/cli/prompt.test.ts',
      still: 'piped lines answer in turn, and the end of the input is an error',
    },
    'guard: a password is not shown',
    'at a terminal a code is shown as it is typed, and a password is not',
    'output.write(chunk)',
  ),
  mutant(telegram('transport'), 'guard: one connection', 'the transport of a session dials once'),
  mutant(
    telegram('transport'),
    'guard: loopback only',
    'the transport of a session of a test dials only loopback',
  ),
  mutant(
    telegram('transport'),
    'guard: the gate of all calls',
    'a connection that is cut ends, and every later call is not_written',
    'const mayCall = true',
  ),
  mutant(
    telegram('storage'),
    'guard: only the login writes keys',
    'a session neither writes nor deletes a key',
    'authKeys: (storage.authKeys.set(session.dc_id, key), storage.authKeys),',
  ),
  mutant(
    telegram('errors'),
    'guard: an error that is not listed is unknown',
    'the table of errors INTERNAL proves nothing, and keeps its name because it is not listed',
    "const meaning = findMeaning(text) ?? 'message_invalid'",
  ),
  mutant(
    telegram('open'),
    'guard: the test servers are not telegram itself',
    testServers,
    "const test_dc = dc === 'test' ? null : dc && trustDc(dc)",
  ),
  mutant(
    telegram('open'),
    'guard: the test servers are dialled in test mode',
    testServers,
    'const testMode = false',
  ),
  mutant(
    telegram('rehearse'),
    'guard: a rehearsal stops without an account',
    'a login that fails ends the rehearsal: the rest is not run',
  ),
  mutant(
    telegram('rehearse'),
    'guard: only what the rehearsal wrote is deleted',
    'all twenty checks pass, nothing is left behind, and the report has no secret in it',
  ),
  mutant(
    telegram('rehearse'),
    'guard: codes are made up on test servers alone',
    'codes are made up for numbers of the test servers alone',
    'if (dc === undefined) return undefined',
  ),
  mutant(
    telegram('rehearse'),
    'guard: a report has no foreign text',
    'an error that is not ours reaches the report by its kind alone',
    'return String(error)',
  ),
  mutant(
    telegram('module'),
    'guard: a foreign data centre is on loopback',
    'refuses 149.154.167.50:443,key.pem',
  ),
  mutant(
    telegram('read'),
    'guard: a username that is switched off',
    'askPerson shows a person not under a username that is switched off',
    'const active = (user.usernames ?? []).map(({ username }) => username)',
  ),
  mutant(
    telegram('read'),
    'guard: a number that is not shown proves nothing',
    'askPerson shows a person not under a hidden one',
    ': true',
  ),
  mutant(
    telegram('send'),
    'guard: a caption that is too long',
    "refuses a caption above the account's limit before the call",
    'if (file && text === null) {',
  ),
  mutant(
    telegram('send'),
    'guard: answers are fed',
    'accepts a short answer, and feeds it to the updates with text and random id',
  ),
  mutant(
    telegram('send'),
    'guard: an answer without our random id is unknown',
    'accepts a full answer that names our random id, and treats another as unknown',
    "if (proof?._ !== 'updateMessageID') return { kind: 'accepted', value: { message_id: '0', at: timeOf(0) } }",
  ),
  mutant(
    telegram('upload'),
    'guard: parts are copied',
    'also copies a chunk as long as a part',
    'part = filled === 0 && bytes.length === part.length ? bytes : (part.set(bytes, filled), part)',
  ),
  mutant(
    telegram('updates'),
    'guard: a container that is missing',
    'pushed updates in a container after a missing one wait as well',
  ),
  mutant(
    telegram('updates'),
    'guard: an update that is missing',
    'pushed updates wait for a missing one before them, without a request for the difference',
  ),
  mutant(
    telegram('updates'),
    'guard: an update that is known',
    'pushed updates are delivered in order, each once, with the state after them',
    '}',
  ),
  mutant(
    telegram('updates'),
    'guard: a pts ahead of ours',
    'the difference is requested when Telegram is ahead of us, and only then',
    'await this.#difference()',
  ),
  mutant(
    telegram('updates'),
    'guard: so many containers wait',
    'pushed updates end the stream when 5,000 of them wait',
    'const isFull = false',
  ),
  mutant(
    telegram('updates'),
    'guard: a slice is not caught up',
    'the start with a state is the difference, in slices of which only the last is caught up',
    'await this.#hand(updatesOf(found), { users, chats, caught_up: true })',
  ),
  mutant(
    telegram('updates'),
    'guard: missed updates end the stream',
    'the difference that is too long moves on, reports the gap, and ends the stream before it is caught up',
    "throw new Error('Updates were missed.')",
  ),
  mutant(
    telegram('updates'),
    'guard: an awaited batch',
    'pushed updates wait until the batch before is stored',
    'taken.catch(() => {})',
  ),
  mutant(
    telegram('view'),
    'guard: an edit that changes nothing shown',
    'ignores an edit that Telegram hides, as it does for reactions',
  ),
  // The data centre of the tests.
  mutant(
    dataCentre('sending'),
    'guard: random id accepted once',
    'de-duplication answers a repeated random id with the first message, and accepts the same id from another account',
    'const first = undefined',
  ),
  mutant(
    dataCentre('sending'),
    'guard: own sends only in their answers',
    'messages.sendMessage is accepted, and its connection gets it in the answer alone',
  ),
  mutant(
    dataCentre('sending'),
    'guard: a number needs its access hash',
    'messages.sendMessage needs the access hash that this account got for the person',
    'return peer.userId',
  ),
  mutant(
    dataCentre('devices'),
    'guard: random ids only to the key that sent',
    'two devices of one account both get what happens; the random id of a message only the device that sent it',
    'return [viewSent(post), carrier]',
  ),
  mutant(
    dataCentre('devices'),
    'guard: a page continues after its peer',
    'channels and supergroups a page continues after its offset peer: a channel needs its hash, and a peer from elsewhere misleads',
    'return given',
  ),
  mutant(
    dataCentre('server-clock'),
    'guard: a message id of the past',
    'a message id more than 300 s behind is refused',
  ),
  mutant(
    dataCentre('server-clock'),
    'guard: a message id of the future',
    'a message id more than 30 s ahead is refused',
  ),
  mutant(
    dataCentre('hostile'),
    'guard: bounded frames',
    'garbage ends its own connection and no other a frame of 2 GiB',
  ),
  mutant(
    dataCentre('hostile'),
    'guard: a message id is processed once',
    'processes frames once that are written twice',
  ),

  // Leases, as a platform's session sees them.
  mutant(
    claiming,
    'guard: takeover waits',
    'claimAccounts when a platform requires 75 seconds before another worker takes over skips an account whose lease expired 74 seconds ago, and claims one after 76',
    'or f.lease_until < real_now()',
  ),
  mutant(
    claiming,
    'guard: accounts of disabled workspaces are not shared out',
    'readShares leaves out the accounts of a disabled workspace',
  ),
  mutant(
    claiming,
    'guard: only workers that have the platform',
    'readShares counts the workers of each platform',
  ),
  mutant(
    claiming,
    'guard: held by the monotonic clock',
    'a lease checked without the database ends by the monotonic clock',
    'const awake = true',
  ),
  mutant(
    claiming,
    'guard: held by the wall clock',
    'a lease checked without the database ends by the wall clock, which goes on while a machine sleeps',
    'return awake',
  ),
  ...[
    [
      'guard: a session that is over holds nothing',
      'return isHeldSince(this.#leasedAt, momentOf(this.#app.sources))',
    ],
    ['guard: only a renewed lease stays held', ''],
  ].map(([marker = '', replace = '']) =>
    mutant(
      {
        file: worker('account-pool'),
        still: 'claims accounts, and gives them up while the journal cannot be written',
      },
      marker,
      'reports to a platform whether the lease still holds: while renewals arrive, and not after the session has ended',
      replace,
    ),
  ),
  mutant(
    {
      file: worker('account-pool'),
      still: 'claims accounts, and gives them up while the journal cannot be written',
    },
    'guard: a wait at connect is served in full',
    "waits out a platform's whole flood wait before it connects again",
    "if (end.kind === 'flood_wait') return 300_000",
  ),
  mutant(
    {
      file: worker('account-pool'),
      still: 'claims accounts, and gives them up while the journal cannot be written',
    },
    'guard: few history calls of an account',
    'an account fetches two at a time of many chats whose history callers wait for',
    'false',
  ),

  // Waits apart, first messages that the platform stopped, and updates that went missing.
  mutant(
    attempting,
    'guard: a wait on reading is no strike',
    'a flood wait for reading counts as 0 strikes',
    'return true',
  ),
  mutant(
    planning,
    'guard: only who must be looked up waits for lookups',
    'the plan a flood wait for look-ups, in a known chat',
    'const lookups = lookup_flood_until',
  ),
  mutant(planning, 'guard: stopped first messages', 'the plan first messages stopped by the platform'),
  mutant(
    { file: running('dispatch-contacts') },
    'guard: known chats pass those to be looked up',
    'contacts wait out a flood wait for look-ups, while those with known chats get their messages',
    "and k.kind <> 'contacts'",
  ),
  mutant(
    { file: running('dispatch') },
    'guard: no first message while they are stopped',
    'a platform that stops first messages gets none until the account is enabled again; answers and follow-ups continue',
  ),
  mutant(
    { file: running('dispatch') },
    'guard: enabling allows first messages again',
    'a platform that stops first messages gets none until the account is enabled again; answers and follow-ups continue',
    'const cold = false',
  ),
  mutant(
    { file: running('dispatch') },
    'guard: enabling lifts what was stopped',
    'a platform that stops first messages gets none until the account is enabled again; answers and follow-ups continue',
    'else if (false) {',
  ),

  // Errors that no adapter lists.
  mutant(
    telegram('errors'),
    'guard: an unlisted error keeps its name',
    'the table of errors INTERNAL proves nothing, and keeps its name because it is not listed',
    "return { kind: 'unknown', reason }",
  ),
  mutant(
    { ...holding, still: `${unlisted} that is recorded twice counts once` },
    'limit: sends with one unlisted error',
    `${unlisted} holds campaign messages at the fifth send in a row, and keeps the name`,
    'export const unlistedMax = 6',
    'campaigns hold after six sends',
  ),
  mutant(
    { file: ledger('holds') },
    'limit: sends with one unlisted error',
    `${unlisted} holds campaign messages at the fifth send in a row, and keeps the name`,
    'export const unlistedMax = 4',
    'campaigns hold after four sends',
  ),
  mutant(
    holding,
    'guard: one name in a row',
    `${unlisted} is forgotten after another unlisted error`,
    'when g.error is not null',
  ),
  mutant(holding, 'guard: an accepted send ends the row', `${unlisted} is forgotten after an accepted send`),
  mutant(
    holding,
    'guard: sends alone are counted',
    `${unlisted} counts for its own account alone, and for sends alone`,
    'const error = answerOf(outcome)',
  ),
  mutant(
    holding,
    'guard: an answer counts once',
    `${unlisted} that is recorded twice counts once`,
    'const changed = new Set(answers.map(({ id }) => id))',
  ),
  mutant(
    holding,
    'guard: characters of an error name',
    `${unlisted} of any name and length is recorded`,
    'const name = text',
  ),
  mutant(
    holding,
    'guard: a person lets campaigns go on',
    `${unlisted} holds again only after five more, once a person has let campaigns go on`,
    'const held = false',
  ),
  mutant({ file: running('dispatch') }, 'guard: campaigns that hold', heldCampaigns),
  mutant(
    { file: running('dispatch') },
    'guard: a forecast without held campaigns',
    heldCampaigns,
    "a.status = 'READY' as enabled,",
  ),
  mutant({ file: running('dispatch') }, 'guard: pages say that campaigns hold', heldCampaigns, 'as ready,'),
  mutant(
    { file: running('dispatch-contacts') },
    'guard: held accounts leave no contact aside',
    'contacts 1: go to another account of the pool when the campaigns of one hold',
  ),
  mutant(
    { file: running('dispatch-contacts') },
    'guard: held accounts make no other wait',
    'contacts 3: go to another account of the pool when the campaigns of one hold',
  ),
  mutant(
    { file: running('replies') },
    'guard: campaigns wait for a gap',
    'a message whose update was lost no follow-up is sent before it is fetched, and the page says that the account is not ready',
  ),
  mutant(
    { file: running('replies') },
    'guard: a chat with news after a gap is fetched',
    'a message whose update was lost an opt-out among more messages than a page has suppresses the person',
  ),
  mutant(
    { file: running('replies') },
    'guard: a gap is fetched whole',
    'a message whose update was lost an opt-out among more messages than a page has suppresses the person',
    'closed = true',
  ),
  mutant(
    { file: 'src/capabilities/history/history.test.ts' },
    'guard: a gap that came meanwhile is fetched too',
    'a gap in one chat that comes while the sync ends is fetched too',
  ),
  mutant(
    { file: 'src/capabilities/history/history.test.ts' },
    'guard: the first of two gaps counts',
    'a gap begins at the message that was stored before the first of two',
    'set gap_after = excluded.gap_after',
  ),
  mutant(
    { file: worker('account-pool') },
    'guard: a gap is synced in the same session',
    'syncs the account again when updates go missing in a session, without a new connection',
  ),
  mutant(
    { file: worker('ingest') },
    'guard: participants that are not listed stay',
    'a platform that reports no unread count with a message the participants it does not list stay as they were',
    'const isUnlisted = isStale(first)',
  ),
  mutant(
    { file: worker('ingest') },
    'guard: an unread count that is not reported stays',
    'a platform that reports no unread count with a message every new incoming message adds one, an own one or a repeated one none',
    'const unread = sql`unread_count = excluded.unread_count,`',
  ),
  mutant(
    { file: worker('ingest') },
    'guard: a count includes the messages before it',
    'a platform that reports no unread count with a message a count includes the messages before it, in its batch or earlier, and later ones add to it',
  ),
  mutant(
    { file: worker('ingest') },
    'guard: a deleted message is not unread',
    'a platform that reports no unread count with a message a deleted message is unread no longer, and one that was read changes nothing',
  ),
  mutant(
    { file: worker('ingest') },
    'guard: what came after the last read message is unread',
    'a platform that reports no unread count with a message what came after the last read message is unread, in whatever order both arrive',
  ),
  mutant(
    restoring,
    'guard: no connection for a clone',
    'at the start with accounts that two addresses must not use at once does not connect them in a fresh copy without another living worker, until sending is switched on',
    'or true)',
  ),
  mutant(
    restoring,
    'guard: a copy has no other heartbeat',
    'at the start with accounts that two addresses must not use at once connects them when other workers are alive',
  ),
  mutant(
    accountRoutes,
    'guard: a private proxy is refused',
    'PATCH /accounts/{account_id} 400 for {"proxy":"socks5://10.0.0.1:1"}, and changes nothing',
    "const problem = typeof proxy === 'string' ? proxy : undefined",
  ),
  mutant(
    accountRoutes,
    'guard: a proxy is bound to its account',
    'the sealed proxy of one account cannot be opened for another',
    "return 'accounts:proxy'",
  ),
  mutant(
    accountRoutes,
    'guard: another proxy ends the session',
    'PATCH /accounts/{account_id} 200 with another proxy takes the account from its worker; with another name it does not',
  ),
  mutant(
    callAccounts,
    'guard: members read accounts in every status',
    'a write move_chat needs a READY account at both doors',
    "return channel === 'dashboard'",
    'writes at the dashboard use every account',
  ),
  mutant(
    callAccounts,
    'guard: members read accounts in every status',
    'a read get_chat at the API answers 403 for an account that is not READY, and 400 without one',
    "return route.effect === 'read'",
    'reads at the API see every account',
  ),
  mutant(
    stageRoutes,
    'guard: a stage of the workspace is changed',
    "PATCH /stages/{stage_key} 200 leaves another workspace's stage of the same key as it is",
  ),
  mutant(
    stageRoutes,
    'guard: a stage of the workspace is deleted',
    "DELETE /stages/{stage_key} 200 leaves another workspace's stage of the same key as it is",
  ),
  mutant(
    columnRoutes,
    'guard: options of a column of the workspace',
    "POST /columns/{column_id}/options 404 for another workspace's column, which gets no option",
  ),
  mutant(
    columnRoutes,
    'guard: values of a column of the workspace are deleted',
    "DELETE /columns/{column_id} 404 for another workspace's column, whose values stay",
  ),
  mutant(
    savedReplies,
    'guard: saved replies counted one at a time',
    'POST /saved_replies 409 while another request that has not committed stores the 500th',
  ),
  mutant(
    savedReplies,
    'guard: a saved reply of the workspace is changed',
    "PATCH /saved_replies/{saved_reply_id} 404 for another workspace's, which stays as it was",
  ),
  mutant(
    savedReplies,
    'guard: a saved reply of the workspace is deleted',
    "DELETE /saved_replies/{saved_reply_id} 404 for another workspace's, which stays",
  ),
  mutant(
    { file: 'test/people.test.ts', still: 'GET /keys answers as its line says to: member' },
    'guard: accounts of another workspace',
    'POST /accounts/{account_id}/disable answers as its line says to: admin',
  ),
  mutant(
    loginRoutes,
    'guard: few open logins of a workspace',
    'POST /accounts/{account_id}/login 409 for the sixth at a time in a workspace',
  ),
  mutant(
    loginRoutes,
    'guard: one request for an account',
    'POST /accounts/{account_id}/login 429 for the fourth in an hour, with Retry-After; 200 for another account',
    'where true',
  ),
  mutant(
    loginRoutes,
    'guard: logins of a number in a workspace',
    'POST /accounts/{account_id}/login 429 for the fourth of one phone number in an hour, whichever account it is for; six in the instance',
  ),
  mutant(
    loginRoutes,
    'guard: logins of a number in the instance',
    'POST /accounts/{account_id}/login 429 for the fourth of one phone number in an hour, whichever account it is for; six in the instance',
  ),
  mutant(
    accountRoutes,
    'guard: accounts of a workspace',
    'POST /accounts 409 beyond the limit of the operator, also at once; a disabled account makes room, and enabling needs it',
    'return',
  ),
  mutant(
    accountRoutes,
    'guard: enabling takes a place',
    'POST /accounts 409 beyond the limit of the operator, also at once; a disabled account makes room, and enabling needs it',
  ),
  mutant(
    loginRoutes,
    'guard: few logins an hour',
    'POST /accounts/{account_id}/login 429 for the fourth in an hour, with Retry-After; 200 for another account',
  ),
  mutant(
    loginRoutes,
    'guard: only who may answer sees what is shown',
    'POST /accounts/{account_id}/login 200 by a QR code, which a second tab shows too and a member does not see; once scanned, the account is READY',
    'const shown = !isOver && row.shown ? open<ShownStep>(app, attempt, row.shown) : undefined',
  ),
  mutant(
    loginRoutes,
    'guard: one answer to one question',
    'POST /accounts/{account_id}/login/answer 409 for what is not asked for, and for a second answer to one question',
  ),
  mutant(
    loginRoutes,
    'guard: no answer to a later question',
    'POST /accounts/{account_id}/login/answer 409 for an answer that waited until the next question',
  ),
  mutant(
    loginRoutes,
    'guard: a given up login is not stored',
    'DELETE /accounts/{account_id}/login a login that was cancelled while its answer was checked is not stored, and its key is revoked',
  ),
  mutant(
    loginRoutes,
    'guard: a login is stored under its lease',
    'DELETE /accounts/{account_id}/login a login whose lease was taken is not stored, and its key is revoked',
  ),
  mutant(
    proxies,
    'guard: never around the proxy',
    'a proxy by socks5 with undefined carries login, updates, messages and files; every connection of the data centre comes from it',
    'return connectTcp(place)',
  ),
  mutant(
    proxies,
    'guard: a private proxy is not dialled',
    'a proxy at a private address that is no longer allowed is not dialled',
  ),
  mutant(
    proxies,
    'guard: certificate of a proxy',
    'a proxy whose certificate is not trusted gets no byte of a request, whatever the environment says',
  ),
  mutant(
    proxies,
    'guard: no connection without its proxy',
    'a proxy stored under another secret is not gone around',
    "if (proxy === 'unreadable') return this.#options.platform.connect({ account_id, name, position: this.#position, held: () => this.#holdsStill(), store, proxy: null }, { updates: (batch) => this.#take(batch), closed: close })",
  ),
  mutant(
    proxies,
    'guard: no credentials in arguments',
    'parley account set ends with 2 for ["--proxy","socks5://canary%20name:canary%3As3cret%2F%40@127.0.0.1:1080"] ""',
  ),
  mutant(
    platformStore,
    'guard: a session is written under the lease',
    'the session of an account is replaced by its holder alone',
  ),
  mutant(
    servedFiles,
    'guard: only listed types are shown',
    'GET /chats/{chat_id}/messages/{message_id}/attachments/{index} HTML is saved, never shown',
    "return { type: known?.[0] ?? 'text/html', inline: true }",
  ),
  mutant(
    servedFiles,
    'guard: a file runs nothing',
    'GET /chats/{chat_id}/messages/{message_id}/attachments/{index} a PNG is shown, whatever its name says',
  ),
  mutant(
    servedFiles,
    'guard: an unfinished download is forgotten',
    'the cache forgets a file after a week, and after an hour what was never finished',
  ),
  mutant(
    downloading,
    'guard: few downloads of a process',
    'downloads at a time a process has four, of the workspaces in turn',
    'const full = false',
  ),
  mutant(
    downloading,
    'guard: a download gives way',
    'downloads at a time the newest of the workspace with the most gives way to one that has none',
  ),
  mutant(
    {
      file: 'src/worker/login-runner.test.ts',
      still: 'the first logins of two workspaces come before the second of one',
    },
    'guard: a login gives way',
    'the newest login of the workspace with the most gives way to one that has none, and says why',
  ),
  mutant(
    { file: 'src/worker/login-runner.test.ts' },
    'guard: logins of workspaces take turns',
    'the first logins of two workspaces come before the second of one',
    `order by l.begun_at limit ${value('limit')} for update of l skip locked)`,
  ),
  mutant(
    downloading,
    'guard: no workspace takes all downloads',
    'downloads at a time a workspace has three, so that another one never waits for all of them',
  ),
  mutant(
    downloading,
    'guard: few downloads of an account',
    'downloads at a time an account has two',
    'return true',
  ),
  mutant(
    downloading,
    'guard: no download without a caller',
    'downloads at a time a file that was wanted long ago is not fetched',
  ),
  mutant(downloading, 'guard: no large file is fetched', 'a download of more than 25 MiB reads no chunk'),
  mutant(
    downloading,
    'guard: never more bytes than announced',
    'a download never stores more bytes than announced, however many come',
  ),
  mutant(
    downloading,
    'guard: a file of another size is not kept',
    'a download of a file that is shorter than announced leaves nothing',
  ),
  mutant(
    downloading,
    'guard: a file is completed under the lease',
    'a download whose lease is lost before its last byte leaves nothing, and the file stays wanted',
  ),
  mutant(
    downloading,
    'guard: one download at a time makes room',
    'a download makes room one after the other: together they stay within the bound',
  ),
  ...['guard: a file that is there is not fetched again', 'guard: a file that is there does not fail'].map(
    (marker) =>
      mutant(
        downloading,
        marker,
        'a download that was listed before another one ended leaves the file as it is',
      ),
  ),
  mutant(
    downloading,
    'guard: the bound of the cache',
    'a download makes room one after the other: together they stay within the bound',
    'return true',
  ),
  mutant(
    telegram('media'),
    'guard: no call outlives its client',
    'a download writes no byte without the lease',
  ),
  mutant(
    telegram('media'),
    'guard: a file belongs to its chat',
    'a download a file of another chat is not returned',
  ),
  mutant(
    telegram('media'),
    'guard: a lost connection is replaced once',
    'a download continues over a new connection after a cut; after the second it fails, and the session continues',
    'throw error',
  ),
  mutant(
    telegram('media'),
    'guard: a reference is renewed once',
    'a download renews an expired reference once',
  ),
  mutant(
    telegram('media'),
    'guard: another file is not fetched',
    'a download does not mix two files: one that an edit replaces meanwhile is gone',
  ),
  mutant(
    telegram('media'),
    'guard: media with a timer is never fetched',
    'a download a file with a timer is never requested',
  ),
  mutant(
    telegram('media'),
    'guard: a long wait is not served',
    'a download sits out short waits and retries after server errors; a long wait counts as reading',
    'if (seconds !== undefined) return seconds * 1000',
  ),
  mutant(
    { file: 'src/rules/csv.test.ts' },
    'guard: cells of a spreadsheet',
    'a text never becomes a formula, and a number stays one',
    'const safe = cell',
  ),
  mutant(
    spreadsheets,
    'guard: digits that a spreadsheet dropped',
    'a file with scientific notation with a point gives the same people at the editor',
  ),
  mutant(
    spreadsheets,
    'guard: a number that a separator cuts in two',
    'a file with a number that a separator cuts gives the same people at the editor',
  ),
  mutant(
    {
      file: 'src/lib/csv.test.ts',
      still: 'a table as text writes as text what a spreadsheet would take for a formula',
    },
    'guard: the comma of a number',
    'a table as text has one separator, which the first row with one shows, however the text is cut',
    "const separators = [',', ';', '\\t'] as const",
  ),
  mutant(
    {
      file: 'web/src/pages/campaign-editor/campaign-draft.test.ts',
      still: 'a pasted list has at most 5,000 contacts',
    },
    'guard: names of columns',
    'a pasted list may name its columns in the first line, and a line that looks like it is no contact',
    'const misread = false',
  ),
  mutant(
    underway,
    'guard: key of what is changed',
    'a changed draft has its own key, an unchanged one keeps it',
  ),
  mutant(
    underway,
    'guard: key stored before the request',
    'the key is stored before the request, repeated until the outcome is known, and then gone',
  ),
  mutant(
    underway,
    'guard: ambiguous is not sent again',
    'an ambiguous message is not sent again, and its text does not return to the composer',
  ),
  mutant(
    underway,
    'guard: what was sent never comes back',
    'an edit within the last moments before Send does not come back after it, and one made after Send stays',
    'kept: before?.key === sent.key ? undefined : before,',
  ),
  mutant(
    underway,
    'guard: a message sent at the end of the page',
    'a message sent at the end of the page goes out from any other page, and is sent once',
    'if (sent.files.length === 0) {}',
  ),
  mutant(
    underway,
    'guard: a composer lets go of what is sent',
    'a message that the page was left with leaves the composer of the next page before it is sent',
  ),
  mutant(
    underway,
    'guard: leaving warns while something is under way',
    'leaving the page warns only while something is under way',
    'running++',
  ),
  mutant(
    underway,
    'guard: a wait says why it waits',
    'a request that waits says why: no network, no answer, or an answer that Parley has a problem',
  ),
  mutant(
    underway,
    'guard: request of a form stored before it leaves',
    'a form’s request is stored before it leaves, repeated with its key until the outcome is known, and then gone',
  ),
  mutant(
    underway,
    'guard: key of a form that may have started',
    'a repeat refused before the service looks the key up keeps its key, because the first attempt may have succeeded',
    'const key = newKey()',
  ),
  mutant(
    underway,
    'guard: a full disk loses nothing that is being sent',
    'on a full disk the request is sent all the same, repeated with its key, and the page knows that it is not kept',
  ),
  mutant(
    underway,
    'guard: one request of a form at a time',
    'a second tab that starts the same form repeats the request of the first',
  ),
  mutant(
    underway,
    'guard: sign out leaves nothing',
    'sign-out leaves nothing behind, and another user finds nothing',
  ),
  mutant(
    typing,
    'guard: a read hinders no other',
    'a read opens its own store, and only for reading; a save opens nothing else',
    "const found = await transact<Pair[N]>(['kept', 'underway'], 'readwrite', (store, done) => {",
  ),
  mutant(
    typing,
    'guard: what is not stored is in the journal',
    'what is typed at the end of the page is there at the next, while another tab holds the store',
    'journal: () => true,',
  ),
  mutant(typing, 'guard: the newer one counts', 'of journal and store the newer one counts'),
  mutant(
    typing,
    'guard: a broken journal is ignored',
    'a broken or foreign journal is ignored, and the store counts',
  ),
  mutant(
    typing,
    'guard: sign out drops what is not stored',
    'sign-out empties the journal, and what was typed is not written again',
  ),
  mutant(
    typing,
    'guard: what is stored leaves the journal',
    'what the store has is no longer in the journal',
  ),
  mutant(
    typing,
    'guard: an own save is not read again',
    'a read opens its own store, and only for reading; a save opens nothing else',
    'if (at === id) void follow()',
  ),
  mutant(
    typing,
    'guard: one keeper of a place',
    'two that show a place from the same moment on share what is typed there',
  ),
  mutant(
    typing,
    'guard: a keeper that goes leaves the next one',
    'a place that is left and opened again while it is being saved has one keeper',
    'if (!shown.isFollowed()) open.delete(id)',
  ),
  mutant(
    typing,
    'guard: what was typed after a save stays',
    'what is typed while an earlier text is being saved at the service is not removed with it',
    'await update({ kept: id }, () => ({}))',
  ),
  mutant(
    typing,
    'guard: files stay where the store has them',
    'a file stays where the store has it, when its text is in the journal',
    'return { ...found, files: [] }',
  ),
  mutant(
    {
      file: 'web/src/frame/session-end.test.ts',
      still: 'what was written is kept',
    },
    'guard: a form that is not kept says so',
    'what was written beside such a form is kept, and the form is not',
  ),
  mutant(
    typing,
    'guard: a full journal says so',
    'a full journal loses nothing that the store has',
    'return true',
  ),
  mutant(
    { file: 'web/src/data/api.test.ts' },
    'guard: a change notices the end of the session',
    'any change notices the end of the session',
  ),
  mutant(
    { file: 'web/src/data/chats.test.ts' },
    'guard: an audience has no rows',
    'a change of a chat shows in each list that has it, and an audience in memory is no list',
    'const lists = keys.inbox(workspace_id)',
  ),
  mutant(
    { file: 'web/src/data/analytics.test.ts' },
    'guard: a rate without those who asked to stop',
    'the share of those who replied leaves out those who asked to stop',
    'return reply_rate',
  ),
  mutant(
    { file: 'web/src/ui/time.test.ts' },
    'guard: times in the zone of the profile',
    'every time is in the zone of the profile, whatever the zone of the browser',
    'const timeZone = undefined',
  ),
  mutant(
    typing,
    'guard: sign out empties the journal',
    'another user who signs in finds nothing, and their own is kept',
  ),
  mutant(
    campaignEditor,
    'guard: a start needs a preview of this very draft',
    'previews are of a draft only if they are of its very text, with everyone in it',
  ),
  mutant(
    notifications,
    'guard: notifications without text',
    'a notification has no name and no text unless they are switched on',
  ),
  mutant(
    { file: 'src/capabilities/operations/operations.test.ts' },
    'guard: a note that a page replaces',
    'POST /operations/{operation_id}/close 409 for one that another person recorded otherwise; the same again is no conflict, and a command corrects it',
  ),
  mutant(
    { file: 'web/src/data/live/stale.test.ts' },
    'guard: a page waits as told',
    'a refused read waits the seconds of Retry-After',
    'return errorUpdatedAt',
  ),
  mutant(
    { file: 'web/src/ui/last-line.test.ts' },
    'guard: a state beside its own text',
    'the state of an answer stands before the answer, never before the message that it answers',
    "const text = last_message_text ?? ''",
  ),
  mutant(
    { file: 'web/src/pages/campaigns/recipient-parts.test.ts' },
    'guard: asked to stop is not replied',
    'a recipient who asked to stop has not replied, in the words and in the figures',
    'return recipientStates[status]',
  ),
  mutant(
    { file: 'web/src/data/live/stale.test.ts' },
    'guard: a mark of the list reaches the chats',
    'a mark of the suppression list reaches the lists of chats, the board and every chat',
    "suppressions: (mark) => inWorkspace(['suppressions'], mark),",
  ),
  mutant(
    { file: 'src/capabilities/chats/inbox.test.ts' },
    'guard: only people are on the suppression list',
    'GET /inbox 200 with who is on the suppression list, under any of their names; a group never is',
    'const isSuppressed: Sql = sql`(true',
  ),
  mutant(
    entryPeople,
    'guard: a name that passed on before the entry',
    'GET /chats/{chat_id}/suppression 200 as the list of chats says: by a name that they gave up while it was listed, not by one of before',
  ),
  mutant(
    entryPeople,
    'guard: contacts that are not read mark a chat',
    'GET /chats/{chat_id}/suppression 200 by a name of a contact of another account that is not read yet, as the list of chats says',
    'and false',
  ),
  mutant(
    entryPeople,
    'guard: contacts of own accounts mark a chat',
    'GET /chats/{chat_id}/suppression 200 by a name of a contact of another account that is not read yet, as the list of chats says',
  ),
  mutant(
    entryPeople,
    'guard: a name that one account still sees',
    'GET /chats/{chat_id}/suppression 200 by a name that they have in one account, though another saw it end before the entry',
    'max(until) as until',
  ),
  mutant(
    entryPeople,
    'guard: only their own message says that they asked to stop',
    'GET /chats/{chat_id}/suppression 200 with every entry that stops the person, requests to stop first, and none while the list has nobody',
  ),
  mutant(
    { file: 'web/src/ui/suppressed-mark.test.ts' },
    'guard: a list says who asked to stop',
    'a list tells who asked to stop from who was suppressed',
    "return 'Suppressed'",
  ),
  mutant(
    entryPeople,
    'guard: marked by a name while it was listed',
    'GET /chats/{chat_id}/suppression 200 as the list of chats says: by a name that they gave up while it was listed, not by one of before',
  ),
  mutant(
    everyCaller,
    'guard: the suppression of a chat of own accounts',
    'GET /chats/{chat_id}/suppression answers as its line says to: member',
  ),
  mutant(
    entryPeople,
    'guard: what a person is called in this workspace only',
    'the people of an entry an entry has the name that a chat of the workspace shows, and of no other',
    'where true',
  ),
  mutant(
    underway,
    'guard: each message of a draft has its own key',
    'several files go one after the other, the first with the text, each with its own key; a lost answer repeats one',
    'export const messageKey = ({ key }: Underway) => key',
  ),
  mutant(
    underway,
    'guard: a message that is over is not sent again',
    'a page that opens while files are being sent goes on with the next one, and repeats none that is over',
    'underway: next,',
  ),
  mutant(
    underway,
    'guard: goes on where another tab was',
    'a tab that waited while another one sent the first file goes on with the second',
    'return undefined',
  ),
  mutant(
    underway,
    'guard: a newer text keeps no file from coming back',
    'what follows a file that is refused is not sent: it is back with it, also beside a newer text',
    'return kept',
  ),
  mutant(
    { file: 'web/src/frame/dropped-files.test.ts' },
    'guard: a dropped file leaves the page',
    'a file that is dropped beside what takes files does not replace the page',
  ),
  mutant(
    chosenFiles,
    'guard: the focus stays among the files',
    'a file that is removed leaves the focus to the next one, to the last of the others, and then to the text',
    'return undefined',
  ),
  mutant(
    chosenFiles,
    'guard: files of a draft counted',
    'a draft has at most ten files, with those that it had',
  ),
  mutant(
    chosenFiles,
    'guard: a copied text is pasted as text',
    'a picture or file is pasted as one, and a copied text with a picture of it as text',
    'return [...files]',
  ),
  mutant(
    { file: 'web/src/pages/inbox/overtaken.test.ts' },
    'guard: an own answer overtakes nothing',
    'another user has answered since, also one with the same name; oneself has not, under any name',
  ),
  mutant(
    { file: 'web/src/pages/inbox/overtaken.test.ts' },
    'guard: clock of the service',
    'a browser whose clock is an hour ahead or behind knows when the draft was begun',
    'return browserTime',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/planning/why.test.ts' },
    'guard: a time with its zone',
    'a time is in the zone of the workspace, with its date where the weekday could mean another week',
    'return local.toISOString().slice(11, 16)',
  ),
  mutant(
    { file: 'web/src/pages/campaign-editor/preview-load.test.ts' },
    'guard: a moment with its zone',
    'a time of the forecast names the zone of the workspace, whatever the zone of the reader',
    'return words',
  ),
  mutant(
    { file: 'web/src/frame/live-words.test.ts' },
    'guard: offline says offline',
    'without a network the page says so, and does not promise to reconnect',
  ),
  mutant(
    { file: 'web/src/ui/last-line.test.ts' },
    'guard: cut at its own end',
    'a line that is cut is cut by the element that knows its direction, and so at its own end',
    'const look = {}',
  ),
  mutant(
    { ...campaignEditor, still: aLocalStart },
    'guard: no campaign to a group',
    'a draft writes to no group, whether it is among the chats or all of them',
    'const isGroup = (_: Person) => false',
  ),
  mutant(
    campaignEditor,
    'guard: an audience of at most 100',
    'a draft says what is missing, in the order of the page',
  ),
  mutant(
    campaignEditor,
    'guard: a list without bad lines',
    'a draft says what is missing, in the order of the page',
  ),
  mutant(
    campaignEditor,
    'guard: no start in the past',
    'a draft has its faults at the field, before a request',
  ),
  mutant(
    { ...campaignEditor, still: aLocalStart },
    'guard: an older draft stops by hand',
    'a draft becomes the request of the contract, for chats and for contacts',
    'export const stopsByHand = (draft: CampaignDraft) => draft.stop_on_own_message === true',
  ),
  mutant(
    { ...pipelinePage, still: cardsScrolledTo },
    'guard: a move that was read counts once',
    'a move shows at once in both stages and their counts, and once it is read nothing is counted twice',
  ),
  mutant(
    pipelinePage,
    'guard: a board of one account',
    'a move of another account does not appear on a board of one account',
    'const isAsked = true',
  ),
  mutant(
    pipelinePage,
    'guard: hidden stages without chats',
    'a hidden stage has a column while it has chats, and 1,000 stay 1,000+',
  ),
  mutant(
    { file: 'web/src/pages/approvals/approval-asker.test.ts' },
    'guard: the key is named first',
    "an approval's headline begins with the name of the key, which its user chose",
    'return client_name === null ? [key.name] : [readableName(client_name), key.name]',
  ),
  mutant(
    { file: 'web/src/pages/pipeline/moves.test.ts' },
    'guard: a name turns no sentence around it',
    'a name in a sentence is one line, cut, shows what is hidden, and turns no text around it',
    "return cut === '' ? 'the chat' : cut",
  ),
  mutant(
    {
      file: 'web/src/data/place.test.ts',
      still: 'the workspace that was opened last is opened again, unless it is disabled or gone',
    },
    'guard: back to the dashboard only',
    'a sign-in returns to a page of the dashboard, and to no other address',
    'return to',
  ),
  mutant(
    { file: 'web/src/data/chat-changes.test.ts' },
    'guard: a refused change is not shown',
    'a change shows at once, and the old value again if the service refuses it',
  ),
  mutant(
    chatList,
    'guard: an unchanged list renders nothing',
    'a list that did not change is the same object, so that nothing is rendered',
    'if (!chats) return before',
  ),
  mutant(
    chatList,
    'guard: rows stay under the pointer',
    'while the user scrolls, new and moved chats wait, and older ones follow',
    'return { ...noRows, chats, rows: chats }',
  ),
  mutant(
    chatList,
    'guard: keys follow the rows on screen',
    'the keys go through the rows on screen, also while chats that moved up wait at the top',
    'const rows = still.chats ?? []',
  ),
  mutant(
    chatList,
    'guard: a row that has left the list stays',
    'a chat that has left the list while the user scrolls stays as it was last',
    'const changed = new Map<string, ListedChat>()',
  ),
  mutant(
    staleQueries,
    'guard: a query is read once a second',
    'however many marks arrive, a query is read at most once a second, and once after the last',
    'const earliest = 0',
  ),
  mutant(
    staleQueries,
    'guard: a read that its mark overtook',
    'a query that was being read when its mark arrived is read again',
    'const reading = false',
  ),
  mutant(
    staleQueries,
    'guard: a hidden tab reads nothing',
    'a hidden tab reads nothing, unless it is the one that notifies',
    'if (known || !query.isActive()) return',
  ),
  mutant(
    stream,
    'guard: a mark that arrives in pieces',
    'marks arrive whole and in order, however the network cuts them',
    "rest = ''",
  ),
  mutant(
    stream,
    'guard: no stream without a session',
    'the end of the session ends the reading',
    "if (response.status === 401) return 'lost'",
  ),
  mutant(
    pipelinePage,
    'guard: changes of a chat in turn',
    'a move and its undo are asked one after the other, also if the first fails; another chat does not wait',
  ),
  mutant(
    telegram('transport'),
    'guard: bounded plain frame',
    'a connection that gets more than 2 KiB without encryption ends before they are read',
  ),
  mutant(
    { file: 'src/platform/mtcute-crypto.test.ts' },
    'guard: a product that cannot be factored',
    'refuses to factor more than eight bytes',
  ),
  mutant(
    { file: 'test/limits/telegram-hostile.test.ts' },
    'guard: every call has a deadline',
    'a call whose answers cannot be unpacked ends at its deadline',
  ),
  mutant(
    telegram('adapter'),
    'guard: a transport error is a refused connection',
    'on one data centre a session that ends with too many connections says how long to wait; a send then is unknown',
    'const isRefused = false',
  ),
  mutant(
    telegram('adapter'),
    'guard: a refused connection says how long to wait',
    'on one data centre a connection that the data centre refuses says how long to wait',
    "return { kind, cause: 'refused', reason }",
  ),
  mutant(
    telegram('adapter'),
    'guard: a login does not repeat a refused key exchange',
    'on one data centre a login whose key exchange is refused (refused_exchange) connects once, and says how long to wait',
  ),
  mutant(
    telegram('media'),
    'guard: downloads wait after a refused connection',
    'a download a connection that the data centre refuses stops downloads for a minute, and not the session',
  ),
  ...(
    [
      [
        'guard: no connect before the platform allows it',
        'an account whose session the platform ends with a wait connects no sooner',
        'return ms * (0.5 + random / 2)',
      ],
      [
        'guard: a wait before the next connect outlives its session',
        'an account that the platform refuses waits, also under its next lease; the one next to it connects',
        undefined,
      ],
    ] as const
  ).map(([marker, test, replace]) => mutant({ file: worker('account-pool') }, marker, test, replace)),
  mutant(
    { file: 'test/doctor.test.ts' },
    'guard: only the doctor learns the way',
    'parley doctor and PARLEY_BASE_URL only a probe with the secret, and a recent one, learns how it came',
  ),
  mutant(
    { file: 'test/doctor.test.ts' },
    'guard: an old probe says nothing',
    'parley doctor and PARLEY_BASE_URL only a probe with the secret, and a recent one, learns how it came',
  ),
  ...(
    [
      ['guard: alerts once an hour', 'an alert of the kind account_needs_person', 'and (true'],
      ['guard: an instance is heard at each begin', 'an alert of the kind sending_off', 'or false'],
      ['guard: three begins an hour', 'an alert of the kind sending_off', ''],
      ['guard: a loop fails for a while', 'an alert of the kind loop_failing', ''],
    ] as const
  ).map(([marker, describe, replace]) =>
    mutant(
      { file: alerting },
      marker,
      `${describe} is posted when it begins and when it is over, once each, and not again and again within an hour`,
      replace,
    ),
  ),
  mutant(
    { file: alerting },
    'guard: a heartbeat only while all is well',
    'the heartbeat is posted while all is well, and is silent while a problem of the instance lasts',
  ),
  mutant(
    { file: 'test/sending-state.test.ts' },
    'guard: readiness for sends',
    '/readyz?role=send 503 while sending is off or no worker is alive, and 200 otherwise',
    'const asked = checks',
  ),
  mutant(
    { file: alerting },
    'guard: a restart ends no alert',
    'alerts a restart of the worker that reported it ends none',
  ),
  mutant(
    { file: alerting },
    'guard: alerts in order',
    'alerts are retried, in their order, until the receiver accepts them',
  ),
  mutant(
    { file: 'src/db/embedded.test.ts', still: 'listens on a socket and on no address, without TLS' },
    'guard: a server killed at its start',
    'a server that is killed while it restarts is started again',
    'const isStarting = child && child.exitCode === null',
  ),
  mutant(
    servedFiles,
    'guard: a file that the cache lost is fetched again',
    'GET /chats/{chat_id}/messages/{message_id}/attachments/{index} 200 after PostgreSQL crashed during the download, which empties the cache',
    'throw fileGone()',
  ),
  ...(
    [
      ['guard: locks before work', ''],
      ['guard: a migration gives way', 'return deadlockMs * 4'],
      ['guard: a contended migration is tried again', 'throw error'],
    ] as const
  ).map(([marker, replace]) =>
    mutant(
      {
        file: 'test/upgrade/under-traffic.test.ts',
        still: '0.3.0.backup with its rows no migration takes a lock that it did not take first',
      },
      marker,
      'a transaction that holds what a migration needs next is not aborted: the migration gives way',
      replace,
    ),
  ),
  mutant(
    {
      file: 'src/db/migrate.test.ts',
      still: 'a migration that others keep from a table of another kind than a lock is not tried again',
    },
    'guard: a migration waits a bounded time',
    'a migration that others keep from a table waits a bounded time, leaves nothing behind, and is tried again',
  ),
  mutant(
    { file: 'src/capabilities/me/me.test.ts', still: 'GET /me 200 with a capability for every operation' },
    'guard: capabilities follow live accounts',
    'GET /me 200: what needs the platform is possible only while an account is connected, and each says whether it is',
    'const reaches = sending',
  ),
  mutant(
    { file: 'src/cli/database-sentences.test.ts', still: 'a certificate has its own cure' },
    'guard: the environment is not our bug',
    'a fault of the environment is no bug of Parley at the command line',
    'const environment = undefined as undefined | ReturnType<typeof explainEnvironment>',
  ),
  mutant(
    { file: 'src/db/data-directory.test.ts' },
    'guard: a disk without writing is not full',
    'a data directory on a disk that is read-only is not called full',
    'throw explain(data_dir, code) ?? error',
  ),
  mutant(
    { file: 'test/doors.test.ts' },
    'guard: a scheme that differs is named',
    'over a network the cookie is __Host-sid and Secure at an https address, and no other counts',
    'if (false) {',
  ),
  mutant(
    { file: 'test/doctor.test.ts' },
    'guard: doctor refuses what work refuses',
    'parley doctor names a fault of a data directory that a worker would refuse',
  ),
  ...(
    [
      [
        'guard: a wrong key opens no backup',
        'an encrypted backup refuses another private key, and a passphrase',
        "throw refuse('damaged')",
      ],
      [
        'guard: a cut encrypted file is refused',
        'an encrypted backup that was cut or changed anywhere is refused',
        'return',
      ],
    ] as const
  ).map(([marker, test, replace]) =>
    mutant(
      {
        file: 'src/db/backup-encryption.test.ts',
        still: 'an encrypted backup for a public key opens with its private key, and shows nothing without',
      },
      marker,
      test,
      replace,
    ),
  ),
  ...(
    [
      [
        'guard: a backup names the secrets of its snapshot',
        'a backup made just as a rotation begins has the secrets of its snapshot',
        'const secrets = undefined',
      ],
      [
        'guard: a restore leaves no other old secret in the place of its own',
        'a backup made in the middle of a rotation needs both, and the restored rotation goes on',
        'if (false) {',
      ],
      [
        'guard: a recipient is not repeated',
        'parley backup --recipient refuses a private key, both ways at once, and what is no key, without repeating it',
        "throw new Refusal(recipient + ' is no public key of age.')",
      ],
    ] as const
  ).map(([marker, test, replace]) =>
    mutant(
      {
        file: 'test/encrypted-backup.test.ts',
        still: 'parley backup --encrypt says where a passphrase comes from if standard input has none',
      },
      marker,
      test,
      replace,
    ),
  ),
  ...(
    [
      [
        'guard: an older answer about the secret in use',
        'two secrets an older answer of the database does not bring the old secret back',
        '',
      ],
      [
        'guard: signatures of the old secret',
        'two secrets both open and verify, and only the one in use seals and signs',
        'const keys = stored ? [stored] : [this.#sealing.key(purpose)]',
      ],
      [
        'guard: a stored key is used',
        'two secrets a stored key signs whichever secret is in use',
        'return undefined',
      ],
    ] as const
  ).map(([marker, test, replace]) =>
    mutant({ file: 'src/lib/secrets.test.ts', still: 'SHA-256 is the standard one' }, marker, test, replace),
  ),
  ...(
    [
      [
        'guard: no key of another secret is stored',
        'the keys that never change are not stored by a process whose secret is not the one of the audit log',
        'await findOwn(secrets, isOwn)',
      ],
      [
        'guard: a stored key never changes',
        'parley secret rotate loses no value that was written meanwhile, and no stored key is replaced',
        'on conflict (purpose) do update set sealed = excluded.sealed',
      ],
      [
        'guard: a rotation waits for what is being sealed',
        'parley secret rotate waits for a transaction that is sealing',
        `select ${value('columns')} from secret_use`,
      ],
      [
        'guard: nothing is sealed with a secret of before',
        'parley secret rotate refuses to seal in a process that has only the old secret',
        '',
      ],
      [
        'guard: one rotation at a time',
        'parley secret rotate waits for a transaction that is sealing',
        `where old_id is null or ${value('old_id')} <> ''`,
      ],
      [
        'guard: a secret that is in use is not dropped',
        'parley secret prepare makes a new secret once, and keeps the present one beside it',
        '',
      ],
      [
        'guard: no rotation beside a process of an earlier release',
        'parley secret rotate is refused beside a process of an earlier release, with one secret only, and with a strange one',
        '',
      ],
      [
        'guard: no rotation beside a process with one secret',
        'parley secret rotate seals every value again; then the old secret alone opens nothing, and signed things go on',
        '',
      ],
      [
        'guard: no process without the old secret during a rotation',
        'parley secret rotate goes on after a kill in the middle, while two processes run and none without the old secret starts',
        '',
      ],
      [
        'guard: doctor names what uses the old secret',
        'parley secret rotate goes on after a kill in the middle, while two processes run and none without the old secret starts',
        "const left = 'Nothing uses the old one any more.'",
      ],
      [
        'guard: a value that was written meanwhile stays',
        'parley secret rotate loses no value that was written meanwhile, and no stored key is replaced',
        `where ${value('key')} = ${value('of')}`,
      ],
      [
        'guard: a webhook is sealed with the secret in use',
        'parley secret rotate refuses to seal in a process that has only the old secret',
        'const use = undefined as { addresses_sealed: boolean } | undefined',
      ],
      [
        'guard: a secret of a webhook is sealed with the secret in use',
        'parley secret rotate refuses to seal in a process that has only the old secret',
        '',
      ],
      [
        'guard: a proxy is sealed with the secret in use',
        'parley secret rotate refuses to seal in a process that has only the old secret',
        '',
      ],
      [
        'guard: a session is sealed with the secret in use',
        'parley secret rotate refuses to seal in a process that has only the old secret',
        '',
      ],
      [
        'guard: addresses stay plain while a process of before runs',
        'addresses of webhooks stay plain while a process of release 0.3 runs, and are sealed once none does',
        '',
      ],
      [
        'guard: a process of before reads the address',
        'addresses of webhooks stay plain while a process of release 0.3 runs, and are sealed once none does',
        '',
      ],
      [
        'guard: an address is bound to its webhook',
        'addresses of webhooks do not open at another webhook',
        "return 'webhooks:url'",
      ],
      [
        'guard: a rotation that did nothing is not recorded',
        'parley secret rotate says that nothing was to do if the two secrets were given the wrong way round',
        '',
      ],
      [
        'guard: no process with a secret that was replaced',
        'parley secret rotate lets no process start with a secret that was replaced, and doctor names the one in use',
        'if (true) return undefined',
      ],
      [
        'guard: doctor names the secret that a process lacks',
        'parley secret rotate lets no process start with a secret that was replaced, and doctor names the one in use',
        '',
      ],
      [
        'guard: every value of a column is read',
        'parley secret rotate seals more values than it reads at once, and goes on once the database writes again',
        'return',
      ],
      [
        'guard: only a locked row is tried again',
        'parley secret rotate seals more values than it reads at once, and goes on once the database writes again',
        'return 0',
      ],
      [
        'guard: an answer is sealed with the secret in use',
        'parley secret rotate refuses to seal in a process that has only the old secret',
        '',
      ],
      [
        'guard: a question is sealed with the secret in use',
        'parley secret rotate refuses to seal in a process that has only the old secret',
        '',
      ],
      [
        'guard: a number is sealed with the secret in use',
        'parley secret rotate refuses to seal in a process that has only the old secret',
        '',
      ],
    ] as const
  ).map(([marker, test, replace]) =>
    mutant(
      {
        file: 'test/rotation.test.ts',
        still: 'the list of sealed columns has every purpose that seals something stored',
      },
      marker,
      test,
      replace,
    ),
  ),
  // What is stored about one person.
  ...(
    [
      [
        'guard: people of own accounts',
        'GET /people 200 without the people of another workspace, by any name',
        'select a.id, a.platform from accounts a),',
      ],
      [
        'guard: names of own people',
        'GET /people 200 without the people of another workspace, by any name',
        'where true',
      ],
      [
        'guard: what own accounts call a person',
        "GET /people 200 with what own accounts call a person, and not another workspace's",
        'where true',
      ],
      [
        'guard: a name of a person while it was listed',
        'GET /people 200 says whom the suppression list stops',
        '',
      ],
      [
        'guard: people of own workspace',
        'GET /people/{person_id} 404 for a person of another workspace, and an id that is none',
        `where p.id = ${value('id')}`,
      ],
      [
        'guard: what own accounts know of a person',
        'GET /people/{person_id} 200 without what another workspace knows of the same number',
        `where a.platform = ${value('platform')}) a\``,
      ],
      [
        'guard: entries of the time of a name',
        'GET /people/{person_id} 200 with the entries that stop them, and none of another time of a name',
        '',
      ],
      [
        'guard: a recipient who is somebody else',
        'GET /people/{person_id} 200 with the campaigns by chat and by name, with their outcome, and none of somebody else',
        '',
      ],
      [
        'guard: a campaign of after the name passed on',
        'GET /people/{person_id} 200 without a campaign that was made after the name had passed on',
        '',
      ],
    ] as const
  ).map(([marker, test, replace]) => mutant(personRecord, marker, test, replace)),
  ...(
    [
      [
        'guard: an export is recorded',
        'GET /people/{person_id}/export 200 as one file, recorded in the audit log by who asked and for whom',
        '',
      ],
      [
        'guard: messages of own accounts',
        'GET /people/{person_id}/export 200 with every part and where it comes from, and the messages both ways',
        'where true',
      ],
      [
        'guard: messages of others in groups',
        "GET /people/{person_id}/export 200 with the person's own messages of groups, and none of others",
        'const theirs = rows',
      ],
      [
        'guard: texts of strangers stay texts',
        'GET /people/{person_id}/export 200 with texts of strangers as text in the page',
        'return text',
      ],
      [
        'guard: no path of a stranger',
        'GET /people/{person_id}/export 200 with the files that are stored, under names of our own, and a list of them',
        'return file_name',
      ],
      [
        'guard: a stream that is only asked about ends',
        'GET /people/{person_id}/export HEAD 200 leaves the place of the export free',
        '',
      ],
    ] as const
  ).map(([marker, test, replace]) => mutant(personExport, marker, test, replace)),
  ...(
    [
      ['guard: the length of a large entry', 'const bytes = 4'],
      ['guard: the place of a far entry', ''],
      ['guard: the end of a large archive', 'const isWide = false'],
    ] as const
  ).map(([marker, replace]) =>
    mutant(zipping, marker, 'a ZIP archive of 64 bits throughout has every entry with its bytes', replace),
  ),
  ...(
    [
      ['guard: no names in the journal', 'return outcome'],
      ['guard: an answer from a journal has the stored name', 'const { name, username } = chat'],
    ] as const
  ).map(([marker, replace]) =>
    mutant(
      {
        file: 'test/back-in-time.test.ts',
        still:
          'crash point 17: the whole directory is restored, journals included; what the platform shows is not sent again',
      },
      marker,
      'a journal has ids of people and no names, and what it brings back is answered with the stored name',
      replace,
    ),
  ),
]
