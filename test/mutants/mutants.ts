/**
 * Single edits of the shipped source at its markers (`../faults/markers.ts`), each with the smallest test that must fail
 * with it. `still` must pass all the same: the edit takes a guard away and breaks nothing else.
 */
import type { Patch } from '../faults/patch.ts'

export interface Mutant {
  readonly what: string
  readonly patches: readonly Patch[]
  readonly file: string
  /** The titles of the test and of what it is described by, with spaces between. */
  readonly test: string
  readonly still?: string
}

const crossing = {
  file: 'src/ledger/crossing.test.ts',
  still: 'a queued row of an account that may act crosses',
}

const clockSetBack = {
  file: 'src/ledger/positions.test.ts',
  still: 'claimAccounts leaves an account whose owner lives, and takes one whose lease has run out',
}
const rechecking = {
  file: 'src/ledger/recheck.test.ts',
  still:
    'somebody on the list is not written to first but others are, and an answer in a chat is no first message',
}

const ledger = (name: string) => `src/ledger/${name}.test.ts`
const webhooks = (name: string) => `src/capabilities/webhooks/${name}.test.ts`
const stopping = { file: 'test/limits/webhook-stop.test.ts' }
const running = (name: string) => `src/capabilities/campaigns/running/${name}.test.ts`
const worker = (name: string) => `src/worker/${name}.test.ts`
const telegram = (name: string) => ({ file: `src/platform/telegram/${name}.test.ts` })

/** A value in a template of the shipped source. */
const value = (expression: string) => `$${'{'}${expression}}`

const turnsOfKeys = { file: 'src/lib/queue.test.ts', still: 'work that fails gives its place back' }
const playing = {
  file: 'src/capabilities/campaigns/play.test.ts',
  still: 'a play answers a page of the timetable, the load of every day and the end',
}

const platformStore = {
  file: 'src/capabilities/accounts/platform-store.test.ts',
  still: 'the session of an account is null before a login, and then what the login stored',
}

const loggingIn = {
  file: 'src/capabilities/accounts/login.test.ts',
  still: 'a login stores the key, its user and CONNECTING, and names no secret in the audit log',
}

const dataCentre = (name: string) => ({ file: `src/platform/sandbox/mtproto/${name}.test.ts` })

type Place = Pick<Mutant, 'file' | 'still'>

/** The line of the marker is replaced, or left out. */
function mutant(place: Place, marker: string, test: string, replace = '', what = marker): Mutant {
  return { what, patches: [{ marker, replace }], test, ...place }
}

/** A condition of the boundary is left out. */
const crosses = (marker: string, test: string) => mutant(crossing, marker, `does not cross ${test}`)

const settling = { file: ledger('settle'), still: 'the attempt of the row speaks submitting: completed' }
const advancing = {
  file: ledger('positions'),
  still: 'advancePositions moves the position of an account that is ours, and counts the write',
}
const claiming = {
  file: ledger('positions'),
  still: 'claimAccounts leaves an account whose owner lives, and takes one whose lease has run out',
}
const sweeping = { file: ledger('sweep'), still: 'sweep an attempt whose lease lasts stays as it is' }
const puttingBack = {
  file: ledger('put-back'),
  still: 'putBack an account that is not of this database leaves nothing',
}
const attempting = { file: ledger('attempt'), still: 'what is queued is sent once and completed' }
const restoring = {
  file: ledger('restore-guard'),
  still: 'at the start the database is the one this disk knows: it may cross',
}
const planning = { file: 'src/capabilities/campaigns/planning/plan.test.ts' }
const messages = { file: running('crossing') }
const journalling = {
  file: ledger('journal'),
  still: 'a line that a full disk cut off does not swallow the next one',
}

const repliedInFlight = {
  file: 'src/capabilities/campaigns/running/outcomes.test.ts',
  still: 'a reply that was written before our first message is no reply to it: the sequence goes on',
}
const attemptingMessages = {
  file: running('message-attempt'),
  still: 'somebody is put on the list while their message is on its way somebody else is not held for them',
}
const lookedUp = 'a contact who is found by name, and whose phone is on the list at the look-up'
const learnt = 'what is learnt of a message whose recipient'
const crossingDirectly = { file: ledger('direct-crossing') }
const leftAlone = 'what another transaction holds is left alone'
const anotherAccount =
  'a message of a campaign that another account of its pool sent, as the journal knows known as submitting: account, chat and day are put back, and each day has what was used of it'
const hearing = { file: worker('hearing') }
const byHistory = 'a reply, and a request to stop in a page of history'
const elsewhere = 'another account of the pool'

const poolGuards = { file: 'test/pools.test.ts' }
const runs = {
  file: ledger('runs'),
  still: 'listBehind names accounts of which the database knows fewer writes, or nothing at all',
}
const identities = { file: 'src/capabilities/campaigns/running/identities.test.ts' }
const confirmed = 'confirmAccounts leaves it where'
const serverRestarted = 'the database server was started again'
const putBackWhole = 'the whole directory is put back, journals included'

/** What spans accounts. */
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
    'an account that is not confirmed holds nothing once an operator disables it: READY before',
  ),
  mutant(
    restoring,
    'guard: a new run is noticed at the start',
    `${serverRestarted} at the start of a worker: its journals are put back before it crosses`,
    'return undefined',
  ),
  mutant(
    restoring,
    'guard: a new run of the server is noticed',
    `${serverRestarted} under a running worker: its journals are put back with the next heartbeat`,
  ),
  mutant(
    restoring,
    'guard: marks are compared',
    `${serverRestarted} and what this process saw committed is missing: every worker learns of it`,
  ),
  mutant(
    puttingBack,
    'guard: what was removed is not forgotten',
    'listUnknown an operation that was removed after its 30 days is not forgotten; one that was made later is',
  ),
  mutant(
    poolGuards,
    'guard: a pool is confirmed',
    `${putBackWhole} nothing goes out again, the accounts connecting in the order 2, 0, 1`,
    'as ready,',
  ),
  mutant(
    poolGuards,
    'guard: a pool is confirmed',
    `${putBackWhole} a contact that another account took over meanwhile gets nothing again from the one that had it`,
    'and not (r.account_id is null and about.pool_unconfirmed) as ready,',
    'a pool is confirmed, for contacts that an account has taken',
  ),
  mutant(
    poolGuards,
    'guard: any account of the pool may have sent it',
    `${putBackWhole} nothing goes out again, the accounts connecting in the order 2, 0, 1`,
    'where false) sender',
  ),
  mutant(
    poolGuards,
    'guard: contacts of an unconfirmed account stay its own',
    'contacts of an account that is lost in a new run stay its own until an operator disables it',
  ),
  mutant(
    poolGuards,
    'guard: confirmed in a run that is over',
    'contacts of an account that is lost stay its own in a new run that no worker has noticed yet',
    'select run_no from instance',
  ),
  mutant(
    poolGuards,
    'guard: a person who was written to under another name',
    `${putBackWhole} a person known by two names gets nothing again, whichever name is looked up first`,
    'return false',
  ),
  mutant(
    identities,
    'guard: one person of a batch',
    'a person who is named twice in one campaign gets one message, whichever of 6 accounts find them',
    `const person = \`${value('account_id')} ${value('chat_id')}\``,
  ),
  mutant(
    identities,
    'guard: whom a look_up found is kept',
    'a contact whom a look-up found is kept by every name until the recipient is final',
  ),
  mutant(
    identities,
    'guard: a contact of whom only the chat is known',
    'a contact whom a look-up found and of whom only the chat is known is looked up again',
    'chat_id: row.chat_id,',
  ),
  mutant(
    identities,
    'guard: a name that is another person',
    'a contact whom a look-up found and of whom only the chat is known is looked up again',
    'if (false) {',
  ),
  mutant(
    poolGuards,
    'guard: a proven message is recorded',
    `${putBackWhole} what was sent to a person who is suppressed since is recorded, and not sent`,
    'const suppressed = listed',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/running/dispatch-contacts.test.ts' },
    'guard: a person who was reached is not written to again',
    'contacts that are one person under two names are written to once, also where the follow-up to one was refused',
    "and other.status not in ('failed', 'cancelled')",
  ),
]

