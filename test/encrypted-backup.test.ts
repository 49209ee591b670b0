/**
 * Encrypted backups, and backups around a rotation of the secret, as an operator makes and restores them. What each command
 * printed, logged and left behind is searched at the end.
 */
import { existsSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { generateX25519Identity, identityToRecipient } from 'age-encryption'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Secrets, shortId, storedPurposes } from '../src/lib/secrets.ts'
import { type Patch, patchEnv } from './faults/patch.ts'
import { runVerb } from './harness/operator.ts'
import { type Exit, endProcesses, hangMs, serversOf, spawnParley, until } from './harness/process.ts'
import { makeScratch } from './harness/scratch.ts'
import { mountSmallDisk } from './harness/small-disk.ts'

const passphrase = 'canary of a passphrase'
const wrong = 'canary of another passphrase'
const proxyPassword = 'canary-of-a-proxy'
const question = /^(Passphrase of the backup|Proxy): \n/
/** In the processes that this test starts too. */
const mutant: readonly Patch[] = JSON.parse(process.env.TEST_MUTANT ?? '[]')

const disk = await mountSmallDisk(1)
let home: string
let source: string
let identity: string
let recipient: string
/** What every command and process printed. */
const printed: string[] = []

const at = (name: string) => join(home, name)
const nameOf = (secret: string) => shortId(new Secrets(secret).id)
const secretIn = (data_dir: string, name = 'secret') => readFile(join(data_dir, name), 'utf8')

async function parley(args: readonly string[], input?: string, env = {}): Promise<Exit> {
  const done = await runVerb(args, env, input)
  printed.push(done.stdout, done.stderr)
  return done
}

async function json<T = Record<string, unknown>>(
  args: readonly string[],
  input?: string,
  env = {},
): Promise<T> {
  const { code, stdout, stderr } = await parley([...args, '--json'], input, env)
  expect([args.join(' '), code, stderr.replace(question, '')]).toEqual([args.join(' '), 0, ''])
  return JSON.parse(stdout) as T
}

/** The sentence of a refusal that wrote nothing. */
async function refused(args: readonly string[], input?: string, env = {}): Promise<string> {
  const { code, stdout, stderr } = await parley(args, input, env)
  expect([code, stdout]).toEqual([1, ''])
  expect(stderr).not.toContain('    at ')
  return stderr.replace(question, '').trim()
}

interface Shown {
  readonly in_use: string
  readonly rotating_from: string | null
  readonly sealed: readonly { total: number; old: number; lost: number }[]
}

/** Which secrets a data directory uses, and how many values it has that none of them opens. */
async function shown(data_dir: string, env = {}) {
  const { in_use, rotating_from, sealed } = await json<Shown>(
    ['secret', 'show', '--data-dir', data_dir],
    undefined,
    env,
  )
  const sum = (which: 'total' | 'old' | 'lost') => sealed.reduce((total, each) => total + each[which], 0)
  return { in_use, rotating_from, total: sum('total'), old: sum('old'), lost: sum('lost') }
}

beforeAll(async () => {
  home = await makeScratch('parley-encrypted-')
  source = at('source')
  identity = await generateX25519Identity()
  recipient = await identityToRecipient(identity)
  const { id } = await json<{ id: string }>(['workspace', 'create', 'Acme', '--data-dir', source])
  const account = await json<{ id: string }>([
    ...['account', 'create', '--workspace', id, '--platform', 'sandbox'],
    ...['--name', 'Sales', '--data-dir', source],
  ])
  const proxy = `socks5://name:${proxyPassword}@proxy.example:1080`
  await json(['account', 'set', account.id, '--proxy', '-', '--data-dir', source], `${proxy}\n`)
  await json(['backup', at('base'), '--data-dir', source])
  // As age-keygen writes it.
  await writeFile(at('identity'), `# created: 2027-01-31\n# public key: ${recipient}\n${identity}\n`, {
    mode: 0o600,
  })
})
afterAll(async () => {
  await endProcesses()
  for (const pid of await serversOf(home)) process.kill(pid, 'SIGKILL')
  await until('every server is gone', 30_000, async () => (await serversOf(home)).length === 0)
  await rm(home, { recursive: true, force: true })
  await disk?.remove()
})

const restore = (file: string, target: string, ...more: readonly string[]) => [
  ...['restore', at(file), '--without-erasures', '--data-dir', at(target)],
  ...more,
]

