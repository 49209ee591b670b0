/** Parley's version, from package.json. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const manifest = join(import.meta.dirname, '..', '..', 'package.json')

export const version: string = JSON.parse(readFileSync(manifest, 'utf8')).version

/** How Parley identifies itself to other services. */
export const userAgent = `Parley/${version}`
