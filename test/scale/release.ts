/** The code of an older commit in a directory of its own, for `--from`. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { repository } from '../faults/markers.ts'

const run = promisify(execFile)

export interface Release {
  readonly directory: string
  readonly version: string
  remove(): Promise<void>
}

export async function checkOut(commit: string): Promise<Release> {
  const directory = await mkdtemp(join(tmpdir(), 'parley-release-'))
  const remove = () => rm(directory, { recursive: true, force: true })
  try {
    const archive = join(directory, 'release.tar')
    await run('git', ['archive', `--output=${archive}`, commit], { cwd: repository })
    await run('tar', ['-xf', archive, '-C', directory])
    await rm(archive)
    if (await canShareModules(directory)) {
      await symlink(join(repository, 'node_modules'), join(directory, 'node_modules'))
      // `npm ci` would have built the pages.
      await run(process.execPath, ['web/build.ts'], { cwd: directory })
    } else await run('npm', ['ci'], { cwd: directory })
    const { version } = JSON.parse(await readFile(join(directory, 'package.json'), 'utf8'))
    return { directory, version, remove }
  } catch (error) {
    await remove()
    throw error
  }
}

interface Lock {
  readonly packages: Readonly<Record<string, { readonly version: string }>>
}

/** Whether this checkout has every package that the older one needs, in its version. */
async function canShareModules(directory: string): Promise<boolean> {
  const read = async (root: string) =>
    (JSON.parse(await readFile(join(root, 'package-lock.json'), 'utf8')) as Lock).packages
  const [older, ours] = await Promise.all([read(directory), read(repository)])
  return Object.entries(older).every(([path, { version }]) => path === '' || ours[path]?.version === version)
}
