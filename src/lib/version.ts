/** Which Parley this is, from the one place that says so. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'

const manifest = join(import.meta.dirname, '..', '..', 'package.json')

export const version: string = JSON.parse(readFileSync(manifest, 'utf8')).version

/** How it calls itself where it calls others. */
export const userAgent = `Parley/${version}`