/** A copy of the source that is about to be rotated. */
async function prepared(name: string) {
  const data_dir = at(name)
  await json(restore('base', name))
  await json(['secret', 'prepare', '--data-dir', data_dir])
  return { data_dir, before: await secretIn(data_dir, 'secret.old'), after: await secretIn(data_dir) }
}

/** Begins a rotation and is killed. */
async function beginRotation(data_dir: string, env = {}): Promise<void> {
  const kill = { marker: 'crash point 25a', insert: "process.kill(process.pid, 'SIGKILL')" }
  const killed = spawnParley(['secret', 'rotate', '--data-dir', data_dir], { ...env, ...patchEnv([kill]) })
  expect((await killed.exit()).code).toBe(null)
  printed.push(killed.stdout(), killed.stderr())
}

describe('parley backup --encrypt', () => {
  test('reads the passphrase from standard input, and only it restores the file', async () => {
    const made = await json(
      ['backup', at('locked'), '--encrypt', '--data-dir', source],
      `${passphrase}\nmore\n`,
    )
    expect(made).toMatchObject({ encrypted: true })
    const bytes = await readFile(at('locked'))
    expect(bytes.toString('latin1', 0, 21)).toBe('age-encryption.org/v1')
    for (const plain of ['parley-backup', await secretIn(source)]) expect(bytes.includes(plain)).toBe(false)

    expect(await refused(restore('locked', 'never'), `${wrong}\n`)).toBe(
      `This passphrase or key does not open the backup ${at('locked')}. Nothing was restored.`,
    )
    expect(await refused(restore('locked', 'never', '--identity', at('identity')))).toContain(
      'does not open the backup',
    )
    await writeFile(at('cut'), bytes.subarray(0, -1))
    expect(await refused(restore('cut', 'never'), `${passphrase}\n`)).toContain('truncated or changed')
    expect(existsSync(at('never'))).toBe(false)

    expect(await json(restore('locked', 'unlocked'), `${passphrase}\n`)).toMatchObject({ dispatch: false })
    expect(await secretIn(at('unlocked'))).toBe(await secretIn(source))
    const restored = await shown(at('unlocked'))
    expect(restored).toEqual(await shown(source))
    expect(restored).toMatchObject({ total: storedPurposes.length + 1, lost: 0 })
  })

  test('says where a passphrase comes from if standard input has none', async () => {
    const sentence = expect.stringMatching(
      /^Standard input ended without a passphrase\. Type it at a terminal, pass it as one line/,
    )
    expect(await refused(['backup', at('none'), '--encrypt', '--data-dir', source], '')).toEqual(sentence)
    await json(['backup', at('asked'), '--recipient', recipient, '--data-dir', source])
    expect(await refused(restore('asked', 'never'), '')).toEqual(sentence)
    expect(await refused(['backup', at('none'), '--encrypt', '--data-dir', source], 'canary\n')).toContain(
      'at least 12 characters',
    )
    expect([existsSync(at('none')), existsSync(at('never'))]).toEqual([false, false])
  })
})

describe('parley backup --recipient', () => {
  test('needs no secret to make a backup, and the private key to restore it', async () => {
    const other = await identityToRecipient(await generateX25519Identity())
    const both = ['--recipient', other, '--recipient', recipient]
    expect(await json(['backup', at('sent'), ...both, '--data-dir', source])).toMatchObject({
      encrypted: true,
    })
    expect((await readFile(at('sent'))).includes('parley-backup')).toBe(false)
    expect(await refused(restore('sent', 'never'), `${passphrase}\n`)).toContain('does not open the backup')
    await writeFile(at('stranger'), await generateX25519Identity(), { mode: 0o600 })
    for (const [file, sentence] of [
      ['stranger', 'does not open the backup'],
      ['nowhere', `The file ${at('nowhere')} cannot be read (ENOENT).`],
      ['sent', 'no private key'],
    ] as const) {
      expect(await refused(restore('sent', 'never', '--identity', at(file)))).toContain(sentence)
    }
    expect(existsSync(at('never'))).toBe(false)
    await json(restore('sent', 'received', '--identity', at('identity')))
    expect(await shown(at('received'))).toEqual(await shown(source))
  })

  test('refuses a private key, both ways at once, and what is no key, without repeating it', async () => {
    const backup = (...more: readonly string[]) =>
      refused(['backup', at('none'), ...more, '--data-dir', source])
    expect(await backup('--recipient', recipient, '--encrypt')).toContain('not both')
    for (const key of [identity, 'age1nonsense']) {
      const sentence = await backup('--recipient', key)
      expect(sentence).toContain('no public key of age')
      expect(sentence).not.toContain(key)
    }
    expect(existsSync(at('none'))).toBe(false)
  })
})