/** What both boundaries share: the deadline counts from after the COMMIT. */
const noClock = 'const startedAt = Number.NaN'
const clockAfterCommit: Patch = {
  marker: 'crash point 5',
  insert: 'if (Number.isNaN(startedAt)) startedAt = app.sources.now()',
}

const members = {
  file: 'src/capabilities/users/members.test.ts',
  still: 'GET /members 200 with everybody who belongs to the workspace, and nobody who has left',
}
const roleMatrix = { file: 'test/roles.test.ts', still: '/dashboard/api/w/{workspace_id} list_members' }
const oidc = {
  file: 'src/capabilities/oidc/oidc.test.ts',
  still: 'GET /dashboard/oidc/callback 302 to the page that was wanted, as the user who is linked',
}
const devices = { file: 'src/capabilities/sessions/devices.test.ts' }
const sockets = { file: 'test/limits/sockets.test.ts' }
const waits = { file: 'src/capabilities/events/events.test.ts' }
const lockout = { file: 'test/lockout.test.ts' }
const setupLinks = 'POST /members/{user_id}/setup-link 409 for an operator, and for who can sign in already'

/** Who belongs to a workspace, and who is let in by the identity provider. */
const people: readonly Mutant[] = [
  mutant(
    members,
    'guard: one owner remains',
    'the last owner stays, however many leave or step down at the same moment',
  ),
  mutant(
    members,
    'guard: a key needs a member',
    'DELETE /members/{user_id} 409 for a key that is made while its user leaves',
  ),
  mutant(
    roleMatrix,
    'guard: role at the dashboard',
    '/dashboard/api/w/{workspace_id} create_webhook',
    'const wanted = role',
  ),
  mutant(
    roleMatrix,
    'guard: scopes of a role',
    'scopes POST /keys: a member makes a key with each scope of their own, and with no other',
    'const scopes = scopesOfRole.owner',
  ),
  mutant(
    roleMatrix,
    'guard: no key beyond its maker',
    'scopes POST /keys: a member makes a key with each scope of their own, and with no other',
  ),
  mutant(
    {
      file: 'src/mcp/choices.test.ts',
      still: 'one session moves a chat and sets a column, knowing only the tools: modern',
    },
    'guard: choices for who may read them',
    'a caller that may not read them, or a closed gate: the eight tools without lists',
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
    'POST /members 201 without a link for a user of another workspace: it would lead there, too',
    'and false',
  ),
  mutant(
    members,
    'guard: links from before a further workspace',
    'a set-up link that somebody keeps does not lead into a workspace that its user is added to later',
  ),
  mutant(
    members,
    'guard: links from before an operator',
    'a set-up link that somebody keeps does not make an operator of whoever has it',
  ),
  mutant(
    members,
    'guard: links from before an owner',
    'a set-up link that somebody keeps does not make an owner of whoever has it',
  ),
  mutant(
    { file: 'src/capabilities/sessions/sessions.test.ts' },
    'guard: a session that has ended',
    'POST /dashboard/api/password 401 where the session has ended, or the password is another, since it was let in',
  ),
  mutant(
    { file: 'src/capabilities/sessions/sessions.test.ts' },
    'guard: no hash for a link that is not good',
    'POST /dashboard/api/setup a link that is not good costs nobody a hash',
  ),
  mutant(
    { file: 'src/capabilities/sessions/sessions.test.ts' },
    'guard: what was compared still holds',
    'POST /dashboard/api/sign-in 401 where the password is another, or the user disabled, since it was compared',
  ),
  mutant(
    members,
    'guard: roles are for owners',
    'POST /members 403 where an admin gives a role above member',
  ),
  mutant(
    { file: 'test/people.test.ts' },
    'guard: owners are for owners',
    'DELETE /members/{user_id} as the line says for: admin',
  ),
  mutant(
    oidc,
    'guard: signature of the provider',
    'GET /dashboard/oidc/callback 401, and nothing is written: a token signed by a stranger',
  ),
  mutant(
    members,
    'guard: another owner can sign in',
    'the last owner 409 when giving up the role or leaving; once there is another, both go',
  ),
  mutant(
    oidc,
    'guard: empty subject',
    'GET /dashboard/oidc/callback 401, and nothing is written: a blank subject',
  ),
  mutant(
    devices,
    'guard: a device token is signed',
    'a known browser is not signed in by it, and a token that somebody made or changed is none',
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
    'guard: nobody takes all places',
    'a source gives places back to others: the last to come of the one that has most is refused',
    'return undefined',
  ),
  mutant(
    lockout,
    'guard: attempts of one source',
    'sign-ins under attack 429 for one source after 100 attempts, whatever X-Forwarded-For it writes itself',
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
    'sign-ins under attack 429 while the queue is full uses up no attempt',
  ),
  mutant(
    waits,
    'guard: waits of a key',
    'GET /events?wait= 429 for a fourth that waits at the same time under one key, on any process; what does not wait is answered',
  ),
  mutant(
    waits,
    'guard: waits of a workspace',
    'GET /events?wait= 429 for the 21st of a workspace, whatever keys; another workspace waits all the same',
  ),
  mutant(
    waits,
    'guard: waits are counted in turn',
    'GET /events?wait= 429 for the 21st of a workspace, whatever keys; another workspace waits all the same',
  ),
  mutant(
    waits,
    'guard: a wait that is over gives its place back',
    'GET /events?wait= 429 for a fourth that waits at the same time under one key, on any process; what does not wait is answered',
  ),
  mutant(
    waits,
    'guard: a caller who leaves waits no longer for events',
    'GET /events?wait= 200 once a caller who waited has left, and once those of a process that died have expired',
  ),
  mutant(
    sockets,
    'guard: the source that has most',
    'the source that has most gives, whoever else is idle',
    'const candidate = { socket, rank, completeAt, count: 0 }',
  ),
  mutant(
    sockets,
    'guard: who waits for an answer is not cut',
    'one that waits for its answer stays; where all of them do, the new one goes',
    'return 1',
  ),
  mutant(
    { file: 'src/access/limits.test.ts' },
    'guard: idle callers go first',
    'in memory drops idle callers first: whoever has asked in its window keeps its count',
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
    'in PostgreSQL adds no row for what a later limit refuses',
    'if (!window.allowed) return window',
  ),
  mutant(
    { file: 'src/http/client-address.test.ts' },
    'guard: who may say where a client is',
    'where nobody is trusted X-Forwarded-For changes nothing',
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
    'a source is an IPv4 address, or the first 64 bits of one of IPv6, however it is written',
    'return parsed.toString()',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/campaigns.test.ts' },
    'guard: first messages of other campaigns',
    'POST /campaigns/preview and GET /campaigns/{campaign_id}/forecast 200 without reading the texts of the other campaigns on the account, which can be long',
    'sql`k.message_text`,',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/campaigns.test.ts' },
    'guard: follow_ups of other campaigns',
    'POST /campaigns/preview and GET /campaigns/{campaign_id}/forecast 200 without reading the texts of the other campaigns on the account, which can be long',
    'stepsOf,',
  ),
  mutant(
    { file: 'src/lib/addresses.test.ts' },
    'guard: zones of addresses',
    'an address is read in its one strict form',
    'return isIP(text) === 0 ? undefined : ipaddr.process(text)',
  ),
  mutant(
    { file: 'src/config.test.ts' },
    'guard: networks of proxies are not all',
    'the configuration takes proxies to trust, by address and by network, and never everybody',
  ),
  mutant(
    oidc,
    'guard: age of a flow',
    'GET /dashboard/oidc/callback 401 after ten minutes, and for a cookie that was moved from elsewhere',
  ),
  mutant(
    oidc,
    'guard: an address given anew',
    'an e-mail address does not lead to a user who has an account at the provider already: addresses are given anew',
  ),
]

