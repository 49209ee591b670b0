/**
 * The guards of people: without each of them some story writes to somebody whom it must not write to, or leaves a recipient without an
 * end. The edits are those of `../mutants/mutants.ts`, by their names.
 */
import { type Mutant, mutants } from '../mutants/mutants.ts'

const names: readonly string[] = [
  // Suppressed means the person.
  'a person on the list is written to after a rename',
  'an account asks about the names that it saw itself',
  'guard: suppression list is read under its lock',
  'guard: who is on the list and has no chat ends',
  // Who a recipient is, and once for each person.
  'a recipient that gets a chat is not tied to its person',
  'guard: a look up ties at once',
  'guard: a name that is another person',
  'guard: a campaign writes to a person once',
  'a message that was sent gives its key back',
  'a first message that was refused keeps its key',
  // A name is believed for hours.
  'guard: a name is believed for an hour',
  'guard: a name is asked about again',
  // A reply is the person's.
  'guard: a reply ends what waits',
  'guard: a reply to another account',
  'guard: what was released is not sent after a reply',
  // By hand.
  'a send of a member is not noted',
  'a send of a key is taken for one of a member',
  'a send of a member that is repeated is not noted',
  'guard: only who asked for it',
  'guard: only who was written to before',
  'guard: a message by hand while ours is in flight',
  'guard: a message in flight is decided later',
  'guard: an operation in flight may have sent it',
  'guard: a message of an operation',
  'guard: a queued send of a member is not decided',
  'guard: a follow_up waits for the decision',
  'guard: an undecided message at the boundary',
  // Who was erased stays erased.
  'guard: an import asks about tombstones',
  'guard: dialogs of erased people are not stored',
  'guard: the past of erased people is not stored',
]

/** The edit that leaves each guard out, or those whose name contains a text. */
export function guardsNamed(part: string): Mutant[] {
  return names
    .filter((name) => name.includes(part))
    .map((name) => {
      const [found] = mutants.filter(({ what }) => what === name)
      if (!found) throw new Error(`No mutant is called ${JSON.stringify(name)}.`)
      return found
    })
}
