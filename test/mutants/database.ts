/**
 * Edits of the database's functions: what they learn about people, whom the suppression list stops, and what they erase of the past.
 */
import type { Mutant } from './mutants.ts'
import type { SqlPatch } from './sql-functions.ts'

const file = 'src/capabilities/people/names.test.ts'

function edits(functions: SqlPatch, what: string, test: string, still?: string): Mutant {
  return { what, patches: [], functions: [functions], file, test, ...(still && { still }) }
}

const erasing = 'what release 0.3 stored of login codes and strangers'
const erased = `${erasing} is erased once more by the first worker of this release, and not after that`
const untouched = `${erasing} stays where it belongs to another account, and in the sandbox, where 777000 may be anybody`
const leaseLost = `${erasing} is not touched by a worker that has lost the lease`

const erases = (name: string) => (text: string, replace: string, what: string, test: string) => ({
  ...{ what, patches: [], functions: [{ function: name, text, replace }] },
  ...{ file: 'src/capabilities/accounts/tidy.test.ts', test, still: leaseLost },
})

const service = erases('erase_service_chat')
const strangers = erases('forget_strangers')

/** Each delete of the service chat: of this account, and of this chat alone. */
const deletesOfServiceChat: readonly Mutant[] = [
  ['messages', 'chat_id'],
  ['chats', 'chat_id'],
  ['chat_sync', 'chat_id'],
  ['deleted_messages', 'chat_id'],
  ['search_pending', 'chat_id'],
  ['search_stale', 'chat_id'],
  ['contacts', 'provider_id'],
  ['platform_peers', 'number'],
].flatMap(([table, column]) => {
  const text = `delete from ${table} where account_id = account and ${column} = 777000;`
  return [
    // Of the peers, strangers are forgotten besides.
    ...(table === 'platform_peers' ? [] : [service(text, '', `${table} keep the service chat`, erased)]),
    service(
      text,
      `delete from ${table} where account_id = account;`,
      `${table} lose more than the service chat`,
      erased,
    ),
    service(
      text,
      `delete from ${table} where ${column} = 777000;`,
      `${table} of other accounts lose 777000`,
      untouched,
    ),
  ]
})

const of = (name: string, still: string) => (text: string, replace: string, what: string, test: string) =>
  edits({ function: name, text, replace }, what, test, test === still ? undefined : still)

const learns = of('learn_names', 'a name does not end because an account is not shown the phone number')
const asks = of(
  'is_listed',
  'an entry by name stops a person who has the name in one account, in every account and by the number alone',
)
const still = 'a new entry ends nothing that is in flight'
const ends = of('end_suppressed', still)
const has = of('people_named', still)
const names = of('names_of', still)
const unread = of('unread_contacts_named', still)

const byName = 'an entry by name'
const secondName =
  'a name besides the shown username does not end because that one is seen, and ends once the platform denies it'
const unreadEntry = 'an entry by a name of a contact that is not read yet'
const newEntry = 'a new entry ends'
const unreadEnds = (which: string) =>
  `${newEntry} what waits for a contact of ${which} from before of whom no person is known, while some are not read`

/** What ends with the membership or the user of its maker. */
function departs(name: string, text: string, replace: string, what: string, test: string): Mutant {
  const departures = 'src/capabilities/users/departures.test.ts'
  return { what, patches: [], functions: [{ function: name, text, replace }], file: departures, test }
}
const ended = '200 ends keys, sessions, links that the member made or has, and logins that they began'
const stopped = '200 stops webhooks and campaigns that the caller does not take over, and says why'
const elsewhere =
  '200 leaves a member of another workspace signed in there, with their links and webhooks there'
const disabled = 'disabling a user ends their keys, whoever issued them, and their links and logins, for good'

const running = (name: string) => `src/capabilities/campaigns/running/${name}.test.ts`

