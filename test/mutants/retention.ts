/** Edits of what clears texts and names, and of what decides when. */
import type { Mutant } from './mutants.ts'

const operations = 'src/ledger/clearing.test.ts'
const messages = 'src/capabilities/messages/clearing.test.ts'
const recipients = 'src/capabilities/campaigns/recipient-names.test.ts'
const notes = 'src/capabilities/notes/notes.test.ts'

const of = (file: string, still?: string) => (marker: string, test: string, replace: string) => ({
  ...{ what: marker, file, test, patches: [{ marker, replace }] },
  ...(still && { still }),
})

const cleared = of(
  operations,
  'clearing an operation its file goes, unless another operation is still to send it',
)

export const retentionMutants: readonly Mutant[] = [
  cleared(
    'guard: what is still to be sent keeps its text',
    'clearing an operation what is queued or in flight keeps its text; what ran again is not cleared any more',
    '',
  ),
  cleared(
    'guard: a cleared operation can be proven',
    'clearing an operation an ambiguous one can be proven afterwards, of every kind that is found in history',
    'orNull.parse(row)',
  ),
  {
    what: 'what ran again stays marked as cleared',
    patches: [],
    functions: [{ function: 'guard_operations', text: 'new.cleared_at := null;', replace: '' }],
    file: operations,
    test: 'clearing an operation what is queued or in flight keeps its text; what ran again is not cleared any more',
  },
  of(recipients)(
    'guard: reports need no text',
    'an ended campaign keeps its figures, its places and its proofs without a name and without a text',
    'return { cleared: true }',
  ),
  of(recipients)(
    'guard: who is still to be written to keeps their name',
    'a recipient who is still to be written to keeps their name, and no recipient gets another one',
    '',
  ),
  ...(
    [
      ["new.contact not like 'cleared:%' or ", ''],
      [" or old.status in ('queued', 'submitting', 'waiting')", ''],
    ] as const
  ).map(([text, replace]) => ({
    what: `a recipient's name changes without ${text}`,
    patches: [],
    functions: [{ function: 'guard_recipients', text, replace }],
    file: recipients,
    test: 'a recipient who is still to be written to keeps their name, and no recipient gets another one',
  })),
  of(notes)(
    'guard: a cleared note is not shown',
    'clearing notes the text goes and the timeline shows none; the row stays, and its author may still delete it',
    '',
  ),
  of(messages, 'clearing messages what the platform shows of them later is not stored')(
    'guard: words of cleared messages go',
    'clearing messages texts, files and words go; the row, its counts and the place of its chat stay',
    'const all = force',
  ),
  of(messages)(
    'guard: what was cleared meanwhile is forgotten too',
    'clearing messages what is cleared while an account is settled is forgotten too',
    '',
  ),
]