describe('a backup made', () => {
  test('before a rotation needs the old secret, and its restore names it', async () => {
    const [before, after] = [await secretIn(source), 'a secret that is newer than the backup, and long']
    await mkdir(at('later'))
    await writeFile(join(at('later'), 'secret'), after, { mode: 0o600 })
    const sentence = await refused(restore('base', 'later'))
    expect(sentence).toContain(`needs the secret ${nameOf(before)}`)
    expect(sentence).toContain(`not the secret that the backup was created with, but ${nameOf(after)}`)
    // The directory knows the old secret too.
    await writeFile(join(at('later'), 'secret.old'), before, { mode: 0o600 })
    await json(restore('base', 'later'))
    const restored = await shown(at('later'))
    expect(restored).toMatchObject({ in_use: nameOf(before), rotating_from: null, old: 0, lost: 0 })
    expect(await json(['secret', 'rotate', '--data-dir', at('later')])).toMatchObject({
      rotated: true,
      lost: 0,
    })
    expect(await shown(at('later'))).toEqual({ ...restored, in_use: nameOf(after) })
    // An empty directory gets the secret from the file.
    await json(restore('base', 'earlier'))
    expect(await secretIn(at('earlier'))).toBe(before)
    expect(await shown(at('earlier'))).toEqual(restored)
  })

  test('just as a rotation begins has the secrets of its snapshot', async () => {
    const { data_dir, before, after } = await prepared('racing')
    const go = at('go')
    const wait = `{
      const { existsSync, writeFileSync } = await import('node:fs')
      writeFileSync('${at('waits')}', '')
      while (!existsSync('${go}')) await new Promise((done) => setTimeout(done, 20))
    }`
    const backup = spawnParley(
      ['backup', at('raced'), '--data-dir', data_dir],
      patchEnv([...mutant, { marker: 'crash point 26', insert: wait }]),
    )
    await until('the snapshot is taken next', hangMs, () => existsSync(at('waits')))
    await beginRotation(data_dir)
    await writeFile(go, '')
    expect(await backup.exit()).toMatchObject({ code: 0 })
    printed.push(backup.stdout(), backup.stderr())
    await json(restore('raced', 'raced-target'))
    expect(await secretIn(at('raced-target'), 'secret.old')).toBe(before)
    expect(await shown(at('raced-target'))).toMatchObject({
      in_use: nameOf(after),
      rotating_from: nameOf(before),
      lost: 0,
    })
  })

  test('in the middle of a rotation needs both, and the restored rotation goes on', async () => {
    const { data_dir, before, after } = await prepared('rotating')
    await beginRotation(data_dir)
    await json(['backup', at('middle'), '--recipient', recipient, '--data-dir', data_dir])
    const withKey = ['--identity', at('identity')]
    for (const [directory, secret, lacks] of [
      ['only-new', after, before],
      ['only-old', before, after],
    ] as const) {
      await mkdir(at(directory))
      await writeFile(join(at(directory), 'secret'), secret, { mode: 0o600 })
      expect(await refused(restore('middle', directory, ...withKey))).toContain(
        `needs the secret ${nameOf(lacks)}`,
      )
      expect(await readdir(at(directory))).toEqual(['secret'])
    }
    // A file of another secret would stay, and the restored instance would lack its own.
    await mkdir(at('mixed'))
    await writeFile(join(at('mixed'), 'secret.old'), 'x'.repeat(43), { mode: 0o600 })
    expect(await refused(restore('middle', 'mixed', ...withKey))).toContain(
      `Move ${join(at('mixed'), 'secret.old')} away`,
    )
    await json(restore('middle', 'halfway', ...withKey))
    expect([await secretIn(at('halfway')), await secretIn(at('halfway'), 'secret.old')]).toEqual([
      after,
      before,
    ])
    const restored = await shown(at('halfway'))
    expect(restored).toMatchObject({ in_use: nameOf(after), rotating_from: nameOf(before), lost: 0 })
    expect(restored.old).toBeGreaterThan(0)
    expect(await json(['secret', 'rotate', '--data-dir', at('halfway')])).toMatchObject({ rotated: true })
    expect(await shown(at('halfway'))).toEqual({ ...restored, rotating_from: null, old: 0 })
    expect(existsSync(join(at('halfway'), 'secret.old'))).toBe(false)
  })

  test('with secrets from the environment names each that it lacks', async () => {
    const [one, two] = ['canary one of the environment, long', 'canary two of the environment, long'] as const
    const [first, both] = [{ PARLEY_SECRET: one }, { PARLEY_SECRET: two, PARLEY_SECRET_OLD: one }]
    await json(['workspace', 'create', 'Acme', '--data-dir', at('env')], undefined, first)
    await json(['backup', at('env-before'), '--data-dir', at('env')], undefined, first)
    await beginRotation(at('env'), both)
    await json(['backup', at('env-middle'), '--data-dir', at('env')], undefined, both)
    for (const [file, given, lacks] of [
      ['env-before', { PARLEY_SECRET: two }, one],
      ['env-middle', { PARLEY_SECRET: two }, one],
      ['env-middle', first, two],
    ] as const) {
      const sentence = await refused(restore(file, 'never'), undefined, given)
      expect(sentence).toContain(`needs the secret ${nameOf(lacks)}`)
      expect(sentence).toContain('Set it as PARLEY_SECRET or as PARLEY_SECRET_OLD')
    }
    expect(await refused(restore('env-middle', 'never'))).toContain(
      `needs the secret ${nameOf(two)} and the secret before it, ${nameOf(one)}: it was created with PARLEY_SECRET`,
    )
    expect(existsSync(at('never'))).toBe(false)
    await json(restore('env-before', 'env-earlier'), undefined, both)
    expect(await shown(at('env-earlier'), both)).toMatchObject({ in_use: nameOf(one), lost: 0 })
    await json(restore('env-middle', 'env-halfway'), undefined, both)
    expect(await shown(at('env-halfway'), both)).toMatchObject({
      in_use: nameOf(two),
      rotating_from: nameOf(one),
      lost: 0,
    })
  })
})

