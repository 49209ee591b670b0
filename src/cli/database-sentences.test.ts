import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { runVerb } from '../../test/harness/operator.ts'
import { ApiError, Refusal } from '../lib/errors.ts'
import { explainDatabase, explainEnvironment } from './database-sentences.ts'
import { runCommand, type VerbModule } from './program.ts'

function failure(code: string, message = 'as the server says it'): Error {
  return Object.assign(new pg.DatabaseError(message, message.length, 'error'), { code })
}

/** What a person reads when a verb fails with this. */
async function shown(error: Error): Promise<string> {
  const failing: VerbModule = {
    words: { fail: 'fails' },
    load: async () => (program) => {
      const word = program.commands.find((command) => command.name() === 'fail')
      word?.action(() => Promise.reject(error))
    },
  }
  const written: string[] = []
  const write = process.stderr.write
  process.stderr.write = ((text: string) => written.push(text) > 0) as typeof write
  try {
    expect(await runCommand(() => Promise.reject(new Error('not loaded')), [failing], ['fail'])).toBe(1)
  } finally {
    process.stderr.write = write
  }
  return written.join('')
}

describe('a fault of the environment is no bug of Parley', () => {
  const faults: readonly (readonly [code: string, says: RegExp])[] = [
    ['08006', /ended the connection.*Run the command again/],
    ['40P01', /Other transactions were in the way.*Nothing was changed; run the command again/],
    ['40001', /Other transactions were in the way/],
    ['42P05', /pooler that works by transaction.*pool_mode = session/],
    ['26000', /pooler that works by transaction/],
    ['53100', /The disk is full.*Free disk space/],
    ['53200', /run out of a resource/],
    ['53300', /allows no more connections.*PARLEY_POOL_SIZE/],
    ['57014', /cancelled a statement/],
    ['57P01', /ended the connection/],
    ['57P03', /does not accept one/],
    ['ENOSPC', /The disk is full/],
    ['EROFS', /The disk is read-only/],
  ]

  test('at the command line', async () => {
    for (const [code, says] of faults) {
      const text = await shown(failure(code))
      expect([code, text]).toEqual([code, expect.stringMatching(says)])
      expect(text).not.toContain('bug in Parley')
      expect(text.trim().split('\n')).toHaveLength(1)
    }
  })

  test('while the database is opened', () => {
    expect(explainDatabase(failure('42P05'))).toMatchObject({
      message: expect.stringMatching(/pooler that works by transaction/),
    })
    const full = new ApiError('store_unavailable', { cause: failure('53100') })
    expect(explainDatabase(full)).toMatchObject({ message: expect.stringMatching(/its disk is full/) })
  })

  test('but a statement that is wrong is one', async () => {
    for (const code of ['42601', '42P01', '23505', '22023']) {
      expect(explainEnvironment(failure(code))).toBeUndefined()
      expect(await shown(failure(code))).toContain('This is a bug in Parley')
    }
    expect(await shown(new TypeError('x is not a function'))).toContain('This is a bug in Parley')
  })
})

test('a certificate has its own cure', () => {
  const said = (message: string) => {
    const error = explainDatabase(new ApiError('store_unavailable', { cause: new Error(message) }))
    expect(error).toBeInstanceOf(Refusal)
    return (error as Refusal).message
  }
  expect(said('certificate has expired')).toMatch(/has expired\. Renew it on the server\.$/)
  expect(said('self-signed certificate in certificate chain')).toMatch(/is self-signed.*sslrootcert=FILE/)
  expect(said('unable to verify the first certificate')).toMatch(/cannot be verified.*sslrootcert=FILE/)
  expect(said("Hostname/IP does not match certificate's altnames")).toMatch(/is for another host name/)
})

test('a verb on a server that is not there says so', async () => {
  const { code, stderr } = await runVerb(['workspace', 'list'], {
    DATABASE_URL: 'postgres://parley@127.0.0.1:1/parley',
    PARLEY_SECRET: 'x'.repeat(40),
  })
  expect([code, stderr]).toEqual([1, expect.stringMatching(/does not respond: nothing listens/)])
})
