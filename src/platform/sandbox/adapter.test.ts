import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'
import { conformance } from '../../../test/platform/conformance.ts'
import { directFixture, processFixture } from '../../../test/platform/sandbox-fixture.ts'
import { openWorld } from './world.ts'

const data_dir = mkdtempSync(join(tmpdir(), 'parley-sandbox-'))
afterAll(() => rmSync(data_dir, { recursive: true }))

conformance('sandbox, in memory, direct link', () => directFixture(openWorld({ data_dir: null })))
conformance('sandbox, on disk, direct link', () =>
  directFixture(openWorld({ data_dir: join(data_dir, 'direct') })),
)
conformance('sandbox, its own process, socket link', () => processFixture(join(data_dir, 'process')))
