/** A Chromium to drive: the machine's own, else the one that an npm package contains for Linux x64. */
import { spawnSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { mkdtemp, readFile, rename, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliDecompress } from 'node:zlib'
import { type Browser, type BrowserContext, chromium } from 'playwright-core'

const names = ['chromium', 'chromium-browser', 'google-chrome-stable', 'google-chrome', 'chrome']
const onMac = '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome'
const args = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  // Chromium's audio thread writes to pages that have closed. Without a device it plays just as well.
  '--disable-audio-output',
]

/** Without a locale Chromium names every download with a letter beyond ASCII `download`. */
const inUtf8 = { ...(process.env as Record<string, string>), LC_ALL: 'C.UTF-8' }

/** Undefined if this machine has none. `PARLEY_TEST_CHROMIUM=package` ignores the machine's own. */
export async function openBrowser(): Promise<Browser | undefined> {
  const own = process.env.PARLEY_TEST_CHROMIUM === 'package' ? undefined : findOnMachine()
  if (own) return chromium.launch({ executablePath: own, args, env: inUtf8 })
  if (process.platform !== 'linux' || process.arch !== 'x64') return undefined
  const packaged = await import('@sparticuz/chromium').catch(() => undefined)
  if (!packaged) return undefined
  const { default: carried } = packaged
  const executablePath = await carried.executablePath()
  const LD_LIBRARY_PATH = await unpackLibraries()
  const env = { ...inUtf8, LD_LIBRARY_PATH }
  // In single-process mode a page's requests carry the cookies of the first context.
  const isolated = carried.args.filter((each) => each !== '--single-process')
  return chromium.launch({ executablePath, args: [...isolated, ...args], env })
}

const closeMsMax = 30_000

/**
 * Chromium may never say that a context has closed: once it did not for five minutes, after all of its pages had. The context
 * ends with the browser.
 */
export async function closeContext(context: BrowserContext): Promise<void> {
  let late: NodeJS.Timeout | undefined
  const tooLate = new Promise<'late'>((resolve) => {
    late = setTimeout(resolve, closeMsMax, 'late')
  })
  const closing = context.close()
  if ((await Promise.race([closing, tooLate])) === 'late') {
    process.stdout.write('   a context of the browser did not close\n')
    closing.catch(() => {})
  }
  clearTimeout(late)
}

function findOnMachine(): string | undefined {
  const folders = (process.env.PATH ?? '').split(delimiter)
  return [onMac, ...folders.flatMap((folder) => names.map((name) => join(folder, name)))].find(existsSync)
}

/** The package also has the libraries that a bare machine lacks. Those that are there may be in use. */
async function unpackLibraries(): Promise<string> {
  const packed = join(import.meta.dirname, 'node_modules', '@sparticuz', 'chromium', 'bin', 'al2023.tar.br')
  const folder = join(tmpdir(), `parley-test-chromium-${statSync(packed).size}`)
  if (existsSync(folder)) return join(folder, 'lib')
  const draft = await mkdtemp(`${folder}-`)
  const archive = join(draft, 'libraries.tar')
  await writeFile(archive, await promisify(brotliDecompress)(await readFile(packed)))
  const { status, stderr } = spawnSync('tar', ['-xf', archive, '-C', draft], { encoding: 'utf8' })
  if (status !== 0) throw new Error(`The libraries of Chromium could not be unpacked: ${stderr}`)
  await rename(draft, folder)
  return join(folder, 'lib')
}
