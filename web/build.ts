/**
 * Builds the dashboard (`npm ci` and `npm start` do it by themselves). Nothing is built twice: the output contains a
 * hash of all inputs. Without Vite, as after `npm ci --omit=dev`, it prints a line and builds nothing.
 */
import { createHash, randomUUID } from 'node:crypto'
import { existsSync, globSync } from 'node:fs'
import { appendFile, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import { promisify } from 'node:util'
import { brotliCompress, constants, gzip } from 'node:zlib'

const web = import.meta.dirname
const dist = join(web, 'dist')
/** The one folder of the service that pages import. */
const rules = join(web, '..', 'src', 'rules')
const sealFile = 'inputs.sha256'

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml; charset=utf-8',
  '.txt': 'text/plain; charset=utf-8',
  '.woff2': 'font/woff2',
}
/** Fonts are already compressed. */
const compressed = ['.woff2']

// The archive of `npm pack` has the built pages and none of their sources.
const packed = !existsSync(join(web, 'vite.config.ts'))
const seal = packed ? '' : await sealOf()
if (process.argv.includes('--inputs')) say(listInputs().join('\n'))
else if (!packed && (await readFile(join(dist, sealFile), 'utf8').catch(() => '')) !== seal) await build()

/** The sources, the settings, and the versions of the build tools. `--inputs` lists them. */
function listInputs(): string[] {
  return globSync('**', { cwd: web, withFileTypes: true, exclude: (at) => /^dist/.test(at.name) })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .concat(globSync('*.ts', { cwd: rules }).map((name) => join(rules, name)))
    .concat(join(web, '..', 'package-lock.json'))
    .filter((path) => !path.endsWith('.test.ts'))
    .sort()
}

async function sealOf(): Promise<string> {
  const hash = createHash('sha256')
  for (const input of listInputs()) hash.update(`${input.slice(web.length)}\0`).update(await readFile(input))
  return hash.digest('hex')
}

async function build(): Promise<void> {
  const begunAt = performance.now()
  const vite = await import('vite').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ERR_MODULE_NOT_FOUND') return undefined
    throw error
  })
  if (!vite)
    return say('The dashboard is not built, because Vite is not installed. The API works without it.')
  // Whatever the caller's setting, for example in a test: React's development build is twice as large.
  process.env.NODE_ENV = 'production'
  // Builds next to the old one, then moves it: a process that reads the old one never sees half of the new one.
  const fresh = join(web, `dist-${randomUUID()}`)
  try {
    await vite.build({
      configFile: join(web, 'vite.config.ts'),
      build: { outDir: fresh, emptyOutDir: true },
    })
    await appendFile(join(fresh, 'licenses.txt'), await listStyleLicences())
    await writeFile(join(fresh, 'manifest.json'), JSON.stringify(await listFiles(fresh), null, 2))
    await writeFile(join(fresh, sealFile), seal)
    const old = join(web, `dist-${randomUUID()}`)
    if (existsSync(dist)) await rename(dist, old)
    await rename(fresh, dist)
    await rm(old, { recursive: true, force: true })
  } finally {
    await rm(fresh, { recursive: true, force: true })
  }
  say(`The dashboard is built: ${((performance.now() - begunAt) / 1_000).toFixed(1)} s.`)
}

/** Vite lists the licences of packages with code. These come in through `styles.css`. */
async function listStyleLicences(): Promise<string> {
  const styles = await readFile(join(web, 'src', 'styles.css'), 'utf8')
  const packages = [...styles.matchAll(/@import ['"]((?:@[\w-]+\/)?[\w-]+)/g)].map(([, name = '']) => name)
  const texts = packages.map(async (name) => {
    const text = await readFile(join(web, '..', 'node_modules', name, 'LICENSE'), 'utf8')
    return `\n## ${name}\n\n${text.trim()}\n`
  })
  return (await Promise.all(texts)).join('')
}

/** The files that the service may serve (`src/http/dashboard-pages.ts`): it reads no other file for a request. */
async function listFiles(fresh: string): Promise<object[]> {
  const names = globSync('**/*.*', { cwd: fresh }).sort()
  return Promise.all(
    names.map(async (file) => {
      const extension = extname(file)
      const type = types[extension]
      if (!type) throw new Error(`${file} is of no known type: say in web/build.ts what it is served as.`)
      const bytes = await readFile(join(fresh, file))
      const encodings = compressed.includes(extension) ? [] : await compress(join(fresh, file), bytes)
      const tag = createHash('sha256').update(bytes).digest('base64url').slice(0, 22)
      // Vite adds a hash to the name of every file in assets/.
      return { file, type, tag, encodings, immutable: file.startsWith('assets/') }
    }),
  )
}

async function compress(path: string, bytes: Buffer): Promise<string[]> {
  const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length }
  await writeFile(`${path}.br`, await promisify(brotliCompress)(bytes, { params }))
  await writeFile(`${path}.gz`, await promisify(gzip)(bytes, { level: 9 }))
  return ['br', 'gzip']
}

function say(line: string): void {
  process.stdout.write(`${line}\n`)
}