/** Whom a recipient is, and what a member has written to them. */
const ties =
  (at: string, stillAt?: string) =>
  (name: string, text: string, replace: string, what: string, test: string): Mutant => ({
    ...{ what, patches: [], functions: [{ function: name, text, replace }], file: at, test },
    ...(stillAt !== undefined && stillAt !== test && { still: stillAt }),
  })
const onePerson =
  'a number is one person in its workspace and on its platform, and another one elsewhere; a group is none'
const persons = ties(file, 'a name on one platform ends no name on another')
const asked = (who: string) =>
  `a follow-up to a person whose names ${who} knows is not sent before the account has asked`
const known = ties(running('identities'))
const byHand = ties(
  running('hand-messages'),
  'stop_on_own_message a message from the phone of the same account ends the sequence',
)
const keys = ties(
  running('campaign-people'),
  'the person of a campaign is kept by a recipient whose message was sent, also when a follow-up is refused',
)
const dispatched = ties(running('dispatch'), 'a reply ends the sequence, emits one event, and counts')
const rowsOf = (columns: string) =>
  `select ${columns} from new_rows\n    except all\n    select ${columns} from old_rows`
const days = ties('src/capabilities/workspaces/zone-changes.test.ts')
const sameDay = 'the day in SQL is the day of the planner'
const givenBack =
  'the person of a campaign is given back when the first message is refused: the other name gets it'