test.skipIf(!disk)(
  'a full disk ends a backup and a new secret with a sentence, and leaves both as they were',
  async () => {
    const path = disk?.path ?? ''
    await writeFile(join(path, 'secret'), await secretIn(source), { mode: 0o600 })
    await disk?.fill()
    const backup = ['backup', join(path, 'full'), '--recipient', recipient, '--data-dir', source]
    expect(await refused(backup)).toContain('could not be written (ENOSPC)')
    expect(await refused(['secret', 'prepare', '--data-dir', path])).toContain('disk is full')
    expect((await readdir(path)).sort()).toEqual(['filler', 'secret'])
    await disk?.empty()
    expect(await secretIn(path)).toBe(await secretIn(source))
    expect(await json(['secret', 'prepare', '--data-dir', path])).toMatchObject({ prepared: true })
    expect(await secretIn(path, 'secret.old')).toBe(await secretIn(source))
  },
)

test('a rotation of a running service, doctor, journals, logs and data show no secret and no passphrase', async () => {
  const { data_dir, before, after } = await prepared('running')
  const start = ['start', '--port', '0', '--data-dir', data_dir]
  const service = spawnParley(start, { PARLEY_LOG_LEVEL: 'debug' })
  await service.ready()
  await until('every connection of the service has its name', hangMs, async () => {
    const { code, stderr } = await parley(['secret', 'rotate', '--data-dir', data_dir])
    if (code !== 0) expect(stderr).toContain('one is just starting')
    return code === 0
  })
  const doctor = await parley(['doctor', '--data-dir', data_dir])
  expect(doctor.stdout).toMatch(/secret/)
  expect(await shown(data_dir)).toMatchObject({ in_use: nameOf(after), rotating_from: null, old: 0, lost: 0 })
  await json(['backup', at('after'), '--encrypt', '--data-dir', data_dir], `${passphrase}\n`)
  await json(['audit', 'list', '--data-dir', data_dir])
  service.signal('SIGTERM')
  const ended = await service.exit()
  expect(ended.code).toBe(0)
  printed.push(ended.stdout, ended.stderr)
  const secrets = [before, after, passphrase, wrong, 'x'.repeat(43), identity, proxyPassword]
  const canaries = [...secrets, 'of the environment, long']
  const text = printed.join('\n')
  expect(canaries.filter((canary) => text.includes(canary))).toEqual([])
  // What has them: the files of secrets and the plain backups.
  const has = new Set(['secret', 'secret.old', 'base', 'raced', 'identity', 'stranger'])
  const found: string[] = []
  for (const entry of await readdir(home, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile() || has.has(entry.name)) continue
    const file = join(entry.parentPath, entry.name)
    const bytes = await readFile(file)
    if (canaries.some((canary) => bytes.includes(canary))) found.push(file)
  }
  expect(found).toEqual([])
  expect(text).toContain(nameOf(after))
  expect((await readdir(join(data_dir, 'ledger'))).length).toBeGreaterThan(0)
})
