/** An account at a data centre on loopback, and a person who sends it files. It closes with the test. */
import { expect, onTestFinished } from 'vitest'
import type { FilePlace, Session } from '../../src/platform/port.ts'
import { makeFile } from '../../src/platform/sandbox/control-files.ts'
import { writeMessage } from '../../src/platform/sandbox/person-acts.ts'
import { openWorld } from '../../src/platform/sandbox/world.ts'
import { heldAccount, MemoryAccountStore } from './account-store.ts'
import { readAll } from './conformance-downloads.ts'
import { expectAccepted, Recorder } from './conformance-recorder.ts'
import { telegramAt, trust } from './data-centre-fixture.ts'
import { openDataCentre } from './mtproto/data-centre.ts'

export async function openMediaScene() {
  const world = openWorld({ data_dir: null })
  const centre = await openDataCentre(world, { port: 0, data_dir: null })
  trust(centre.public_pem)
  const account_id = 'acc_media'
  world.addAccount({ account_id, name: 'Support' })
  const { person_id } = world.addPerson({ name: 'Mara Lind', username: 'mara_lind' })
  const key = Buffer.from(centre.makeKey(account_id)).toString('base64')
  const store = new MemoryAccountStore(Buffer.from(JSON.stringify({ version: 1, dc_id: 2, key, places: {} })))
  const lease = { held: true }
  const account = { ...heldAccount({ account_id, name: 'Support', store }), held: () => lease.held }
  const sessions: Session[] = []
  const unhandled: unknown[] = []
  const note = (error: unknown) => void unhandled.push(error)
  process.on('unhandledRejection', note)
  onTestFinished(async () => {
    for (const session of sessions) await session.close()
    // No socket is left, whatever happened.
    await expect.poll(() => centre.connections(), { timeout: 20_000 }).toEqual([])
    await centre.close()
    await world.close()
    process.off('unhandledRejection', note)
    expect(unhandled).toEqual([])
  })

  async function connect(recorder = new Recorder()) {
    const { position } = recorder
    const session = expectAccepted(await telegramAt(centre.port).connect({ ...account, position }, recorder))
    sessions.push(session)
    return { session, recorder }
  }

  function sendFile(given: Parameters<typeof makeFile>[0]): FilePlace {
    const id = writeMessage(world, { account_id, person_id, text: '', file: makeFile(given) })
    return { chat_id: `${person_id}`, message_id: String(id), index: 0 }
  }

  /** The hash of the whole file, or the outcome that the download ended with. */
  async function fetch(session: Session, place: FilePlace): Promise<unknown> {
    const outcome = await session.download(place)
    if (outcome.kind !== 'accepted') return outcome
    const { sha256, end } = await readAll(outcome.value)
    return end ?? sha256
  }

  const fault = (name: Parameters<typeof world.addFault>[0]) => void world.addFault(name)
  const keysOf = (dc: number) => [...centre.store.state.auth_keys.values()].filter((each) => each.dc === dc)
  return { world, centre, account_id, person_id, store, lease, connect, sendFile, fetch, fault, keysOf }
}
