/** Edits of what decides which erasures a restored database learns again. */
import type { Mutant } from './mutants.ts'

const of =
  (file: string, still: string) =>
  (marker: string, test: string, replace: string): Mutant => ({
    ...{ what: marker, patches: [{ marker, replace }], file, test, still },
  })

const known = of(
  'src/cli/known-erasures.test.ts',
  'a restore of a backup adds the given list to that of the disk',
)

const list = of(
  'src/ledger/erasure-list.test.ts',
  'erasures are appended, by several processes at once, and each is read once',
)

const arriving = of('src/worker/erased.test.ts', 'an account that is added later does not bring them back')

export const restoredMutants: readonly Mutant[] = [
  known(
    'guard: an operator confirms that erasures are lost',
    'a restore of a backup is refused where there is no list, unless the operator confirms that people come back',
    'if (false) {',
  ),
  known(
    'guard: the list of another instance knows nothing',
    'a restore of a backup is refused with the empty list that a service has begun on a new disk',
    'return true',
  ),
  known(
    'guard: a disk that was set back knows nothing',
    'a restore of a backup is refused with the list of a disk that was set back to before the backup',
    'return true',
  ),
  known(
    'guard: the disk of another database knows nothing',
    'a mark after a restore with other tools is refused with the disk of another database, and with none',
    'if (!disk) return false',
  ),
  known(
    'guard: only a disk that is newer than the database knows',
    'a mark after a restore with other tools is refused where the disk may have been put back with the database',
    'return true',
  ),
  arriving(
    'guard: what is restored for an erased person leaves its message',
    'what a journal restores after the erasure leaves its message, also if the platform shows it without its random id',
    'where has_content',
  ),
  list(
    'guard: a new list stays in its directory',
    'resolves once the lines are flushed, and then the directory that names the file',
    '',
  ),
]
