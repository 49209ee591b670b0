/** Edits of what erases people, and of what keeps them from coming back. */
import type { Mutant } from './mutants.ts'

const of =
  (file: string, still: string) =>
  (marker: string, test: string, replace: string): Mutant => ({
    ...{ what: marker, patches: [{ marker, replace }], file, test, still },
  })

const job = of('src/capabilities/erasing/erasing.test.ts', '404 for a person of another workspace')
const closed =
  'an erasure 404 and 403: their chat counts as not in the account, and nothing is sent to them by any name'
const goesOn =
  'an erasure goes on where a killed worker left it: another one finishes, and no batch counts before its commit'

const arriving = of('src/worker/erased.test.ts', 'an account that is added later does not bring them back')
const returned = 'an update with which they write again is stored, and nothing before it'
const hidden =
  'an update of what came before they wrote again stores nothing: messages, edits, reads, counts, names'
const inGroup =
  'an update of a group leaves out what they wrote there and what they are called; the others stay'
const synced = 'history, dialogs and the address book leave them out'

const guarding = of(
  'src/ledger/restore-guard.test.ts',
  'at the start operations cross when the database is the one this disk knows',
)
const list = of(
  'src/ledger/erasure-list.test.ts',
  'erasures are appended, by several processes at once, and each is read once',
)

const asked = of(
  'src/capabilities/erasing/routes.test.ts',
  'GET /people/{person_id}/erase 200 with what goes and what stays, and it changes nothing',
)
const inLedger = of(
  'src/capabilities/erasing/erasing-operations.test.ts',
  'what is queued ends as released, and what is queued for others stays',
)

const whileStoring = 'what is being stored while the request commits'
const waitedFor = `${whileStoring} is waited for: the erasure begins once it is stored, and clears it`
const returnedMeanwhile = `${whileStoring} is cleared also where they have written again since; that stays`
const writtenAgain =
  'what they write again before the job begins stays, with its chat, its events and what is sent to them since; what was before goes'
const racing = (still: string) => of('src/capabilities/erasing/erasing-races.test.ts', still)
const inNotes = of(
  'src/capabilities/notes/notes.test.ts',
  'POST /chats/{chat_id}/notes 201 for an account that is not READY: a note reaches no platform',
)

