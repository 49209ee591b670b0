import { randomBytes } from 'node:crypto'
import { connect } from 'node:net'
import { createAesIgeForMessage } from '@mtcute/core/utils.js'
import Long from 'long'
import { expect, test } from 'vitest'
import { Crypto } from '../../../src/platform/mtcute-crypto.ts'
import { within } from '../conformance-recorder.ts'
import { apiKey, type Stage, setScene } from '../data-centre-fixture.ts'
import { askCentre } from '../sandbox-fixture.ts'
import { read, write } from './tl.ts'

const crypto = new Crypto()
crypto.initialize()

function words(...values: number[]): Buffer {
  return Buffer.from(Uint32Array.from(values).buffer)
}

/** The first message of the data centre's answer to a ping with this id. */
function ping({ centre }: Stage, account_id: string, id: Buffer) {
  const key = centre.makeKey(account_id)
  const key_id = crypto.sha1(key).subarray(-8)
  const body = write({ _: 'mt_ping', pingId: Long.fromNumber(5) })
  const salt = Buffer.from(centre.saltOf(Buffer.from(key_id).toString('hex')).toBytesLE())
  const head = Buffer.concat([salt, randomBytes(8), id, words(1, body.length)])
  const plain = Buffer.concat([
    head,
    body,
    randomBytes(12 + ((16 - ((head.length + body.length + 12) % 16)) % 16)),
  ])
  const messageKey = crypto.sha256(Buffer.concat([key.subarray(88, 120), plain])).subarray(8, 24)
  const packet = createAesIgeForMessage(crypto, key, messageKey, true).encrypt(plain)
  const socket = connect(centre.port, '127.0.0.1').on('error', () => {})
  socket.write(
    Buffer.concat([Buffer.from('eeeeeeee', 'hex'), words(24 + packet.length), key_id, messageKey, packet]),
  )
  const frame = new Promise<Buffer>((arrived) => socket.once('data', arrived))
  return within(10_000, frame)
    .then((bytes) => {
      const encrypted = bytes.subarray(4, 4 + bytes.readUInt32LE(0))
      const aes = createAesIgeForMessage(crypto, key, encrypted.subarray(8, 24), false)
      return read(aes.decrypt(encrypted.subarray(24)).slice(), 32)
    })
    .finally(() => socket.destroy())
}

const now = () => Math.floor(Date.now() / 1000)

test.each([
  ['more than 30 s ahead', 60, 17],
  ['more than 300 s behind', -330, 16],
])('a message id %s is refused', async (_, off, errorCode) => {
  const { stage, account_id } = await setScene()
  const refused = { _: 'mt_bad_msg_notification', errorCode }
  expect(await ping(stage, account_id, words(0, now() + off))).toMatchObject(refused)
  // The same for a client whose clock is right, at servers whose clock is moved.
  await askCentre(stage.centre)('setServerClock', { ahead_seconds: -off })
  expect(await ping(stage, account_id, words(0, now()))).toMatchObject(refused)
})

test.each([20, -270])(
  'a message id %i s off is accepted; one that is not divisible by four is not',
  async (off) => {
    const { stage, account_id } = await setScene()
    const accepted = await ping(stage, account_id, words(0, now() + off))
    expect(accepted._).toBe('mt_new_session_created')
    const odd = await ping(stage, account_id, words(1, now() + off))
    expect(odd).toMatchObject({ _: 'mt_bad_msg_notification', errorCode: 18 })
  },
)

test('a QR code expires by the clock of the servers', async () => {
  const { stage } = await setScene()
  stage.centre.clock.set(-20)
  const token = await stage.client().call({ _: 'auth.exportLoginToken', ...apiKey, exceptIds: [] })
  if (token._ !== 'auth.loginToken') throw new Error(token._)
  expect(token.expires - now()).toBeLessThanOrEqual(10)
})
