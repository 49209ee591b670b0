import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { tl } from '@mtcute/core'
import { afterAll, afterEach, describe, expect, test } from 'vitest'
import { apiKey, type Client, openStage, type Stage, until } from '../data-centre-fixture.ts'
import { askCentre } from '../sandbox-fixture.ts'

const root = mkdtempSync(join(tmpdir(), 'parley-data-centre-'))
afterAll(() => rmSync(root, { recursive: true }))

const stages: Stage[] = []
afterEach(async () => {
  for (const stage of stages.splice(0)) await stage.close()
})

const phone = '+9996620001'
const far = '+9996640001'

async function setScene(password?: string, data_dir?: string) {
  const stage = await openStage(data_dir === undefined ? {} : { data_dir })
  stages.push(stage)
  const ask = askCentre(stage.centre)
  const account = { account_id: 'acc_one', name: 'Sales desk', ...(password && { password }) }
  return { stage, world: stage.world, ask, account }
}

const sendCode = (phoneNumber: string) =>
  ({ _: 'auth.sendCode', phoneNumber, ...apiKey, settings: { _: 'codeSettings' } }) as const
const exportToken: tl.auth.RawExportLoginTokenRequest = {
  _: 'auth.exportLoginToken',
  ...apiKey,
  exceptIds: [],
}

async function codeHash(client: Client, phoneNumber: string): Promise<string> {
  const answer = await client.call(sendCode(phoneNumber))
  if (answer._ !== 'auth.sentCode') throw new Error(answer._)
  return answer.phoneCodeHash
}

async function signIn(client: Client, phoneNumber: string, phoneCode = '12345') {
  const phoneCodeHash = await codeHash(client, phoneNumber)
  return { _: 'auth.signIn', phoneNumber, phoneCodeHash, phoneCode } as const
}

async function checkPassword(client: Client, password: string) {
  const question = await client.call({ _: 'account.getPassword' })
  return {
    _: 'auth.checkPassword',
    password: await client.inner.computeSrpParams(question, password),
  } as const
}