export const databaseMutants: readonly Mutant[] = [
  persons(
    'person_of',
    'p.workspace_id = workspace and p.platform = a.platform and p.number = person_number',
    'p.workspace_id = workspace and p.number = person_number',
    'a number is the same person on another platform',
    onePerson,
  ),
  persons(
    'person_of',
    'p.workspace_id = workspace and p.platform = a.platform and p.number = person_number',
    'p.platform = a.platform and p.number = person_number',
    'a number is the same person in another workspace',
    onePerson,
  ),
  persons('person_of', 'person_number > 0 and ', '', 'a group is a person', onePerson),
  known(
    'knows_names',
    'n.person_id = person and n.account_id = account',
    'n.account_id = account',
    'an account that knows anybody knows everybody',
    asked('no account'),
  ),
  known(
    'knows_names',
    'n.person_id = person and n.account_id = account',
    'n.person_id = person',
    'what one account knows of a person is what another one knows',
    asked('another account'),
  ),
  byHand(
    'note_send_by_hand',
    'a.id = new.account_id and',
    'false and',
    'a send of a member is not noted',
    'stop_on_own_message a send of a member at the inbox of another account ends the sequence',
  ),
  byHand(
    'operations_by_hand',
    '(new.key_id IS NULL) AND ',
    '',
    'a send of a key is taken for one of a member',
    'stop_on_own_message a send of a key, one of an agent, a broadcast and a message of another campaign end nothing',
  ),
  byHand(
    'operations_by_hand',
    'AFTER INSERT OR UPDATE OF state ON',
    'AFTER INSERT ON',
    'a send of a member that is repeated is not noted',
    "while an operation to the chat is unknown a member's send that was released ends nothing, and the sequence once it is repeated",
  ),
  days(
    'workspace_day',
    'instant < timezone_from',
    'instant <= timezone_from',
    'a new zone holds a moment late',
    sameDay,
  ),
  days(
    'workspace_day',
    'case when instant < timezone_from then timezone_before else timezone end',
    'timezone',
    'a new zone holds at once',
    sameDay,
  ),
  days('workspace_day', ', day_floor)', ')', 'a day comes again after a change of the zone', sameDay),
  dispatched(
    'count_moved_recipients',
    'return null;\n  end if;',
    'null;\n  end if;',
    'a change that moves no recipient locks the row of its account',
    'a change that moves no recipient does not wait for the row of their account',
  ),
  dispatched(
    'count_moved_recipients',
    rowsOf('campaign_id, account_id, status, next_action_at'),
    rowsOf('campaign_id, account_id, status'),
    'a recipient that becomes due earlier moves nothing',
    'an account with no recipient due in a campaign is not delayed when a recipient becomes due earlier',
  ),
  ties(running('dispatch'))(
    'count_moved_recipients',
    rowsOf('campaign_id, account_id, status, next_action_at'),
    rowsOf('campaign_id, account_id, next_action_at'),
    'a recipient that ends moves nothing',
    'a sequence goes out message by message, keeps the gap, and completes',
  ),
  keys(
    'take_person',
    "(select k.kind from campaigns k where k.id = new.campaign_id) <> 'contacts'",
    'false',
    'a campaign of chats takes keys',
    'the person of a campaign of a campaign of chats may be in two accounts',
  ),
  keys(
    'take_person',
    "raise exception 'another recipient of the campaign is the same person' using errcode = 'unique_violation';",
    '',
    'a process of the release before writes to a person twice',
    'two names of one person that cross at once while a process of the release before crosses: the key decides, though neither has seen the other',
  ),
  keys(
    'give_person_back',
    't.person_id = old.person_id and t.recipient_id = old.id',
    'false',
    'a first message that was refused keeps its key',
    givenBack,
  ),
  ties('src/ledger/settle.test.ts', "the row's own attempt settles submitting: completed")(
    'guard_operations',
    "if old.state in ('submitting', 'ambiguous') and",
    "if old.state = 'submitting' and",
    'an unknown outcome is released without proof',
    'the database lets nothing but proof lead back what is ambiguous, whoever writes it',
  ),
  keys(
    'give_person_back',
    ' and t.recipient_id = old.id',
    '',
    'a recipient gives back what another one took',
    'the person of a campaign is not given back by another recipient who never had it',
  ),
  keys(
    'recipients_give_back',
    "new.status = ANY (ARRAY['submitting'::text, 'ambiguous'::text])",
    "new.status = 'submitting'::text",
    'a message of which nobody knows whether it went out gives its key back',
    'two names of one person that cross at once one after the other, while nobody knows whether the first message went out: the person is taken',
  ),
  keys(
    'recipients_take_person',
    "new.status = ANY (ARRAY['submitting'::text, 'ambiguous'::text])",
    "new.status = 'submitting'::text",
    'a message that is put back without its outcome takes no key',
    'the person of a campaign is taken again when a journal puts a message back whose outcome nobody knows',
  ),
  keys(
    'recipients_give_back',
    "(NOT ((new.step > 0) OR (new.status = ANY (ARRAY['submitting'::text, 'ambiguous'::text]))))",
    'true',
    'a message that was sent gives its key back',
    'the person of a campaign is kept by a recipient whose message was sent, also when a follow-up is refused',
  ),
  keys(
    'tie_recipients',
    "(w.step > 0 or w.status in ('submitting', 'ambiguous'))",
    'false',
    'whom a campaign of the release before wrote to is not taken',
    'the person of a campaign of a release that knew no people is found after the loop has read it',
  ),
  keys(
    'tie_recipients',
    'person_of(h.workspace_id, h.account_id, h.chat_id)',
    'null::uuid',
    'recipients of the release before are not tied',
    'the person of a campaign of a release that knew no people is found after the loop has read it',
  ),
  keys(
    'tie_recipient',
    'new.person_id := person_of(new.workspace_id, new.account_id, new.chat_id);',
    '',
    'a recipient that gets a chat is not tied to its person',
    'the person of a campaign is taken again when a journal puts the message back',
  ),
  learns(
    'n.platform = on_platform and n.person_id <> s.person_id and n.until is null',
    'false',
    'a name is still its former owner’s after another person took it',
    'a name ends for its former owner as soon as another person is seen with it',
  ),
  learns(
    'n.platform = on_platform and n.person_id <> s.person_id',
    'n.person_id <> s.person_id',
    'a name on one platform ends the same name on another',
    'a name on one platform ends no name on another',
  ),
  learns(
    'where n.workspace_id = workspace and n.kind = s.kind and n.value = s.value',
    'where n.kind = s.kind and n.value = s.value',
    'a name in one workspace ends the same name in another',
    'a name in one workspace ends no name in another',
  ),
  learns(
    "where t.kind = 'username' or t.value is not null",
    'where t.value is not null',
    'a person without a username keeps the former one',
    'a name ends once the person is seen with another, or with none',
  ),
  learns(
    "where t.kind = 'username' or t.value is not null",
    'where true',
    'a phone number that is not shown ends',
    'a name does not end because an account is not shown the phone number',
  ),
  learns(
    'when n.value is distinct from s.value then n.until is null',
    'when n.value is distinct from s.value then false',
    'a person who is seen with another name keeps the former one',
    'a name ends once the person is seen with another, or with none',
  ),
  learns(
    'nullif(lower(g.username), ',
    'nullif(g.username, ',
    'usernames are learned as written',
    'a name is the same in any letter case, and a phone number in any spelling',
  ),
  learns(
    'nullif(phone_digits(g.phone), ',
    'nullif(g.phone, ',
    'phone numbers are learned as written',
    'a name is the same in any letter case, and a phone number in any spelling',
  ),
  learns(
    'do update set last_seen_at = seen_at, until = null',
    'do update set last_seen_at = seen_at',
    'a name that was given up does not begin again',
    'a name begins again when the person is seen with it again',
  ),
  learns(
    'and n.until is null and n.last_seen_at >=',
    'and n.last_seen_at >=',
    'a name that was given up today does not begin again',
    'a name begins again when the person is seen with it again',
  ),
  learns(
    "where has and a.value <> ''",
    'where false',
    'the name that somebody was found by is not learned',
    'a name that the person was found by is theirs, though the platform does not show it',
  ),
  learns(
    'n.until is null and not n.second and not exists (',
    'n.until is null and not exists (',
    'a second username ends as soon as the first is seen',
    secondName,
  ),
  learns(
    "where not has and a.kind = 'username' and n.until is null",
    'where false',
    'a second username that the platform denies does not end',
    secondName,
  ),
  learns(
    "where not has and a.kind = 'username' and n.until is null",
    'where not has and n.until is null',
    'a phone number that is not shown when it is asked about ends',
    'a name that the platform denies ends, but not a phone number that it only does not show',
  ),
  learns(
    "n.until is null and n.last_seen_at >= seen_at - interval '1 day'",
    'false',
    'every sight of a name is written',
    'a name is written again only after a day',
  ),
  edits(
    {
      function: 'learn_changed_contacts',
      text: 'case when n.phone is distinct from o.phone then n.phone end',
      replace: 'n.phone',
    },
    'a contact that keeps an old phone number teaches it again',
    'a name does not end because a contact that keeps an old phone number gets another username',
    'a name ends once the person is seen with another, or with none',
  ),

  asks(
    'and (named.until is null or named.until >= s.created_at)',
    '',
    'an entry stops people who had given the name up before it',
    `${byName} does not stop a person who had given the name up before`,
  ),
  asks(
    'named.until is null or named.until >= s.created_at',
    'named.until is null',
    'a person on the list is written to after a rename',
    `${byName} stops everybody who had the name while it stood: the owner of then, and who took it`,
  ),
  asks(
    'else max(asked.until) end',
    'else min(asked.until) end',
    'the first account that saw a name end decides for all',
    `${byName} counts the last sight of a name that two accounts saw end at two times`,
  ),
  asks(
    'case when bool_or(asked.until is null) then null else max(asked.until) end',
    'max(asked.until)',
    'an account that saw a name end decides, though another sees it now',
    `${byName} stops a person who has the name again in one account, though another saw it end before the entry`,
  ),
  asks(
    'where n.person_id = who.id offset 0',
    'where n.person_id = who.id and n.account_id = account offset 0',
    'an account asks about the names that it saw itself',
    `${byName} stops a person who has the name in one account, in every account and by the number alone`,
  ),
  asks(
    'p.platform = on_platform and p.number = is_listed.number) as id',
    'p.number = is_listed.number limit 1) as id',
    'an entry stops the same number on another platform',
    `${byName} does not stop the person with the same number on another platform`,
  ),
  asks(
    'p.workspace_id = workspace and p.platform = on_platform and p.number = is_listed.number) as id',
    'p.platform = on_platform and p.number = is_listed.number limit 1) as id',
    'an entry is compared with the names that another workspace saw',
    `${byName} does not stop anybody in another workspace`,
  ),
  asks(
    'where n.workspace_id = workspace and n.kind = split_part',
    'where n.kind = split_part',
    'a name is asked about as its owner in another workspace',
    `${byName} does not stop anybody in another workspace`,
  ),
  asks(
    'is_listed.number is null and n.platform',
    'false and n.platform',
    'a name is not asked about as the person who has it',
    `${byName} stops a name of which another name of its present owner is listed, and not one that was passed on`,
  ),
  asks(
    'n.platform = on_platform and n.until is null',
    'n.platform = on_platform',
    'a name is asked about as everybody who ever had it',
    `${byName} stops a name of which another name of its present owner is listed, and not one that was passed on`,
  ),
  asks(
    'n.platform = on_platform and n.until is null',
    'n.until is null',
    'a name is asked about as its owner on another platform',
    `${byName} does not stop the person with the same number on another platform`,
  ),
  {
    what: 'contacts that are not read yet do not count',
    patches: [],
    functions: [
      {
        function: 'is_listed',
        text: 'and exists (select from people_backfill where done_at is null)',
        replace: 'and false',
      },
    ],
    file: 'src/capabilities/people/people.test.ts',
    test: 'names of contacts from before are read once, end no other name, and count from the start',
  },
  {
    what: 'contacts that are not read yet count in their own account only',
    patches: [],
    functions: [
      {
        function: 'is_listed',
        text: 'where a.workspace_id = workspace and a.platform = on_platform',
        replace: 'where a.id = account',
      },
    ],
    file: 'src/capabilities/people/people.test.ts',
    test: 'names of contacts from before are read once, end no other name, and count from the start',
  },
  asks(
    'and exists (select from people_backfill where done_at is null)',
    '',
    'a contact counts after all were read',
    `${unreadEntry} stops the person in every account of the workspace, until all are read`,
  ),
  asks(
    'where a.workspace_id = workspace and a.platform = on_platform',
    'where a.workspace_id = workspace',
    'contacts that are not read yet count on every platform',
    `${unreadEntry} does not stop the person with the same number on another platform, nor in another workspace`,
  ),
  asks(
    'where a.workspace_id = workspace and a.platform = on_platform',
    'where a.platform = on_platform',
    'contacts that are not read yet count in every workspace',
    `${unreadEntry} does not stop the person with the same number on another platform, nor in another workspace`,
  ),

  has(
    'n.kind = name_kind and n.value = name_value and n.until is null',
    'false',
    'a new entry ends only what waits under its own name',
    `${newEntry} what waits under the number of a person who is listed by name`,
  ),
  has(
    'n.kind = name_kind and n.value = name_value and n.until is null',
    'n.kind = name_kind and n.value = name_value',
    'a new entry ends what waits for a former owner of the name',
    `${newEntry} nothing of a person who has given the name up, nor under a name that they have given up`,
  ),
  names(
    'n.person_id = person and n.until is null',
    'n.person_id = person',
    'a new entry ends what waits under a name that was given up',
    `${newEntry} nothing of a person who has given the name up, nor under a name that they have given up`,
  ),
  has(
    'p.workspace_id = workspace and p.platform = a.platform',
    'false',
    'an entry by number ends nothing under the person’s names',
    `${newEntry} what waits under a name of a person who is listed by number`,
  ),
  {
    what: 'a new entry ends nothing of contacts that are not read yet',
    patches: [],
    functions: [
      {
        function: 'end_suppressed',
        text: 'unread_contacts_named(s.workspace_id, s.kind, s.value)',
        replace: "unread_contacts_named(s.workspace_id, '', s.value)",
      },
    ],
    file,
    test: unreadEnds('the same account'),
    still,
  },
  unread(
    'a.workspace_id = workspace and a.platform = seen_by.platform',
    'a.id = seen_by.id',
    'a new entry ends what waits for a contact that is not read yet in its own account only',
    unreadEnds('another account'),
  ),
  unread(
    'a.workspace_id = workspace and a.platform = seen_by.platform',
    'a.workspace_id = workspace',
    'a new entry ends what waits for the number of a contact that is not read yet on another platform',
    `${newEntry} nothing of a contact from before with the same number on another platform`,
  ),
  ...(['username', 'phone'] as const).flatMap((kind) => {
    const compared = kind === 'username' ? 'lower(c.username)' : 'phone_digits(c.phone)'
    const text = `${compared} = name_value
      and exists (select from people_backfill where done_at is null)`
    return [
      unread(
        text,
        `${compared} = name_value`,
        `a new entry ends what waits for a contact whose ${kind} has passed on`,
        `${newEntry} nothing of a contact whose ${kind} has passed on in another account since`,
      ),
      unread(
        text,
        `false`,
        `a new entry ends nothing of a contact that is not read yet, by ${kind}`,
        unreadEnds('the same account'),
      ),
    ]
  }),
  ends(
    'and a.platform = t.platform',
    '',
    'a new entry ends what waits for the same number on another platform',
    `${newEntry} nothing of the person with the same number on another platform`,
  ),
  ends(
    'a.workspace_id = s.workspace_id and s.number is not null',
    's.number is not null',
    'a new entry ends what waits for the same number in another workspace',
    `${newEntry} nothing of the person in another workspace`,
  ),
  ends(
    "where r.id = f.id and r.status in ('queued', 'waiting')",
    'where r.id = f.id',
    'a new entry ends a message in flight',
    `${newEntry} nothing that is in flight`,
  ),

  departs('end_with_maker', 'set active = false, ', 'set ', 'webhooks go on without their maker', stopped),
  departs(
    'end_with_maker',
    'workspace_id = coalesce(workspace, workspace_id) and active',
    'active',
    'leaving one workspace stops webhooks in another',
    elsewhere,
  ),
  departs('end_with_maker', 'l.made_by = maker and', 'false and', 'links stay that a member has seen', ended),
  departs(
    'end_with_maker',
    'workspace is null or exists',
    'true or exists',
    'leaving one workspace ends links into another',
    elsewhere,
  ),
  departs(
    'end_with_maker',
    'workspace is null or exists',
    'exists',
    'links stay that a disabled user has seen',
    disabled,
  ),
  departs('end_with_maker', 'or l.user_id = maker and', 'or false and', 'a member’s own link stays', ended),
  departs(
    'end_with_maker',
    'm.user_id = maker and m.ended_at is null and',
    'false and',
    'leaving one workspace ends the own link of a member of another',
    elsewhere,
  ),
  departs(
    'end_with_maker',
    'm.ended_at is null and workspace is not null',
    'm.ended_at is null',
    'the own link of a disabled user stays',
    disabled,
  ),
  departs(
    'end_with_maker',
    "and state not in ('done', 'failed')",
    'and false',
    'logins go on without the member who began them',
    ended,
  ),
  departs(
    'end_with_maker',
    "'user:' || maker and workspace_id = coalesce(workspace, workspace_id)",
    "'user:' || maker",
    'leaving one workspace cancels logins in another',
    elsewhere,
  ),
  departs(
    'end_with_membership',
    'set revoked_at = domain_now()',
    'set revoked_at = null',
    'sessions stay that open nothing any more',
    ended,
  ),
  departs(
    'end_with_membership',
    'not u.operator',
    'true',
    'an operator who leaves their last workspace is signed out',
    '200 leaves an operator signed in who loses their last workspace',
  ),
  departs(
    'end_with_membership',
    'm.user_id = new.user_id and m.ended_at is null',
    'false',
    'leaving one workspace signs out of another',
    elsewhere,
  ),
  departs(
    'end_with_user',
    'set revoked_at = domain_now()',
    'set revoked_at = null',
    'the keys of a user work again once they are enabled',
    disabled,
  ),
  departs(
    'end_with_user',
    "perform end_with_maker(new.id, null, 'maker_disabled');",
    '',
    'disabling a user stops nothing that they made',
    'disabling a user stops their webhooks for good, in every workspace',
  ),
  ...(
    [
      [
        'learn_names',
        'n.value = s.value\n      offset 0) n',
        'n.value = s.value) n',
        'learn_names, fifty people',
      ],
      ['learn_names', "SET enable_seqscan TO 'off'", '', 'learn_names, a new name'],
      ['end_suppressed', "SET enable_seqscan TO 'off'", '', 'end_suppressed, by number'],
    ] as const
  ).map(([name, text, replace, test]) => ({
    what: `a plan of ${name} reads every row: ${text.trim()} is missing`,
    patches: [],
    functions: [{ function: name, text, replace }],
    file: 'src/capabilities/people/plans.test.ts',
    test: `planned once for few ${test} reads the names of one person and a few rows besides`,
    still: 'planned once for few person_of reads the names of one person and a few rows besides',
  })),

  ...deletesOfServiceChat,
  service(
    'not exists (select from messages where account_id = account and chat_id = 777000)',
    'true',
    'messages of the service chat are kept where the chat is gone',
    `${erasing} is erased as well where it is not among the chats`,
  ),
  service(
    'not exists (select from chats where account_id = account and chat_id = 777000)',
    'true',
    'a service chat without messages is kept',
    `${erasing} is erased as well where it is not among the messages`,
  ),
  service(
    's.account_id = account and exists',
    'exists',
    'the search of other accounts is built again',
    untouched,
  ),
  service(
    ' and m.sent_at between s.oldest_at and s.newest_at',
    '',
    'the whole search of an account is built again',
    erased,
  ),
  service(
    'm.chat_id = 777000 and m.sent_at',
    'm.sent_at',
    'the search is built again for any message',
    erased,
  ),
  erases('erase_events_of_service_chat')(
    "e.data ->> 'chat_id' = 'platform:chat:777000' and e.data ->> 'account_id' = account",
    "e.data ->> 'chat_id' = 'platform:chat:777000'",
    'events of other accounts are erased',
    untouched,
  ),
  erases('tidy_account')(
    "and platform = 'telegram'",
    '',
    'the chat 777000 of the sandbox is erased',
    untouched,
  ),
  ...(
    [
      [
        'select platform_user_id as number from accounts where id = account\n    union ',
        'the account itself',
      ],
      ['select chat_id from chats where account_id = account\n    union ', 'the people of its chats'],
      ['select provider_id from contacts where account_id = account\n    union ', 'its contacts'],
      [
        'select sender_id from messages where account_id = account and chat_id < 0\n    union ',
        'the senders in its groups',
      ],
      [
        '\n    union select chat_id from campaign_recipients where account_id = account',
        'the chats of its campaigns',
      ],
    ] as const
  ).map(([text, whom]) =>
    strangers(
      text,
      text.startsWith('select platform_user_id') ? 'select null::bigint as number union ' : '',
      `an account forgets ${whom}`,
      erased,
    ),
  ),
  strangers(
    'r.person_id is not null and r.ended_at is null',
    'false',
    'an account forgets the people that campaigns write to',
    erased,
  ),
  strangers('and r.ended_at is null', '', 'an account keeps the people that campaigns wrote to', erased),
  strangers(
    'p.account_id = account and p.number',
    'p.number',
    'other accounts forget their people',
    untouched,
  ),
  strangers('and p.number > 0 and', 'and', 'an account forgets its groups', erased),
  strangers(
    'not exists (select from known k where k.number = p.number)',
    'false',
    'strangers are kept',
    erased,
  ),
]
