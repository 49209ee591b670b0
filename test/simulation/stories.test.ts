/** Stories of campaigns under seeds (`story.ts`). How many: `run.ts` says. */
import { afterAll, expect, test } from 'vitest'
import { type CampaignPlace, openCampaigns } from '../harness/campaigns.ts'
import { tellStory } from './story.ts'

/** Accounts of earlier stories stay connected, so now and then everything begins anew. */
const storiesEach = 10
/** Below this many stories a state may be missed by chance. */
const enough = 50
const mustReach = [
  'recipient completed',
  'recipient replied',
  'recipient failed',
  'recipient ambiguous',
  'recipient cancelled',
  'recipient suppressed',
  'operation refused',
  'operation ambiguous',
  'reconciled',
  'taken up again',
]

const { SIMULATION_SEED: only, SIMULATION_SEEDS: count = '5' } = process.env
const seeds = only === undefined ? Array.from({ length: Number(count) }, (_, n) => n + 1) : [Number(only)]
const reached: Record<string, number> = {}
let place: CampaignPlace | undefined
let told = 0
let sent = 0
afterAll(() => place?.close())

test.each(seeds)(
  'seed %i',
  async (seed) => {
    if (told++ % storiesEach === 0) {
      await place?.close()
      place = await openCampaigns()
    }
    if (!place) return
    const story = await tellStory(place, seed)
    sent += story.sent
    for (const [what, times] of Object.entries(story.reached)) reached[what] = (reached[what] ?? 0) + times
    if (only !== undefined) process.stdout.write(`${story.acts.join('\n')}\n`)
    expect(story.violations, `seed ${seed}`).toEqual([])
  },
  300_000,
)

test('rare states are reached', () => {
  process.stdout.write(`${JSON.stringify({ stories: told, sent, ...reached })}\n`)
  expect(told < enough ? [] : mustReach.filter((what) => !reached[what])).toEqual([])
})
