/** Deletes the files that are no longer kept. */
import type { Loop } from '../../loop.ts'
import { forgetMedia } from './media.ts'

export const loops = (): readonly Loop[] => [
  {
    name: 'forget-media',
    restMs: 60_000,
    step: async ({ db }) => (await forgetMedia(db)) > 0,
  },
]