describe('a login by code', () => {
  test('accepts 12345, refuses wrong codes, and asks unknown numbers to sign up', async () => {
    const { stage, ask, account } = await setScene()
    await ask('addAccount', { ...account, phone })
    const client = stage.client()
    expect(await client.error({ _: 'updates.getState' })).toBe('401 AUTH_KEY_UNREGISTERED')
    expect(await client.error(sendCode('x'))).toBe('400 PHONE_NUMBER_INVALID')
    expect(await client.error(await signIn(client, phone, '54321'))).toBe('400 PHONE_CODE_INVALID')
    expect(await client.error(await signIn(client, phone, ''))).toBe('400 PHONE_CODE_EMPTY')
    const late = { ...(await signIn(client, phone)), phoneCodeHash: 'another' }
    expect(await client.error(late)).toBe('400 PHONE_CODE_EXPIRED')
    const stranger = await client.call(await signIn(client, '+9996620002'))
    expect(stranger._).toBe('auth.authorizationSignUpRequired')
    expect(await client.call(await signIn(client, phone))).toMatchObject({
      user: { firstName: 'Sales desk' },
    })
    expect(await client.state()).toMatchObject({ pts: 1 })
    expect(await client.call({ _: 'account.getPassword' })).toMatchObject({ hasPassword: false })
  })

  test('asks for the two-step password, and accepts only the right one', async () => {
    const { stage, ask, account } = await setScene('correct horse')
    await ask('addAccount', { ...account, phone })
    const client = stage.client()
    expect(await client.error(await signIn(client, phone))).toBe('401 SESSION_PASSWORD_NEEDED')
    expect(await client.error({ _: 'updates.getState' })).toBe('401 AUTH_KEY_UNREGISTERED')
    expect(await client.error(await checkPassword(client, 'wrong'))).toBe('400 PASSWORD_HASH_INVALID')
    expect((await client.call(await checkPassword(client, 'correct horse')))._).toBe('auth.authorization')
    expect(await client.state()).toMatchObject({ pts: 1 })
  })

  test('moves to the second data centre with a number that belongs there', async () => {
    const { stage, ask, account } = await setScene()
    await ask('addAccount', { ...account, phone: far })
    const client = stage.client()
    expect((await client.call(await signIn(client, far)))._).toBe('auth.authorization')
    expect(client.storage.authKeys.get(4)).toHaveLength(256)
    await client.close()
    const next = stage.client(undefined, client.storage)
    expect(await next.state()).toMatchObject({ pts: 1 })
  })

  test('reaches its owner by each way of the number, and by the next when the client asks again', async () => {
    const { stage, ask, account } = await setScene()
    await ask('addAccount', { ...account, phone })
    const ways = ['email', 'sms', 'call', 'missed_call', 'flash_call', 'word', 'phrase', 'fragment']
    await ask('setCodes', { phone, ways, timeout_seconds: 5 })
    const client = stage.client()
    const kinds: string[] = []
    let sent = await client.call(sendCode(phone))
    for (;;) {
      if (sent._ !== 'auth.sentCode') throw new Error(sent._)
      const { type, nextType, timeout, phoneCodeHash } = sent
      kinds.push(type._.replace('auth.sentCodeType', ''))
      expect([nextType !== undefined, timeout]).toEqual(
        kinds.length < ways.length ? [true, 5] : [false, undefined],
      )
      const again = { _: 'auth.resendCode', phoneNumber: phone, phoneCodeHash } as const
      if (type._ === 'auth.sentCodeTypeFragmentSms') {
        expect(await client.error(again)).toBe('406 SEND_CODE_UNAVAILABLE')
        break
      }
      sent = await client.call(again)
      expect(await client.error(again)).toBe('400 PHONE_CODE_EXPIRED')
    }
    expect(kinds).toEqual([
      'EmailCode',
      'Sms',
      'Call',
      'MissedCall',
      'FlashCall',
      'SmsWord',
      'SmsPhrase',
      'FragmentSms',
    ])
  })

  test('accepts a code by e-mail only as that, a phrase with its spaces, and may ask for money first', async () => {
    const { stage, ask, account } = await setScene()
    await ask('addAccount', { ...account, phone })
    const client = stage.client()
    const begin = async (way: string) => {
      await ask('setCodes', { phone, ways: [way] })
      const { phoneCodeHash } = (await client.call(sendCode(phone))) as tl.auth.RawSentCode
      return { _: 'auth.signIn', phoneNumber: phone, phoneCodeHash } as const
    }
    const byEmail = await begin('email')
    expect(await client.error({ ...byEmail, phoneCode: '12345' })).toBe('400 PHONE_CODE_INVALID')
    const emailVerification = { _: 'emailVerificationCode', code: '12345' } as const
    expect((await client.call({ ...byEmail, emailVerification }))._).toBe('auth.authorization')
    const byPhrase = await begin('phrase')
    expect(await client.error({ ...byPhrase, phoneCode: 'sevenpelicanssleep' })).toBe(
      '400 PHONE_CODE_INVALID',
    )
    expect((await client.call({ ...byPhrase, phoneCode: 'seven pelicans sleep' }))._).toBe(
      'auth.authorization',
    )
    await ask('setCodes', { phone, ways: ['payment'] })
    expect((await client.call(sendCode(phone)))._).toBe('auth.sentCodePaymentRequired')
  })

  test('a password that changes in between is asked for again, and so is an answer to another question', async () => {
    const { stage, ask, account } = await setScene('correct horse')
    await ask('addAccount', { ...account, phone })
    const client = stage.client()
    await client.error(await signIn(client, phone))
    const answer = await checkPassword(client, 'correct horse')
    await ask('setPassword', { account_id: account.account_id, password: 'battery staple' })
    expect(await client.error(answer)).toBe('400 SRP_PASSWORD_CHANGED')
    expect(await client.error(answer)).toBe('400 SRP_ID_INVALID')
    const second = await checkPassword(client, 'battery staple')
    expect((await client.call(second))._).toBe('auth.authorization')
  })

  test('fails when a fault on login strikes', async () => {
    const { stage, world } = await setScene()
    const client = stage.client()
    world.addFault({ on: 'login', fault: 'refuse', error: 'PHONE_NUMBER_BANNED' })
    world.addFault({ on: 'login', fault: 'flood_wait', seconds: 80_000 })
    expect(await client.error(sendCode(phone))).toBe('400 PHONE_NUMBER_BANNED')
    expect(await client.error(sendCode(phone))).toBe('420 FLOOD_WAIT_80000')
    expect(() => world.addFault({ on: 'login', fault: 'freeze' })).toThrow('cannot happen on login')
  })
})

