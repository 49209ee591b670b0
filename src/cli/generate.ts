/** Writes the generated files: openapi.json, schema.sql, the browser's types, two pages of docs/. CI fails on a difference. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Command } from 'commander'
import { readConfig, variableDefaults } from '../config.ts'
import { dumpLocks, dumpSchema } from '../db/dump.ts'
import { Refusal } from '../lib/errors.ts'
import { ownRoutes, workspaceRoutes } from '../lists/dashboard-routes.ts'
import { operations } from '../lists/operations.ts'
import { routes } from '../lists/routes.ts'
import { makeBrowserTypes } from '../openapi/browser-types.ts'
import { makeOpenApi } from '../openapi/openapi.ts'
import { makeLogger } from './log.ts'
import { openApp } from './open.ts'
import { write } from './output.ts'
import { makeCliPage, makeConfigurationPage } from './pages.ts'
import { commandOf } from './verbs.ts'

const root = join(import.meta.dirname, '..', '..')

/** `everyVerb` returns the command line with all its verbs loaded. */
export const addGenerateVerb = (everyVerb: () => Promise<Command>) => (program: Command) => {
  commandOf(program, 'generate')
    .option('--check', 'fail if the committed files differ', false)
    .action(async ({ check }: { check: boolean }) => {
      const files = {
        'openapi.json': `${JSON.stringify(makeOpenApi(routes), null, 2)}\n`,
        'web/src/data/api-types.ts': makeBrowserTypes({
          workspaceRoutes: [...routes, ...workspaceRoutes],
          ownRoutes,
        }),
        ...(await schema()),
        'docs/cli.md': makeCliPage(await everyVerb()),
        'docs/configuration.md': makeConfigurationPage(
          await readFile(join(root, '.env.example'), 'utf8'),
          variableDefaults(),
        ),
      }
      for (const [name, text] of Object.entries(files)) {
        const path = join(root, name)
        const committed = await readFile(path, 'utf8').catch(() => '')
        if (committed === text) continue
        if (check) throw new Refusal(`${name} is out of date. Run \`npm run generated\`.`)
        await writeFile(path, text)
        write(`wrote ${name}`)
      }
    })
}

/** Dumped from a temporary database. */
async function schema(): Promise<Readonly<Record<string, string>>> {
  const data_dir = await mkdtemp(join(tmpdir(), 'parley-generate-'))
  const app = await openApp({
    config: readConfig({}),
    data_dir,
    log: makeLogger('silent'),
    claim: 'service',
    as_it_is: true,
    operations,
    routes,
  })
  try {
    return {
      'src/db/migration-locks.json': await dumpLocks(app.db),
      'src/db/schema.sql': await dumpSchema(app.db),
    }
  } finally {
    await app.close()
    await rm(data_dir, { recursive: true, force: true })
  }
}
