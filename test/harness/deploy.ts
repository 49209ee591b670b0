/** The configurations in deploy/, read and parsed. */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parse, parseAllDocuments } from 'yaml'

export const deploy = join(import.meta.dirname, '..', '..', 'deploy')
export const files = globSync('**', { cwd: deploy, withFileTypes: true })
  .filter((entry) => entry.isFile())
  .map((entry) => join(entry.parentPath, entry.name).slice(deploy.length + 1))
  .sort()
export const textOf = (file: string) => readFileSync(join(deploy, file), 'utf8')

/** Parsed YAML: the tests read it as far as they need. */
// biome-ignore lint/suspicious/noExplicitAny: the shapes are Docker's and Kubernetes's.
export type Parsed = any

export const compose: Parsed = parse(textOf('compose.yml'), { merge: true })
export const services: readonly (readonly [name: string, service: Parsed])[] = Object.entries(
  compose.services,
)
export const manifests: readonly Parsed[] = globSync('kubernetes/*.yml', { cwd: deploy })
  .sort()
  .flatMap((file) => parseAllDocuments(textOf(file)).map((document) => document.toJS()))
export const ofKind = (kind: string) => manifests.filter((manifest) => manifest.kind === kind)
export const pods: readonly Parsed[] = manifests.filter(({ spec }) => spec?.template)
export const lineOf = (file: string, start: string) =>
  textOf(file)
    .split('\n')
    .filter((line) => line.startsWith(start))
    .map((line) => line.slice(start.length))