export const erasingMutants: readonly Mutant[] = [
  job('guard: tombstones are asked about', closed, 'const names = known'),
  job('guard: an import asks about tombstones', closed, 'const names = given'),
  job('guard: an erased person is on the list', closed, ''),
  racing(returnedMeanwhile)(
    'guard: recipients that came late are erased',
    'a campaign that was being created while the request committed keeps no name of theirs',
    '',
  ),
  of(
    'src/capabilities/campaigns/running/crossing.test.ts',
    'a message crosses with its operation, its recipient and the use of its day',
  )(
    'guard: no campaign writes to a person who is being erased',
    'a message does not cross to a person who is being erased, also where they may be contacted again',
    'where false',
  ),
  // Where it fails, the tests after it have no worker.
  { ...job('guard: an erasure is on the disk before it begins', goesOn, ''), still: closed },
  guarding(
    'guard: erasures are repeated before anything is sent',
    'at the start erasures are repeated in the database where it is an older copy: first of all',
    '',
  ),
  guarding(
    'guard: erasures are repeated at every start',
    'at the start erasures are repeated in the database where it looks as before',
    '',
  ),
  job(
    'guard: an erasure waits for the search',
    'an erasure waits until the search has taken their words out of its lists',
    'return done',
  ),
  job('guard: an erasure runs only as it was shown', '409 for a preview that is out of date', ''),
  {
    ...job('guard: only people of the workspace are erased', '404 for a person of another workspace', ''),
    still: '409 for a preview that is out of date',
  },
  job(
    'guard: others whom an erased entry stops stay stopped',
    'an erasure keeps whom an entry by their name stops besides, and keeps other people',
    'where false',
  ),
  arriving('guard: updates of erased people are not stored', hidden, 'const updates = all'),
  arriving('guard: what came before they wrote again', returned, 'return from === null'),
  arriving(
    'guard: history is not written again',
    'an update of history is not written again, however late it arrives',
    'return !is_sender',
  ),
  arriving('guard: what they wrote in groups', inGroup, 'return false'),
  arriving(
    'guard: our messages to erased people are witnesses',
    'an update of a message of ours leaves its id and its random id, without text',
    '',
  ),
  arriving('guard: the past of erased people is not stored', synced, 'return past'),
  arriving('guard: dialogs of erased people are not stored', synced, 'return [...chats]'),
  arriving('guard: contacts who were erased are not stored', synced, 'return people'),
  arriving(
    'guard: what settles after an erasure has no text',
    'what settles after the erasure is stored without its text',
    '',
  ),
  arriving(
    'guard: peers of erased people have no names',
    'names are not learned, and what an adapter keeps of them has none',
    'select p.account_id, p.chat_id, case when false',
  ),
  {
    ...{ what: 'a tombstone refuses whoever has the name by now', patches: [] },
    functions: [
      { function: 'is_listed', text: 'o.until is null and p.number <> t.number', replace: 'false' },
    ],
    ...{ file: 'src/capabilities/erasing/erasing.test.ts', still: '404 for a person of another workspace' },
    test: 'an erasure a name that somebody else has by now does not refuse them',
  },
  asked(
    'guard: one erasure of a person at a time',
    'POST /people/{person_id}/erase 409 erasure_in_progress until it is done, then it can be asked for again',
    '',
  ),
  asked(
    'guard: chats of erased people are not in the account',
    'POST /people/{person_id}/erase from the answer on their chat is not in the account: 404, also before a worker has begun',
    '',
  ),
  ...(
    [
      ['guard: no list shows an erased person', ''],
      ['guard: search does not show erased people', '...(await answer(page, searched, words)),'],
    ] as const
  ).map(([marker, replace]) =>
    asked(
      marker,
      'POST /people/{person_id}/erase from the answer on no list has them: chats, contacts, search; also before a worker has begun',
      replace,
    ),
  ),
  ...['guard: every erasure begins before another goes on', 'guard: workspaces take turns in erasing'].map(
    (marker) =>
      racing(returnedMeanwhile)(
        marker,
        'several erasures each begin before any goes on, and then the workspaces take turns',
        '',
      ),
  ),
  inLedger(
    'guard: no message crosses to an erased person',
    'what is queued while the erasure begins does not cross',
    '',
  ),
  inLedger(
    'guard: what has crossed settles first',
    'what has crossed is waited for, and cleared once it has settled',
    '',
  ),
  racing(returnedMeanwhile)('guard: an erasure waits for what is being stored', waitedFor, ''),
  racing(waitedFor)(
    'guard: all from before they wrote again is cleared',
    returnedMeanwhile,
    'and m.id <= e.last_id',
  ),
  ...(
    [
      [
        'guard: what they write again before the job begins stays',
        'await eraseShown(tx, account_ids, number)',
      ],
      ['guard: events of what they write again stay', 'false) and false))'],
      ['guard: approvals since they wrote again stay', 'where false))'],
      ['guard: operations since they wrote again stay', 'false and exists ('],
    ] as const
  ).map(([marker, replace]) => racing(returnedMeanwhile)(marker, writtenAgain, replace)),
  inNotes(
    'guard: an answer keeps no text of a note',
    'POST /chats/{chat_id}/notes 200 to a repeat under the same key, without the text: only the note has it, so it goes with the note',
    'return { status: 201, body: { note } }',
  ),
  inNotes(
    'guard: an older process still stores texts in answers',
    'answers that earlier releases stored stay while a process of release 0.3 runs, which stores more of them',
    '',
  ),
  list(
    'guard: a list that cannot be read is not missing',
    'a list that cannot be read is not missing',
    'return undefined',
  ),
]
