/**
 * PostgreSQL goes back in time while workers send: it is stopped immediately, its files are replaced with a snapshot taken shortly
 * before, and it is started again. Sometimes the workers' disks go back with it, so that only the platform and no journal knows
 * what was sent in between; otherwise the workers keep running and remember.
 */
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Member } from './member.ts'
import type { Plant } from './plant.ts'
import { copyTree } from './postgres.ts'
import type { Random } from './random.ts'
import type { Strikes } from './strikes.ts'

/** Workers raise the restore counter every two seconds: a younger snapshot differs only in what was written since. */
const ages = { young: { least: 0.2, most: 1.8 }, old: { least: 2.5, most: 8 } } as const

export interface RollbackPlan {
  readonly age_ms: number
  /** Whether the workers' disks go back as well. */
  readonly journals: boolean
}

/** Alternates young and old snapshots, with journals in every second pair. The seed decides where it begins. */
export function planRollbacks(random: Random, count: number): RollbackPlan[] {
  const first = random.whole(4)
  return Array.from({ length: count }, (_, n) => {
    const turn = first + n
    const { least, most } = turn % 2 === 0 ? ages.young : ages.old
    return { age_ms: random.between(least, most) * 1000, journals: turn % 4 === 1 || turn % 4 === 2 }
  })
}

interface Snapshot {
  /**
   * Restores the snapshot. `still` runs while the server is gone, `back` once the older one answers. Workers that kept running
   * reach it at the same moment; `raise` starts those whose disks went back.
   */
  goBack(hooks: { still(): Promise<void>; back(): Promise<void> }): Promise<void>
  raise(): Promise<void>
}

export async function takeSnapshot(
  plant: Plant,
  strikes: Strikes,
  { journals }: RollbackPlan,
): Promise<Snapshot> {
  const { postgres, directory } = plant
  const copy = join(directory, 'snapshot')
  const works = journals ? plant.works : []
  const copyOf = ({ name }: Member) => `${copy}-${name.split('.')[0]}`
  // Wait until no worker is starting: its disk is replaced, and no process may use it meanwhile.
  if (journals) await strikes.calm()
  const pids = works.filter((member) => member.alive).map(({ pid }) => pid)
  await postgres.snapshot(copy, pids, async () => {
    for (const member of works) await copyTree(member.data_dir, copyOf(member))
  })
  return {
    async goBack({ still, back }) {
      await Promise.all(works.map((member) => member.alive && member.kill()))
      await postgres.halt()
      await still()
      await postgres.restore(copy)
      for (const member of works) {
        await rm(member.data_dir, { recursive: true })
        await copyTree(copyOf(member), member.data_dir)
      }
      for (const path of [copy, ...works.map(copyOf)]) await rm(path, { recursive: true })
      await postgres.untilUp('plant')
      await back()
      if (journals) await plant.expireLeases()
    },
    async raise() {
      await Promise.all(works.map((member) => strikes.raise(member)))
    },
  }
}