describe('a login by QR code', () => {
  test('waits until the account has scanned it', async () => {
    const { stage, ask, account } = await setScene()
    await ask('addAccount', { ...account, phone })
    await expect(ask('acceptLogin', { phone })).rejects.toMatchObject({ code: 'invalid_request' })
    const client = stage.client()
    expect((await client.call(exportToken))._).toBe('auth.loginToken')
    expect((await client.call(exportToken))._).toBe('auth.loginToken')
    await expect(ask('acceptLogin', { phone: far })).rejects.toMatchObject({ code: 'not_found' })
    expect(await ask('acceptLogin', { phone })).toEqual({ account_id: account.account_id })
    await until(() => client.pushed.length === 1)
    expect(client.pushed).toEqual([{ _: 'updateLoginToken' }])
    expect((await client.call(exportToken))._).toBe('auth.loginTokenSuccess')
    expect(await client.state()).toMatchObject({ pts: 1 })
  })

  test('also asks for the two-step password', async () => {
    const { stage, ask, account } = await setScene('correct horse')
    await ask('addAccount', { ...account, phone })
    const client = stage.client()
    await client.call(exportToken)
    await ask('acceptLogin', { phone })
    expect(await client.error(exportToken)).toBe('401 SESSION_PASSWORD_NEEDED')
    expect((await client.call(await checkPassword(client, 'correct horse')))._).toBe('auth.authorization')
  })

  test("moves to the account's data centre", async () => {
    const { stage, ask, account } = await setScene()
    await ask('addAccount', { ...account, phone: far })
    const client = stage.client()
    await client.call(exportToken)
    await ask('acceptLogin', { phone: far })
    const move = await client.call(exportToken)
    if (move._ !== 'auth.loginTokenMigrateTo') throw new Error(move._)
    expect(move.dcId).toBe(4)
    await client.inner.changePrimaryDc(move.dcId)
    const answer = await client.call({ _: 'auth.importLoginToken', token: move.token })
    expect(answer._).toBe('auth.loginTokenSuccess')
    expect(await client.state()).toMatchObject({ pts: 1 })
  })
})

describe('a session', () => {
  test('survives a restart of the data centre, and ends with the logout', async () => {
    const data_dir = join(root, 'kept')
    const { stage, ask, account } = await setScene(undefined, data_dir)
    await ask('addAccount', { ...account, phone })
    const client = stage.client()
    await client.call(await signIn(client, phone))
    await stages.pop()?.close()
    const { stage: again } = await setScene(undefined, data_dir)
    expect(again.centre.public_pem).toBe(stage.centre.public_pem)
    const next = again.client(undefined, client.storage)
    expect(await next.state()).toMatchObject({ pts: 1 })
    expect((await next.call({ _: 'auth.logOut' }))._).toBe('auth.loggedOut')
    expect(await next.error({ _: 'updates.getState' })).toBe('401 AUTH_KEY_UNREGISTERED')
  })

  test('is refused by name when it connects', async () => {
    const { stage, world, account } = await setScene()
    world.addAccount(account)
    const client = stage.client(account.account_id)
    world.addFault({ on: 'connect', fault: 'refuse', error: '406 AUTH_KEY_DUPLICATED' })
    expect(await client.error({ _: 'updates.getState' })).toBe('406 AUTH_KEY_DUPLICATED')
    expect(await client.state()).toMatchObject({ pts: 1 })
  })
})
