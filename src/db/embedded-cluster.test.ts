/**
 * What a first start leaves in the data directory when it is killed, when two run at once, and when the server is
 * killed.
 */
import { mkdir, readdir, readFile, realpath, rm, symlink, writeFile } from 'node:fs/promises'
import { join, relative } from 'node:path'
import { afterAll, expect, test } from 'vitest'
import { endProcesses, hangMs, serversOf, spawnParley, until } from '../../test/harness/process.ts'
import { makeScratch } from '../../test/harness/scratch.ts'
import { openEmbedded } from './embedded.ts'
import { layOut, linkLibraries, runAlone } from './embedded-cluster.ts'

const directories: string[] = []
afterAll(async () => {
  await endProcesses()
  for (const directory of directories) await rm(directory, { recursive: true, force: true, maxRetries: 10 })
})

async function makeDirectory(): Promise<string> {
  const directory = await makeScratch('parley-cluster-')
  directories.push(directory)
  return directory
}

/** Drafts of clusters and of secrets. */
async function drafts(directory: string): Promise<string[]> {
  return (await readdir(directory)).filter((name) => /\.[0-9a-f]{8}(\.|$)/.test(name))
}

test('the next start removes what a kill during initdb leaves, including a password', async () => {
  const directory = await makeDirectory()
  const killed = spawnParley(['gate', 'enable', 'rest', '--data-dir', directory])
  const left = await until('the password is written for initdb', hangMs, async () =>
    (await drafts(directory)).find((name) => name.endsWith('.password')),
  )
  killed.signal('SIGKILL')
  await killed.exit()
  const password = await readFile(join(directory, 'postgres.password'), 'utf8')
  expect(await readFile(join(directory, left), 'utf8')).toMatch(/^\S{40,}$/)
  // A kill a moment earlier leaves the draft of a secret, and of a cluster that nothing fills any more.
  await writeFile(join(directory, 'postgres.password.0123abcd'), password)
  await writeFile(join(directory, 'secret.0123abcd'), 'a secret')
  await mkdir(join(directory, 'postgres.0123abcd', 'base'), { recursive: true })
  await writeFile(join(directory, 'postgres.conf.mine'), 'not ours')

  await layOut(directory)
  expect(await drafts(directory)).toEqual([])
  expect(await readdir(directory)).toEqual(
    expect.arrayContaining(['postgres', 'postgres.password', 'postgres.conf.mine']),
  )
})

test('PostgreSQL uses the same directory when its path is relative', async () => {
  const directory = await makeDirectory()
  expect(await layOut(relative(process.cwd(), directory))).toMatchObject({ data_dir: directory })
  expect(await readFile(join(directory, 'postgres', 'PG_VERSION'), 'utf8')).toMatch(/^\d+/)
})

test('libraries without the links of npm’s script are found under all their names, also after an upgrade', async () => {
  const directory = await makeDirectory()
  const makeNative = async (version: string) => {
    const native = join(directory, version)
    await mkdir(join(native, 'lib'), { recursive: true })
    await writeFile(join(native, 'lib', `libone.so.${version}`), version)
    const links = [{ source: `native/lib/libone.so.${version}`, target: 'native/lib/libone.so.1' }]
    await writeFile(join(native, 'pg-symlinks.json'), JSON.stringify(links))
    return native
  }
  for (const version of ['1.1', '1.2', '1.2']) {
    const native = await makeNative(version)
    const [linked = '', shipped] = (await linkLibraries(directory, native)).split(':')
    expect(shipped).toBe(join(native, 'lib'))
    expect(await realpath(join(linked, 'libone.so.1'))).toBe(join(native, 'lib', `libone.so.${version}`))
    expect(await readdir(linked)).toEqual(['libone.so.1'])
  }
  const native = await makeNative('1.3')
  await symlink('libone.so.1.3', join(native, 'lib', 'libone.so.1'))
  expect(await linkLibraries(directory, native)).toBe(join(native, 'lib'))
})

test('two first starts at once both continue with the cluster that won', async () => {
  const directory = await makeDirectory()
  const [one, other] = await Promise.all([layOut(directory), layOut(directory)])
  expect(one).toEqual(other)
  expect(await drafts(directory)).toEqual([])
  expect(await readFile(join(directory, 'postgres', 'PG_VERSION'), 'utf8')).toMatch(/^\d+/)
})

test('refuses a cluster that is removed in the meantime, whatever was still to be sent to its server', async () => {
  const directory = await makeDirectory()
  const more = Array.from({ length: 100_000 }, () => 'select 1')
  const alone = runAlone(await layOut(directory), join(directory, 'removed'), more)
  await expect(alone).rejects.toThrow('could not be set up')
})

test('also stops a server that is being restarted when its last user leaves', async () => {
  const [directory = ''] = directories
  const embedded = await openEmbedded({ data_dir: directory, claim: 'service' })
  const [first] = await serversOf(directory)
  process.kill(first ?? 0, 'SIGKILL')
  await until('another one is started', hangMs, async () => {
    const servers = await serversOf(directory)
    return servers.some((pid) => pid !== first)
  })
  await embedded.close()
  expect((await serversOf(directory)).filter((pid) => pid !== first)).toEqual([])
})

test('many processes that come and go at once each find a server, and the last leaves none', async () => {
  const directory = await makeDirectory()
  const come = async () => (await openEmbedded({ data_dir: directory, claim: 'command' })).close()
  for (let round = 0; round < 5; round++) {
    await Promise.all(Array.from({ length: 6 }, come))
    expect(await serversOf(directory)).toEqual([])
  }
})

test('refuses a cluster on which no server starts, with a sentence, after a few attempts', async () => {
  const directory = await makeDirectory()
  await layOut(directory)
  await writeFile(join(directory, 'postgres', 'PG_VERSION'), '9\n')
  const opened = openEmbedded({ data_dir: directory, claim: 'command' })
  await expect(opened).rejects.toThrow('The embedded PostgreSQL does not start')
})
