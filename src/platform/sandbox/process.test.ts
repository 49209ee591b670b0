import { mkdtempSync, rmSync } from 'node:fs'
import { connect as dial } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { heldAccount } from '../../../test/platform/account-store.ts'
import { expectAccepted, Recorder, within } from '../../../test/platform/conformance-recorder.ts'
import { otherSide, type SandboxProcess, startProcess } from '../../../test/platform/sandbox-fixture.ts'
import type { Submission } from '../port.ts'
import { sandboxPlatform } from './adapter.ts'
import { socketLink } from './socket-link.ts'

const root = mkdtempSync(join(tmpdir(), 'parley-process-'))
afterAll(() => rmSync(root, { recursive: true }))

let directories = 0
let data_dir = ''
let sandbox: SandboxProcess
beforeEach(async () => {
  data_dir = join(root, String(++directories))
  sandbox = await startProcess(data_dir)
})
afterEach(() => sandbox.kill('SIGKILL'))

const account = heldAccount({ account_id: 'acc_one', name: 'Sales desk' })

async function setScene(recorder = new Recorder()) {
  const platform = sandboxPlatform(socketLink(sandbox.address))
  const { position } = recorder
  const session = expectAccepted(await platform.connect({ ...account, position }, recorder))
  return { platform, session, recorder, others: otherSide(sandbox.ask) }
}

describe('a sandbox process that is killed', () => {
  test('keeps everything it accepted, and updates continue where they ended', async () => {
    const { session, recorder, others } = await setScene()
    const person_id = await others.addPerson({ name: 'Mara' })
    const { account_id } = account
    const accepted: string[] = []
    const sendings = Array.from({ length: 200 }, async (_, n) => {
      const message: Submission = { chat_id: `${person_id}`, text: `${n}`, file: null, random_id: String(n) }
      const outcome = await session.send(message)
      if (outcome.kind === 'accepted') accepted.push(message.text)
      if (accepted.length === 60) await sandbox.kill('SIGKILL')
    })
    await within(10_000, Promise.all(sendings))
    expect(await within(2000, recorder.closedReason)).toMatchObject({ status: 'lost' })
    const offline = await sandboxPlatform(socketLink(sandbox.address)).connect(
      { ...account, position: null },
      new Recorder(),
    )
    expect(offline).toMatchObject({ kind: 'not_written' })

    sandbox = await startProcess(data_dir)
    const next = recorder.continued()
    const again = await setScene(next)
    const sent = await again.others.sentTexts(account_id)
    expect(accepted.filter((text) => !sent.includes(text))).toEqual([])
    expect(new Set(sent).size).toBe(sent.length)
    await next.until(() => recorder.sentIds.length + next.sentIds.length >= sent.length)
    expect([...recorder.sentIds, ...next.sentIds]).toEqual(sent)
  })

  test('carries out afterwards what people were about to do', async () => {
    const { session } = await setScene()
    const answer = await sandbox.ask('addPerson', { name: 'Mara', behaviour: 'replies', delay_seconds: 0.5 })
    const { person_id } = answer as { person_id: number }
    expectAccepted(await session.send({ chat_id: `${person_id}`, text: 'Hello', file: null, random_id: '1' }))
    await sandbox.kill('SIGKILL')
    sandbox = await startProcess(data_dir)
    const { recorder } = await setScene(new Recorder('0'))
    await recorder.until(() => recorder.texts.length === 1)
    expect(recorder.updatesTaken.map(({ kind }) => kind)).toEqual([
      'message',
      'sent',
      'read_by_them',
      'message',
    ])
  })
})

describe('the link', () => {
  test('survives garbage, and closes only the socket that sent it', async () => {
    const { session } = await setScene()
    const { port } = new URL(sandbox.address)
    const upgrade =
      'GET /sandbox/link HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: parley-sandbox\r\n\r\n'
    const hello = '{"id":1,"connect":{"account_id":"acc_two","name":"Two","position":null}}\n'
    const garbage = [
      'GET /elsewhere HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: parley-sandbox\r\n\r\n',
      'GET /sandbox/link HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
      `${upgrade}not json\n`,
      `${upgrade}null\n`,
      `${upgrade}{"id":1,"call":"send","params":{}}\n`,
      `${upgrade}{"id":1,"call":"ping","params":{}}\n`,
      `${upgrade}${hello}${hello}`,
      `${upgrade}${hello}{"id":2,"call":"history","params":{"chat_id":"x","before":null,"limit":1}}\n`,
      `${upgrade}${hello}{"id":2,"call":"toString","params":{}}\n`,
      `${upgrade}${'x'.repeat(2 * 1024 * 1024)}`,
    ]
    for (const bytes of garbage) {
      const socket = dial(Number(port), '127.0.0.1')
      socket.on('error', () => {})
      socket.resume()
      socket.write(bytes)
      await within(2000, new Promise((closed) => socket.once('close', closed)))
    }
    expect(await session.ping()).toBe(true)
  })

  test('carries a file of 25 MiB, and refuses one that is shorter than announced', async () => {
    const { session } = await setScene()
    const size = 25 * 1024 * 1024
    const chunks = async function* () {
      for (let n = 0; n < 100; n++) yield new Uint8Array(size / 100)
    }
    const file = { file_name: 'film.mp4', media_type: 'video/mp4', size, chunks: chunks() }
    expectAccepted(await within(60_000, session.upload(file)))
    const short = { ...file, size: size + 1, chunks: chunks() }
    expect(await session.upload(short)).toMatchObject({ kind: 'refused' })
  })

  test('serves 100 accounts at the same time, and a frozen one delays no other', async () => {
    const platform = sandboxPlatform(socketLink(sandbox.address))
    const others = otherSide(sandbox.ask)
    const person_id = await others.addPerson({ name: 'Mara' })
    const recorders = Array.from({ length: 100 }, () => new Recorder())
    const sessions = await Promise.all(
      recorders.map(async (recorder, n) =>
        expectAccepted(
          await platform.connect(heldAccount({ account_id: `acc_${n}`, name: `Account ${n}` }), recorder),
        ),
      ),
    )
    await others.fault({ on: 'updates', fault: 'freeze', seconds: 60, account_id: 'acc_0' })
    await Promise.all(
      recorders.map((_, n) => others.write({ account_id: `acc_${n}`, person_id, text: `for ${n}` })),
    )
    await Promise.all(recorders.slice(1).map((recorder) => recorder.until(() => recorder.texts.length === 1)))
    expect(recorders.map(({ texts }) => texts)).toEqual(
      recorders.map((_, n) => (n === 0 ? [] : [`for ${n}`])),
    )
    await Promise.all(sessions.map((session) => session.close()))
  })
})
