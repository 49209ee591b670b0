/** What every adapter must do, whichever platform is behind it. Run by each adapter's own test. */
import { afterAll, beforeAll, describe } from 'vitest'
import { downloadsConform } from './conformance-downloads.ts'
import { readingConform } from './conformance-reading.ts'
import { sendingConform } from './conformance-sending.ts'
import { sessionsConform } from './conformance-sessions.ts'
import { type Fixture, Stage } from './conformance-stage.ts'

export function conformance(name: string, makeFixture: () => Promise<Fixture>): void {
  describe(name, () => {
    let stage: Stage
    beforeAll(async () => {
      stage = new Stage(await makeFixture())
    })
    afterAll(() => stage.close())

    sessionsConform(() => stage)
    sendingConform(() => stage)
    readingConform(() => stage)
    downloadsConform(() => stage)
  })
}
