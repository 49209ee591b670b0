/**
 * Single edits of the shipped source at its markers (`../faults/markers.ts`), each with the smallest test that must
 * fail with it. `still` must pass with it: the edit removes a guard and breaks nothing else.
 */
import type { Patch } from '../faults/patch.ts'

export interface Mutant {
  readonly what: string
  readonly patches: readonly Patch[]
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

const drafting = {
  file: 'test/web-outbox.test.ts',
  still: 'a text that was written meanwhile is not replaced by one that was refused',
}

const pageForms = {
  file: 'test/web-form.test.ts',
  still: 'after a refusal the user goes on writing, with a new key',
}

const campaignEditor = {
  file: 'test/web-editor.test.ts',
  still: 'a draft becomes the request of the contract, for chats and for contacts',
}

const notifications = {
  file: 'test/web-notifications.test.ts',
  still: 'with names and texts it shows what cannot be seen as codes, and no more than 200 characters',
}

const pipelinePage = {
  file: 'test/web-pipeline.test.ts',
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

const dataCentre = (name: string) => ({ file: `src/platform/sandbox/mtproto/${name}.test.ts` })

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
const byHistory = 'a reply, and a request to stop in a page of history'
const elsewhere = 'another account of the pool'

const poolGuards = { file: 'test/pools.test.ts' }
const runs = {
  file: ledger('runs'),
  still: 'listBehind names accounts of which the database has fewer writes, or none at all',
}
const identities = { file: 'src/capabilities/campaigns/running/identities.test.ts' }
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
    identities,
    'guard: whom a look_up found is kept',
    'a contact that a look-up found keeps every name until the recipient is final',
  ),
  mutant(
    identities,
    'guard: a contact of whom only the chat is known',
    'a contact that a look-up found is looked up again when only the chat is known',
    'chat_id: row.chat_id,',
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
  mutant(
    { file: 'src/capabilities/campaigns/running/dispatch-contacts.test.ts' },
    'guard: a person who was reached is not written to again',
    'contacts that are one person under two names get one message, also when the follow-up to one was refused',
    "and other.status not in ('failed', 'cancelled')",
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
const roleMatrix = { file: 'test/roles.test.ts', still: '/dashboard/api/w/{workspace_id} list_members' }
const oidc = {
  file: 'src/capabilities/oidc/oidc.test.ts',
  still: 'GET /dashboard/oidc/callback 302 to the requested page, as the linked user',
}
const devices = { file: 'src/capabilities/sessions/devices.test.ts' }
const sockets = { file: 'test/limits/sockets.test.ts' }
const waits = { file: 'src/capabilities/events/events.test.ts' }
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
    roleMatrix,
    'guard: role at the dashboard',
    '/dashboard/api/w/{workspace_id} create_webhook',
    'const wanted = role',
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
    'POST /suppressions/import 429 for a fifth import at once, so that other requests find connections',
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
    { file: 'src/capabilities/suppressions/import-table.test.ts' },
    'guard: other requests run while a file is parsed',
    'other requests run while bad rows, or one row of many cells, are parsed',
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
    'return keepSecret(file)',
  ),
]
const approving = {
  file: 'src/capabilities/approvals/bindings.test.ts',
  still: 'the update consumes the token when nothing has changed',
}

const placeholders = {
  file: 'src/capabilities/campaigns/planning/personalize.test.ts',
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
    'guard: streams of a process',
    'a process with as many streams as it may have 503 until one closes, and a stop waits for none of them',
    'return this.#ended',
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

export const mutants: readonly Mutant[] = [
  ...live,
  ...team,
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
    'if (false) {',
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
    'guard: journals are put back',
    'at the start puts the journals back into an older copy, and an operator switches sending on',
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
      file: 'src/lib/sending-window.test.ts',
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
    messages,
    'guard: suppression at the boundary',
    'a message to a person whose name alone is on the list ends the recipient',
    "(split_part(r.contact, ':', 1), split_part(r.contact, ':', 2)))) and false as suppressed,",
  ),
  mutant(
    messages,
    'guard: suppression list is read under its lock',
    'a message to a person who is suppressed at this very moment ends the recipient',
    'const listed = locked.suppressed',
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
    'guard: a reply to another account of the pool',
    `${elsewhere} receives the reply: the sequence ends, and the event names the account that has the message`,
    'where false',
  ),
  mutant(
    incoming,
    'guard: a reply to another account of the pool',
    `${elsewhere} does not end a campaign whose sequence is over, nor one of another pool`,
    'where p.pool',
    'a reply to an account of no pool of the campaign',
  ),
  mutant(
    incoming,
    'guard: nothing is left to end elsewhere',
    `${elsewhere} does not end a campaign whose sequence is over, nor one of another pool`,
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
    'r.found_phone as found_under,',
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
  // Plays of campaigns.
  mutant(
    turnsOfKeys,
    'guard: one at a time for a key',
    'turns of many keys runs one at a time per key, two in all, and the keys take turns',
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
    'the table of errors TICKET_MACHINE_BROKEN proves nothing',
    "const meaning = findMeaning(text) ?? 'message_invalid'",
  ),
  mutant(
    telegram('module'),
    'guard: a foreign data centre is on loopback',
    'refuses 149.154.167.50:443,key.pem',
  ),
  mutant(
    telegram('read'),
    'guard: known people are not looked up',
    'resolve asks Telegram only about names that no stored person has',
    'const known = undefined',
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
  // The data centre of the sandbox.
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
    'and false',
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
    'else if (false) {',
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
    'const participants = sql`participants = excluded.participants,`',
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
    {
      file: 'test/web-csv.test.ts',
      still: 'the scale of a chart ends at a round number that is high enough',
    },
    'guard: cells of a spreadsheet made in the page',
    'a text never becomes a formula, and a number stays one',
    'const safe = cell',
  ),
  mutant(
    drafting,
    'guard: key of a changed draft',
    'a changed draft has its own key, an unchanged one keeps it',
  ),
  mutant(
    drafting,
    'guard: key stored before the request',
    'the key is stored before the request, repeated until the outcome is known, and then gone',
  ),
  mutant(
    drafting,
    'guard: ambiguous is not sent again',
    'an ambiguous message is not sent again, and its text does not return to the composer',
    'if (status === 0) {',
  ),
  mutant(
    drafting,
    'guard: sign out leaves no draft',
    'sign-out leaves no draft behind, and another user finds none',
  ),
  mutant(
    pageForms,
    'guard: sign out leaves no form',
    'sign-out leaves no form behind, and another user finds none',
  ),
  mutant(pageForms, 'guard: key of a changed form', 'a changed form has its own key'),
  mutant(
    { ...pageForms, still: 'a changed form has its own key' },
    'guard: request of a form stored before it leaves',
    'the request is stored before it leaves, repeated with its key until the outcome is known, and then gone',
  ),
  mutant(
    pageForms,
    'guard: key of a form that may have started',
    'a repeat refused before the service looks the key up keeps its key, because the first attempt may have succeeded',
    'await end(draft, true)',
  ),
  mutant(
    pageForms,
    'guard: a full disk loses nothing that is being sent',
    'on a full disk the request is sent all the same, repeated with its key, and the page knows that it is not kept',
  ),
  mutant(
    pageForms,
    'guard: one request of a form at a time',
    'a second tab that starts the same form repeats the request of the first',
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
    { file: 'test/web-waits.test.ts' },
    'guard: a page waits as told',
    'a refused read waits the seconds of Retry-After',
    'return errorUpdatedAt',
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
      ['guard: alerts once an hour', 'an alert of the kind sending_off'],
      ['guard: a loop fails for a while', 'an alert of the kind loop_failing'],
    ] as const
  ).map(([marker, describe]) =>
    mutant(
      { file: alerting },
      marker,
      `${describe} is posted when it begins and when it is over, once each, and not again within an hour`,
    ),
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
]