const directories = {
  file: 'src/db/data-directory.test.ts',
  still: 'a directory that a group may write to is taken',
}

/** What an operator types, and where it acts. */
const terminal: readonly Mutant[] = [
  mutant(
    { file: 'src/config.test.ts', still: 'the configuration takes the address https://a.example/@b' },
    'guard: origin and path',
    'the configuration refuses the address https://ana:hunter2@parley.example/path, without repeating it',
    '.refine((text) => URL.canParse(text), {',
  ),
  mutant(
    directories,
    'guard: a directory that everybody may write to',
    'a directory of mode 1777, which everybody may write to, is refused and left alone',
    'if (false) {',
  ),
  mutant(
    directories,
    'guard: owner of a secret',
    'a secret of another user refuses the directory, before anything is made in it',
    'if (false) {',
  ),
  mutant(
    { file: 'test/command-line.test.ts' },
    'guard: a read makes nothing',
    'in a data directory without a Parley gate list refuses and makes nothing',
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
  still: 'the update uses the token up where everything is as it was',
}

const placeholders = {
  file: 'src/capabilities/campaigns/planning/personalize.test.ts',
  still: 'personalization a value is text: brackets in a name are not filled',
}

/** What the contract says of texts, addresses and answers. */
const contract: readonly Mutant[] = [
  mutant(
    placeholders,
    'guard: only placeholders between the brackets',
    'personalization only a known word stands between the brackets: [[first name]]',
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
    'personalization a word in the form of the other document is refused in any spelling: name',
  ),
]

export const mutants: readonly Mutant[] = [
  // The boundary.
  crosses('guard: dispatch', 'dispatch is off'),
  mutant(crossing, 'guard: restore_counter', 'does not cross the restore counter is lower', 'where true'),
  crosses('guard: generation', 'the generation is another'),
  crosses('guard: owes', 'a worker owes'),
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
    'a stored message that carries the random id proves it: nobody may submit it',
  ),
  mutant(
    crossing,
    'guard: the release waits for the row',
    'a crossing whose answer was lost its commit is still under way: the release waits for it and hits',
  ),
  mutant(
    crossing,
    'guard: a late crossing finds another token',
    'a crossing whose answer was lost it is still queued: the crossing that comes late does nothing, and whoever reads it anew crosses',
  ),

  {
    what: 'a release that asks for no token, anywhere',
    patches: [
      { marker: 'guard: token of a release', replace: 'const ours = row !== undefined' },
      { marker: 'guard: settle token', replace: 'true' },
    ],
    test: 'a crossing whose answer was lost the token is of another attempt: nothing changes',
    ...crossing,
  },

  // The one way to end.
  mutant(settling, 'guard: settle token', 'another attempt speaks submitting: nothing changes', 'true'),
  mutant(
    settling,
    'guard: settle queued_no',
    'no attempt speaks who queued it for another time ends nothing',
  ),
  mutant(settling, 'guard: settle crossed rows only', 'the attempt of the row speaks queued: released'),
  mutant(
    settling,
    'guard: settle queued rows only',
    'no attempt speaks submitting: only what is queued ends',
  ),
  mutant(settling, 'guard: settle unknown once', 'the attempt of the row speaks ambiguous: ambiguous'),
  mutant(
    settling,
    'guard: the kind is told in the same transaction',
    'the kind is told in the same transaction what it writes commits with the row',
  ),
  mutant(
    settling,
    'guard: counted once',
    'a completion that is told twice is counted once',
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
    'advancePositions is live from the first batch on that was read to the end, and not before',
    'observed_at = real_now()',
  ),
  mutant(
    claiming,
    'guard: account lease too far ahead',
    'claimAccounts takes one whose lease is further ahead than any can be: the clock was set back',
  ),
  mutant(
    claiming,
    'guard: not live until caught up',
    'claimAccounts makes it not live, and renewing the lease does not make it so',
    'observed_at = real_now()',
  ),
  mutant(
    claiming,
    'guard: renewing makes nothing live',
    'claimAccounts makes it not live, and renewing the lease does not make it so',
    'when true',
  ),
  mutant(
    claiming,
    'guard: only accounts that may act are claimed',
    'claimAccounts leaves one that is DISABLED, whoever drove it before',
  ),
  mutant(
    claiming,
    'guard: a lease is given back by its epoch',
    'releaseLease ends the lease of this epoch only: its worker may have taken the account again',
  ),
  mutant(claiming, 'guard: a lease that has run out is not held', 'holdsLease where it has run out'),
  mutant(
    sweeping,
    'guard: uncrossed under our lease',
    'settleUncrossed leaves an operation to the next holder of the account where another worker holds the lease',
  ),
  mutant(
    sweeping,
    'guard: an owing worker is not forgotten',
    'forgetWorkers keeps one that owes, however long ago it ended: its journals may know what the database has forgotten',
  ),
  mutant(
    sweeping,
    'guard: lease too far ahead',
    'sweep a lease further ahead than any can be counts as over',
  ),
  mutant(
    sweeping,
    'guard: swept with its worker',
    'sweep an attempt whose owner has stopped is unknown at once',
  ),
  mutant(
    sweeping,
    'guard: swept is ambiguous',
    'sweep an attempt whose lease has run out is unknown, never queued',
    "return { id, token, ending: { to: 'released', reason: 'never_written' } }",
  ),
  mutant(
    sweeping,
    'guard: sweep waits for nobody',
    'sweep a row that somebody is at is left to them, and the others are not',
    'for update of o',
  ),
  mutant(
    sweeping,
    'guard: a chat hides no other',
    'listQueued many that wait in one chat do not hide another chat',
    'select',
  ),
  mutant(
    { file: ledger('lanes'), still: 'one at a time in each chat, four at a time of each account' },
    'guard: files are fair',
    'files of one account that hang leave room for those of another, and for its own texts',
    'if (file && this.#files.size >= filesMax) return undefined',
  ),

  mutant(
    { file: ledger('floods'), still: 'of 5 s and then 600 s the longer one holds' },
    'guard: the longer flood wait holds',
    'of 600 s and then 5 s the longer one holds',
    `set ${value('end')} = domain_now() + make_interval(secs => ${value('retry_after_seconds')})`,
  ),

  // Putting back.
  mutant(
    puttingBack,
    'guard: a known attempt is not put back',
    'putBack submitting, and the very attempt is known',
    '',
    'put back without a look at the attempt',
  ),
  mutant(
    puttingBack,
    'guard: a repeat of the key is put back',
    'putBack a repeat has made another row for the key: it must not run, and keeps its public name',
  ),
  mutant(
    restoring,
    'guard: journals are put back',
    'at the start it is an older copy: the journals are put back, and a person switches on',
  ),
  mutant(
    restoring,
    'guard: an older copy is noticed',
    'at the start it is an older copy: the journals are put back, and a person switches on',
  ),
  mutant(
    restoring,
    'guard: another generation is noticed',
    'at the start it has another generation: the journals are put back first',
    'return undefined',
  ),
  mutant(
    restoring,
    'guard: what came to nothing is not put back',
    'at the start what provably came to nothing is not put back: not_written',
    "if (kind === 'refused') nothing.add(entry.token)",
  ),
  mutant(
    restoring,
    'guard: owing worker crosses nothing',
    'a put-back that fails nothing crosses, here or elsewhere, until it is complete',
  ),
  mutant(
    restoring,
    'guard: a debt is kept on the disk',
    'a put-back that fails is remembered on the disk: the next process of it goes on',
  ),
  mutant(
    restoring,
    'guard: the debt of an ended worker is taken over',
    'a worker that dies owing, beside one of its disk that owes nothing the other takes over what it owed once it has ended',
  ),
  mutant(
    restoring,
    'guard: a living worker keeps its debt',
    'a worker that dies owing, beside one of its disk that owes nothing the other takes over what it owed once it has ended',
    'const debts = others',
  ),
  mutant(
    restoring,
    'guard: an inherited debt is put back',
    'a worker that dies owing, beside one of its disk that owes nothing what it noticed while the database was away is put back, too',
  ),
  mutant(
    restoring,
    'guard: the slower of two processes does not set the counter back',
    'the counter on the disk does not go back when the slower of two processes writes last',
  ),
  mutant(
    restoring,
    'guard: noticed while a debt ended',
    'commits are found lost at the moment at which a put-back is done: it begins again',
  ),
  mutant(
    restoring,
    'guard: a living journal is not set aside',
    'journals of others that of a process that lives is not set aside',
    'if (told.get(name) === size && ended) await markReplayed(directory, file)',
  ),

  mutant(
    restoring,
    'guard: an older copy stays one',
    'an older copy that could not be told stays one, also where another generation is noticed since',
    'this.#untold = why',
  ),
  mutant(
    restoring,
    'guard: a generation begun meanwhile',
    'a heartbeat that was answered before lost commits were noticed does not bring the generation before back',
  ),
  mutant(
    restoring,
    'guard: damaged lines keep sending off',
    'a damaged line keeps sending off, also where nothing was forgotten',
  ),
  mutant(
    restoring,
    'guard: a put back that noticed more is not done',
    'what is noticed while the journals are put back is not forgotten: they are put back again',
  ),
  mutant(
    restoring,
    'guard: noticed during a put back',
    'what is noticed while the journals are put back is not forgotten: they are put back again',
  ),
  mutant(
    restoring,
    'guard: a journal that failed is not done',
    'journals of others that could not be replayed is not set aside, and the put-back is not complete',
  ),
  mutant(
    restoring,
    'guard: a failed replay is no put back',
    'journals of others that could not be replayed is not set aside, and the put-back is not complete',
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
    'a page that was answered since it was listed is not asked for again',
  ),
  mutant(journalling, 'guard: journal is flushed', 'an intent resolves only when the disk has it'),
  mutant(
    journalling,
    'guard: checksum of a line',
    'a line whose bytes have changed is skipped and counted, the others are read',
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
    'a journal past keeping is removed once it was replayed, and not before',
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
    'accounts are taken, and given up while the journal cannot be written',
  ),
  mutant(
    restoring,
    'guard: a disk that forgot the database puts its journals back',
    'a disk whose memory of the database is gone lost: its journals are put back all the same',
    'const stranger = false',
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: what was never asked is not unknown',
    'there is no connection for the row: nothing was asked, and the caller is not told that nobody knows',
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
    'a database that is away for longer than a lease: the sessions end here',
  ),
  mutant(
    { file: ledger('echoes') },
    'guard: what was seen stays seen',
    'an answer that comes late does not lower the count of writes that was seen',
    'writes.seen = committed',
  ),

  // One attempt.
  mutant(
    attempting,
    'guard: unwritable journal',
    'a journal that cannot be written: nothing is sent',
    'return true',
  ),
  mutant(
    attempting,
    'guard: journal before call',
    'the journal knows of it before the platform does',
    'const intended = true',
  ),
  mutant(
    attempting,
    'guard: deadline',
    'a process that was held up since before the boundary sends nothing, and says so',
    'if (!intended) {',
  ),
  mutant(
    attempting,
    'guard: one kind of an account at a time',
    'messages of two kinds of an account are recorded one kind after the other: an update about both waits in no circle',
    'for (const together of [learnt]) {',
  ),
  {
    what: 'the clock starts after the boundary',
    patches: [{ marker: 'guard: clock starts before the boundary', replace: noClock }, clockAfterCommit],
    test: 'a process that was held up since before the boundary sends nothing, and says so',
    ...attempting,
  },
  mutant(
    attempting,
    'guard: lost commit is not sent',
    'the answer to the crossing is lost nothing is sent, and the row is released',
    "if (isLost(err)) return crossings.map(({ id, token }) => ({ id, token, status: 'crossed', writes: null }))",
  ),
  mutant(
    attempting,
    'guard: lost commit is in the journal',
    'the answer to the crossing is lost, and the worker ends before the database is back its journal says that nothing was sent',
  ),
  mutant(
    attempting,
    'guard: lost commit is released',
    'the answer to the crossing is lost nothing is sent, and the row is released',
  ),
  mutant(
    attempting,
    'guard: lost commit is released',
    'the answer to the crossing is lost and the release fails at first: it is said again until it is heard',
    'await release().catch(() => {})',
    'release tried once',
  ),
  mutant(
    attempting,
    'guard: tried until stored',
    'an outcome that the database does not take is told again until it does',
    'throw err',
  ),
  mutant(
    attempting,
    'guard: recorded in the order of ids',
    'outcomes of several kinds at once lock their rows in the order of the ids',
  ),
  mutant(attempting, 'guard: drain before the end', 'a worker that stops waits for what it has submitted'),
  mutant(
    attempting,
    'guard: flood wait from its own time',
    'a flood wait that a journal tells of counts from its own time',
    'return seconds',
  ),
  mutant(
    { file: 'test/limits/unknown.test.ts' },
    'guard: no answer is unknown',
    'an ambiguous operation is listed, closed once by a person, audited, and its key is 409 for ever',
    "const known: Outcome<unknown> = outcome ?? { kind: 'not_written', reason: 'timeout' }",
  ),

  mutant(
    attempting,
    'guard: who may not send does not ask',
    'before its preparation asks the platform a flood wait lasts: nobody is looked up, and the row is released',
  ),
  mutant(
    attempting,
    'guard: trouble of the account releases',
    'an account that is needs_login releases the message, so that its key may run again, and the account says so',
    "return { to: 'refused', refusal: outcome.reason }",
  ),
  mutant(
    attempting,
    'guard: only our own messages prove',
    'a message of another person proves nothing, whatever random id it shows',
    'random_id !== null ? [{ random_id, message_id: id, at: timestamp }] : [],',
  ),
  mutant(
    attempting,
    'guard: a late answer is recorded',
    'a late answer is recorded: what was unknown is known',
  ),

  // Callers.
  mutant(
    { file: ledger('waiting'), still: 'two callers of one row are both told at once' },
    'guard: waits for its attempt',
    'who has queued a key again is not told what the attempt before came to',
    'waiter.end(row)',
    'the first outcome wins',
  ),
  mutant(
    { file: ledger('waiting'), still: 'two callers of one row are both told at once' },
    'guard: poll of settled rows',
    'an outcome whose wake-up was lost is found by the poll',
    'const poll = setInterval(() => {}, pollMs)',
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: key is looked up',
    'a second API key of the workspace meets the same operation',
    `where idempotency_key = ${value('key')} and key_id is null`,
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: key is stored',
    'a second API key of the workspace meets the same operation',
    `${value("[caller.via.kind === 'key' ? caller.via.id : '', key].join(' ')")},`,
    'keys are scoped by API key',
  ),
  mutant(
    { file: ledger('enqueue') },
    'guard: random id of the key',
    'the same key has the same random id, also where its row was forgotten',
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
    'POST /chats/start 409 for a first text that met a flood wait, once the person has asked to be left alone',
  ),
  mutant(
    clockSetBack,
    'guard: heartbeat from the future',
    'a clock that was set back a worker whose heartbeat is in the future is not counted on for a share of the accounts',
  ),
  mutant(
    clockSetBack,
    'guard: heard of in the future',
    'a clock that was set back renewing a lease forgets that its session was heard of in the future',
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
    'putBack a repeat that is being queued at this moment is put back, too',
  ),
  mutant(
    restoring,
    'guard: owing before the database is asked',
    'commits are lost, and the database is away when that is noticed by a crossing: it is remembered until it is put back',
  ),
  mutant(
    restoring,
    'guard: forgotten switches off at once',
    'what was forgotten and put back by a try that failed still switches sending off',
  ),
  mutant(
    {
      file: worker('account-pool'),
      still: 'accounts are taken, and given up while the journal cannot be written',
    },
    'guard: writes are kept over sessions',
    'commits are lost, the lease of this process among them: it still knows how far the account had come',
    'const writes = { seen: committed }',
  ),
  mutant(rechecking, 'guard: recheck', 'somebody on the list is not written to first by their id'),
  mutant(
    rechecking,
    'guard: entries wait for crossings',
    'in one order with whoever adds to the list an operator waits for a crossing under way',
  ),

  // Clocks.
  mutant(
    {
      file: 'src/lib/sending-window.test.ts',
      still: 'a sending window opens at its first minute and is closed at its last',
    },
    'guard: a clock change on the way to the window',
    'a sending window opens again where clocks pass it twice, or go back into it',
    'const change = undefined as number | undefined',
  ),

  // Campaigns.
  mutant(
    messages,
    'guard: one in flight',
    'a message of an account that has one in flight waits',
    'where false',
  ),
  mutant(
    messages,
    'guard: quota is used with the crossing',
    'a message that was released is taken up again under its id, and uses the day once',
    'used = d.used,',
    'the use of a day is not counted with the crossing',
  ),
  mutant(
    messages,
    'guard: refund',
    'a message that was released is taken up again under its id, and uses the day once',
    'return day !== null && !nothing ? [{ account_id, workspace_id, day, cold, by: -1 }] : []',
    'the refund is swapped',
  ),
  mutant(
    messages,
    'guard: a recipient is put back with its operation',
    'a message that a restored database has forgotten is put back with its recipient and the use of its day',
  ),
  mutant(
    messages,
    'guard: suppression at the boundary',
    'a message to somebody whose name alone is on the list ends the recipient',
    "(split_part(r.contact, ':', 1), split_part(r.contact, ':', 2)))) and false as suppressed,",
  ),
  mutant(
    messages,
    'guard: suppression list is read under its lock',
    'a message to somebody who comes onto the list in this very moment ends the recipient',
    'const suppressed = locked.suppressed',
  ),
  mutant(
    messages,
    'guard: campaign is held',
    'while a cancel is under way nothing crosses on what was read before it',
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
    'while a cancel is under way what ends meanwhile waits for it, so that nobody is left waiting',
    'order by id',
  ),
  mutant(
    messages,
    'guard: single sends go first',
    'a message is not picked while somebody waits for a single send of the account',
    'select from operations q where false)',
  ),
  mutant(
    messages,
    'guard: pool accounts that are driven',
    'a message to a contact is left to the account with most of its day left, unless its worker has died',
  ),
  mutant(
    messages,
    'guard: the recipient crosses with its operation',
    'a message crosses with its operation, its recipient and the use of its day',
  ),
  mutant(
    messages,
    'guard: lost commit is not sent',
    'a message whose crossing gives no answer is not sent, and its worker says so',
    '',
    'lost commit of a message is not sent',
  ),
  {
    what: 'the clock of a message starts after the boundary',
    patches: [
      { marker: 'guard: clock starts before the boundary of a message', replace: noClock },
      clockAfterCommit,
    ],
    test: 'a message whose process stands still after it has crossed is not sent after a cancel that came meanwhile, and its worker says so',
    ...messages,
  },
  mutant(
    messages,
    'guard: lost commit is in the journal',
    'a message whose crossing gives no answer and whose worker ends before the database is back: its journal says that nothing was sent',
    '',
    'lost commit of a message is in the journal',
  ),
  mutant(
    messages,
    'guard: proven message is not sent',
    'a message that the platform has shown before crosses with its proof, and nobody submits it',
    "return { status: 'crossed', writes, operation: operationOf(decision.attempt), proof: null }",
  ),
  mutant(
    { file: 'src/capabilities/campaigns/running/dispatch.test.ts' },
    'guard: a reply ends what waits',
    'a reply ends the sequence, is told once, and counts',
    'const replied = []',
  ),
  mutant(
    hearing,
    'guard: history is heard',
    `${byHistory} end the sequence, and nothing is announced`,
    'const events = []',
  ),
  mutant(
    hearing,
    'guard: edits are heard',
    'a reply, and a request to stop in an edit that brings along a message end the sequence',
    'hear(app, tx, held, stored),',
  ),
  mutant(
    { file: 'src/capabilities/suppressions/suppressions.test.ts' },
    'guard: only people are heard',
    'a message that asks to stop is not one that only contains the word, our own, or one in a group',
    'const heard = stored',
  ),
  mutant(
    hearing,
    'guard: history asks to stop after a message of ours',
    `${byHistory} end the sequence, and nothing is announced`,
  ),
  mutant(
    hearing,
    'guard: history asks to stop after a message of ours',
    `${byHistory} are none where they are older than our message`,
    'or true',
    'history asks to stop at any time',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/running/replies.test.ts' },
    'guard: written by what was sent',
    'what only history brings an opt-out of somebody whom the API wrote to suppresses the person',
    'where false),',
  ),
  mutant(
    hearing,
    'guard: written by a campaign',
    'while a message is in flight a request to stop that came after the crossing is heard',
    'where false)',
  ),
  mutant(
    hearing,
    'guard: a stored answer is an answer',
    'while a message is in flight of which the database has no trace, as after a restore, a reply that is stored counts once it is known',
    'and false',
  ),
  mutant(
    hearing,
    'guard: older than the campaign',
    'while a message is in flight what is older than the campaign is not even noted',
    'true',
  ),
  mutant(
    hearing,
    'guard: newest is kept',
    'while a message is in flight of a page the newest is kept, and decides once the message is accepted',
  ),
  mutant(
    hearing,
    'guard: a reply to another account of the pool',
    `${elsewhere} hears the reply: the sequence ends, and the event names the account that has the message`,
    'where false',
  ),
  mutant(
    hearing,
    'guard: a reply to another account of the pool',
    `${elsewhere} does not answer a campaign that has had its say, nor one of another pool`,
    'where p.pool',
    'a reply to an account of no pool of the campaign',
  ),
  mutant(
    hearing,
    'guard: nothing is left to end elsewhere',
    `${elsewhere} does not answer a campaign that has had its say, nor one of another pool`,
  ),
  mutant(
    hearing,
    'guard: two accounts are compared by time',
    `${elsewhere} hears the reply: the sequence ends, and the event names the account that has the message`,
    'else true',
  ),
  mutant(
    hearing,
    'guard: numbers of two accounts are not compared',
    `${elsewhere} hears while a message is in flight: what came before the crossing is none, whatever its number`,
    'const comparable = true',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/running/pick.test.ts' },
    'guard: the first contact is taken first',
    'an account takes the first contact that is left, also where an account before it has something else to do',
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
    `${learnt} has failed because a person noted so, and nothing was written: it stays failed`,
  ),
  mutant(
    messages,
    'guard: what was stopped stays so',
    'a message that a restored database has forgotten is recorded, and a recipient that was suppressed meanwhile stays so',
  ),
  mutant(
    attemptingMessages,
    'guard: what is final stays so',
    `${learnt} has failed because a person noted so, and it was sent: it is completed, and nothing follows`,
    "const over = was === 'ambiguous' || row.campaign_status === 'cancelled'",
    'what failed is followed up',
  ),
  mutant(
    attemptingMessages,
    'guard: what is final stays so',
    `${learnt} was final because nobody knew, and it was sent: it is completed, and nothing follows`,
    "const over = was === 'failed' || row.campaign_status === 'cancelled'",
    'what was unknown is followed up',
  ),
  mutant(
    attemptingMessages,
    'guard: unknown in a cancelled campaign is final',
    `${learnt} is of a campaign that was cancelled meanwhile, and nobody knows: it is final at once`,
    'const due = dueAfter(row, row.crossed_at)',
  ),
  mutant(
    attemptingMessages,
    'guard: ends as it was picked',
    'a look-up that finds nobody ends the contact as it was picked, and not one that has changed since',
  ),
  mutant(
    attemptingMessages,
    'guard: a flood wait of a look up is noted',
    'a look-up that meets a flood wait holds the account for as long, and the contact stays due',
  ),
  mutant(
    attemptingMessages,
    'guard: a proven message calls nobody',
    'with a proof of the boundary nobody is called: the message completes as the one that was shown',
    'if (false) await null',
  ),
  mutant(
    attemptingMessages,
    'guard: a proven message is in the journal',
    'with a proof of the boundary nobody is called: the message completes as the one that was shown',
  ),
  mutant(
    attemptingMessages,
    'guard: the phone that a look_up tells',
    `${lookedUp} as the platform tells it: nothing is sent`,
    'r.found_phone as found_under,',
  ),
  mutant(
    crossingDirectly,
    'guard: cold messages add up',
    'a message that crosses raises used_cold, the second of a day as well',
    'used_cold = excluded.used_cold',
  ),
  mutant(
    crossingDirectly,
    'guard: messages raise writes',
    'a message that crosses raises the writes of its account, and its worker remembers them',
    'writes = h.writes',
  ),
  mutant(
    crossingDirectly,
    'guard: writes are remembered',
    'a message that crosses raises the writes of its account, and its worker remembers them',
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
    'a message that crosses is not taken up again by another attempt while it is in flight',
  ),
  mutant(
    crossingDirectly,
    'guard: a message without its operation does not cross',
    'a message that crosses without its operation does not: the whole batch is undone',
  ),
  mutant(
    crossingDirectly,
    'guard: days wait for nobody',
    `${leftAlone} the day of the account`,
    'for update',
  ),
  mutant(
    crossingDirectly,
    'guard: what another transaction holds is left alone',
    `${leftAlone} the day of the account`,
    "if (row.forbidden === 'busy' || contended.has(recipient_id)) return { do: 'busy' }",
    'a day that another transaction holds is taken',
  ),
  mutant(
    crossingDirectly,
    'guard: what another transaction holds is left alone',
    `${leftAlone} the person whom a contact turned out to be`,
    "if (day.busy || row.forbidden === 'busy') return { do: 'busy' }",
    'a person whom another transaction holds is taken',
  ),
  // Webhooks.
  mutant(
    { file: webhooks('webhooks') },
    'guard: webhooks counted under a lock',
    'POST /webhooks 409 for the eleventh, however many ask at once, and inactive ones count',
  ),
  mutant(
    { file: webhooks('endpoints') },
    'guard: lease of an endpoint',
    'the lease of an endpoint keeps others away until it is given back or has run out',
    'and (true',
  ),
  mutant(
    { file: webhooks('endpoints') },
    'guard: count of the owner',
    'the lease of an endpoint lets its owner count only: a process that has lost it tells what it knows of the delivery',
    '),',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: leases of endpoints renewed',
    'an attempt that takes long keeps its endpoint: the lease is renewed meanwhile',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: one probe at a time',
    'a failing endpoint is asked for one at a time after three failures, with gaps that double',
  ),
  mutant(
    { file: 'test/limits/webhook-calls.test.ts' },
    'guard: url checked at every call',
    'a literal address that is not public is not called, in whatever notation',
  ),
  mutant(
    { file: 'test/limits/webhook-calls.test.ts' },
    'guard: every address of a name is checked',
    'a name is not called if one of its addresses is not public',
  ),
  mutant(
    { file: 'test/limits/webhook-calls.test.ts' },
    'guard: one buffer for all sockets',
    'an endless answer is read in small pieces, so that hundreds of them fit into the memory',
  ),
  mutant(
    stopping,
    'guard: attempts may end at a stop',
    'a stop lets an attempt end: it is recorded and not repeated',
  ),
  mutant(
    stopping,
    'guard: attempts cut off at a stop',
    'a stop cuts off an attempt that goes on: nobody knows what came of it, so it is repeated',
  ),
  mutant(
    stopping,
    'guard: leases of endpoints at a stop',
    'a stop keeps the endpoint while it waits, and gives it back at once',
    'const renewed = Promise.resolve()',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: nothing for a deleted endpoint',
    'an endpoint with deliveries that are loaded gets none of them once it is deleted',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: nothing is loaded for a deleted endpoint',
    'an endpoint with deliveries that are loaded gets none of them once it is deleted',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: nothing for an endpoint that is off',
    'an endpoint with deliveries that are loaded gets none of them once it is switched off',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: count of the address',
    'a failing endpoint is not blamed for what its address before answers after the change',
  ),
  mutant(
    { file: webhooks('delivery') },
    'guard: queued anew',
    'resending 200 while the last attempt of a series is under way: the new series is not lost with it',
    'const queuedAnew = sql`false`',
  ),
  mutant(
    { file: 'src/capabilities/events/events.test.ts' },
    'guard: poll of waiting readers',
    'GET /events?wait= 200 without a wake-up: the poll finds it',
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
  mutant(approving, 'guard: approval is of the key', 'the update does not for another key'),
  mutant(approving, 'guard: approval is of the user', 'the update does not for another user'),
  mutant(approving, 'guard: approval is of the workspace', 'the update does not for another workspace'),
  mutant(approving, 'guard: approval is for the operation', 'the update does not for another operation'),
  mutant(approving, 'guard: approval is for the account', 'the update does not for another account'),
  mutant(approving, 'guard: approval is for the chat', 'the update does not for another chat'),
  mutant(approving, 'guard: approval is for the payload', 'the update does not for another payload'),
  mutant(approving, 'guard: approval is used once', 'the update does not a second time'),
  mutant(
    approving,
    'guard: account of an approval',
    'the update does not where the account is not ready, also where this process has not heard of it',
  ),
  mutant(
    approving,
    'guard: approval expires',
    'two minutes of domain time 120.1 s after it does not: send_message',
  ),
  mutant(
    approving,
    'guard: approval is of this database',
    'a database that was restored to before the use another generation of the database takes no token of the one before',
  ),
  mutant(
    approving,
    'guard: key of an approval',
    'who and what has to be there still 403 after the key was revoked',
  ),
  mutant(
    approving,
    'guard: user of an approval',
    'who and what has to be there still 403 after the user was disabled',
  ),
  mutant(
    approving,
    'guard: membership of an approval',
    'who and what has to be there still 403 after the membership has ended, also where the key is still there',
  ),
  mutant(
    approving,
    'guard: identity of an approval',
    'who and what has to be there still 403 after the identity became somebody else’s',
  ),
  mutant(
    approving,
    'guard: uuid of an approval',
    'a token with something else than was approved 403 twice, and nothing is used up: the UUID of the identity',
  ),
  mutant(
    approving,
    'guard: platform identity of an approval',
    'a token with something else than was approved 403 twice, and nothing is used up: who the account is on its platform',
  ),
  mutant(
    approving,
    'guard: key of an approved operation',
    'a database that was restored to before the use nothing is known but the message itself: it is not sent again',
    'return keyPrefix + crypto.randomUUID()',
  ),
  mutant(
    approving,
    'guard: operation of a used approval',
    'a database that was restored to before the use the ledger knows the operation: the approval is used',
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
    'a write without a token 503 while the gate of the tool is closed, with a token and without',
  ),
  mutant(
    { file: 'src/capabilities/campaigns/campaigns.test.ts' },
    'guard: what is not there is told before the limit',
    'POST /campaigns 429 past the limit of a minute, not counting replays',
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
    'turns of many keys one at a time for a key, two in all, and the keys take turns',
  ),
  mutant(
    turnsOfKeys,
    'guard: keys take turns',
    'turns of many keys one at a time for a key, two in all, and the keys take turns',
  ),
  mutant(
    turnsOfKeys,
    'guard: places of all keys',
    'turns of many keys one at a time for a key, two in all, and the keys take turns',
  ),
  mutant(
    turnsOfKeys,
    'guard: a caller who leaves waits no longer',
    'turns of many keys a caller that leaves waits no longer, and takes the place of no other',
  ),
  mutant(
    { file: 'test/limits/plays.test.ts' },
    'guard: the thread learns that the caller left',
    '429 with Retry-After for the same workspace while one is made, 200 for another one; and a caller who leaves ends it',
  ),
  mutant(
    playing,
    'guard: a play is kept for a minute',
    'a play serves further pages for a minute, and not once something has changed',
    'return undefined',
  ),
  mutant(
    playing,
    'guard: a play stops when the caller leaves',
    'a play stops once nobody waits for it, and is not kept',
  ),
  mutant(
    playing,
    'guard: a play has a budget of processor time',
    'a play has no end after its processor time, and says what it has',
  ),
  mutant(
    telegram('transport'),
    'guard: held before every write',
    'a connection whose lease has run out writes no byte, and is over',
    'const mayWrite = true',
  ),
  mutant(
    telegram('transport'),
    'guard: transport error',
    'a connection that gets a frame of four bytes, which is a transport error, is over',
    'if (length === 5) {',
  ),
  mutant(
    telegram('transport'),
    'guard: bounded frame',
    'a connection that gets a frame of more than 4 MiB is over before the frame is read',
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
    platformStore,
    'guard: connecting does not undo trouble',
    'trouble is not undone by a session of a NEEDS_LOGIN account that connects late',
  ),
  mutant(
    loggingIn,
    'guard: one login of an account at a time',
    'a login of one account runs once at a time, and of another beside it',
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
    'a user of the platform stays the one that an account is for',
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
  mutant(loggingIn, 'guard: the worker has let go', 'a logout waits until the worker has let go', 'return'),
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
    'the transport of a session of a test dials nothing but loopback',
  ),
  mutant(
    telegram('transport'),
    'guard: the gate of all calls',
    'a connection that is cut is over, and every later call is not written',
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
    '149.154.167.50:443,key.pem is none',
  ),
  mutant(
    telegram('read'),
    'guard: known people are not looked up',
    'resolve asks Telegram only about whom no stored person is',
    'const known = undefined',
  ),
  mutant(
    telegram('send'),
    'guard: a caption that is too long',
    'a caption over the limit of the account is refused before the call',
    'if (file && text === null) {',
  ),
  mutant(
    telegram('send'),
    'guard: answers are fed',
    'a short answer is accepted, and fed to the updates with text and random id',
  ),
  mutant(
    telegram('send'),
    'guard: an answer without our random id is unknown',
    'a whole answer is accepted if it names our random id, and unknown if it does not',
    "if (proof?._ !== 'updateMessageID') return { kind: 'accepted', value: { message_id: '0', at: timeOf(0) } }",
  ),
  mutant(
    telegram('upload'),
    'guard: parts are copied',
    'a chunk as long as a part is copied as well',
    'part = filled === 0 && bytes.length === part.length ? bytes : (part.set(bytes, filled), part)',
  ),
  mutant(
    telegram('updates'),
    'guard: a container that is missing',
    'updates that are pushed in a container after a missing one wait as well',
  ),
  mutant(
    telegram('updates'),
    'guard: an update that is missing',
    'updates that are pushed before which one is missing wait for it, and the difference is not asked for',
  ),
  mutant(
    telegram('updates'),
    'guard: an update that is known',
    'updates that are pushed are handed over in order, each once, with the state after them',
    '}',
  ),
  mutant(
    telegram('updates'),
    'guard: a pts ahead of ours',
    'the difference is asked for when Telegram stands further than we do, and only then',
    'await this.#difference()',
  ),
  mutant(
    telegram('updates'),
    'guard: so many containers wait',
    'updates that are pushed end the stream when 5,000 of them wait',
    'const isFull = false',
  ),
  mutant(
    telegram('updates'),
    'guard: a slice is not caught up',
    'the beginning with a state is the difference, in slices of which only the last has caught up',
    'await this.#hand(updatesOf(found), { users, chats, caught_up: true })',
  ),
  mutant(
    telegram('updates'),
    'guard: missed updates end the stream',
    'the difference that is too long moves on, tells the gap, and ends the stream before it has caught up',
    "throw new Error('Updates were missed.')",
  ),
  mutant(
    telegram('updates'),
    'guard: an awaited batch',
    'updates that are pushed wait until the batch before is stored',
    'taken.catch(() => {})',
  ),
  mutant(
    telegram('view'),
    'guard: an edit that changes nothing shown',
    'an edit that Telegram hides, as it does for reactions, is none',
  ),
  // The data centre of the sandbox.
  mutant(
    dataCentre('sending'),
    'guard: random id accepted once',
    'de-duplication answers a repeated random id with the first message, and accepts that of another account',
    'const first = undefined',
  ),
  mutant(
    dataCentre('sending'),
    'guard: own sends only in their answers',
    'messages.sendMessage is accepted, and the connection hears of it in the answer alone',
  ),
  mutant(
    dataCentre('sending'),
    'guard: a number needs its access hash',
    'messages.sendMessage a person is written to with the access hash that this account was given',
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
    'frames that are written twice are processed once',
  ),

  // Leases, as a platform's session sees them.
  mutant(
    claiming,
    'guard: takeover waits',
    'claimAccounts where a platform wants 75 seconds before another worker takes over leaves an account whose lease ran out 74 seconds ago, and takes one of 76',
    'or f.lease_until < real_now()',
  ),
  mutant(
    claiming,
    'guard: only workers that have the platform',
    'readShares counts for each platform the workers that have it',
  ),
  mutant(
    claiming,
    'guard: held by the monotonic clock',
    'a lease without asking the database ends by the monotonic clock',
    'const awake = true',
  ),
  mutant(
    claiming,
    'guard: held by the wall clock',
    'a lease without asking the database ends by the wall clock, which goes on while a machine sleeps',
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
        still: 'accounts are taken, and given up while the journal cannot be written',
      },
      marker,
      'a platform is told whether the lease still holds: while its renewals arrive, and not once its session is over',
      replace,
    ),
  ),
  mutant(
    {
      file: worker('account-pool'),
      still: 'accounts are taken, and given up while the journal cannot be written',
    },
    'guard: a wait at connect is served in full',
    'a platform that asks to wait at connecting is asked again only after the whole of it',
    "if (end.kind === 'flood_wait') return 300_000",
  ),
  mutant(
    {
      file: worker('account-pool'),
      still: 'accounts are taken, and given up while the journal cannot be written',
    },
    'guard: few history calls of an account',
    'of many chats whose history callers wait for, an account fetches two at a time',
    'false',
  ),

  // Waits apart, first messages that the platform stopped, and updates that went missing.
  mutant(
    attempting,
    'guard: a wait on reading is no strike',
    'a flood wait for reading is a strike: 0',
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
    'contacts wait for the end of a wait for look-ups, while those whose chats are known are written to',
    'and false',
  ),
  mutant(
    { file: running('dispatch') },
    'guard: no first message while they are stopped',
    'a platform that stops first messages gets none until the account is enabled again; answers and follow-ups go on',
  ),
  mutant(
    { file: running('dispatch') },
    'guard: enabling allows first messages again',
    'a platform that stops first messages gets none until the account is enabled again; answers and follow-ups go on',
    'else if (false) {',
  ),
  mutant(
    { file: running('replies') },
    'guard: campaigns wait for a gap',
    'what was missed because updates were lost no follow-up leaves before it is fetched, and the page says that the account is not ready',
  ),
  mutant(
    { file: running('replies') },
    'guard: a chat with news after a gap is fetched',
    'what was missed because updates were lost an opt-out among more messages than a page holds suppresses the person',
  ),
  mutant(
    { file: running('replies') },
    'guard: a gap is fetched whole',
    'what was missed because updates were lost an opt-out among more messages than a page holds suppresses the person',
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
    'updates go missing in a session: it syncs the account again, without connecting anew',
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
    'at the start and drives accounts that two addresses must not use at once a copy made a moment ago, where no other worker lives: they are not connected until sending is switched on',
    'or true)',
  ),
  mutant(
    restoring,
    'guard: a copy has no other heartbeat',
    'at the start and drives accounts that two addresses must not use at once a worker joins others that are alive: it connects them as usual',
  ),
]
