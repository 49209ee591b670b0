/** One PostgreSQL for the whole run: a migrated template that every test file copies in 30 ms. */
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import type { ProvidedContext } from 'vitest'
import type { TestProject } from 'vitest/node'
import { openEmbedded } from '../../src/db/embedded.ts'
import { migrate } from '../../src/db/migrate.ts'
import { type Connection, openDatabase } from '../../src/db/pool.ts'
import { allow } from './role.ts'
import { makeScratch } from './scratch.ts'

declare module 'vitest' {
  interface ProvidedContext {
    cluster: {
      readonly host: string
      readonly user: string
      readonly password: string
      /** The database that every test file copies. */
      readonly template: string
    }
  }
}

const template = 'parley_template'

export type Cluster = ProvidedContext['cluster']
/** How to connect to a server of databases. */
export type Server = Omit<Cluster, 'template'>

export async function setup(project: TestProject): Promise<(() => Promise<void>) | undefined> {
  // A caller that starts many small test runs provides one cluster for all of them.
  if (process.env.TEST_CLUSTER) {
    project.provide('cluster', JSON.parse(process.env.TEST_CLUSTER))
    return undefined
  }
  const { cluster, close } = await openCluster()
  project.provide('cluster', cluster)
  return close
}

export async function openCluster(): Promise<{ cluster: Cluster; close: () => Promise<void> }> {
  const data_dir = await makeScratch('parley-test-')
  await allow(data_dir, 'createdb', 'createrole')
  const embedded = await openEmbedded({ data_dir, claim: 'service' })
  const { host = '', user = '', password } = embedded.connection
  const close = async () => {
    await embedded.close()
    await rm(data_dir, { recursive: true, force: true })
  }
  try {
    await makeTemplate(embedded.connection)
  } catch (error) {
    await close()
    throw error
  }
  return { cluster: { host, user, password: String(password), template }, close }
}

async function makeTemplate(connection: Connection): Promise<void> {
  const admin = openDatabase(connection, { pool_size: 2 })
  const database = openDatabase({ ...connection, database: template }, { pool_size: 2 })
  try {
    await admin.pool.query(`create database ${template}`)
    await migrate(database)
  } finally {
    await database.close()
    await admin.close()
  }
}

/** The tables of most tests have few rows: planning a statement again costs more than running it. */
export const planOnce = (name: string) => `alter database ${name} set plan_cache_mode = force_generic_plan`

/** Runs statements outside any test's database. */
export function administer(cluster: Server, ...statements: readonly string[]): Promise<void> {
  return withClient(cluster, 'postgres', async (client) => {
    for (const statement of statements) await client.query(statement)
  })
}

async function withClient(
  { host, user, password }: Server,
  database: string,
  work: (client: pg.Client) => Promise<void>,
): Promise<void> {
  const client = new pg.Client({ host, user, password, database })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

/** A copy of the template that `change` has edited: the same cluster, whose tests copy that one. */
export async function editTemplate(
  cluster: Cluster,
  name: string,
  change: (client: pg.Client) => Promise<void>,
): Promise<Cluster> {
  await administer(cluster, `create database ${name} template ${cluster.template}`)
  await withClient(cluster, name, change)
  return { ...cluster, template: name }
}

/** Retries while an autovacuum worker is connected: it belongs to the server, so we cannot end it, and leaves by itself. */
export async function dropFrom(cluster: Server, name: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await administer(cluster, `drop database if exists ${name} with (force)`)
      return
    } catch (error) {
      if ((error as { code?: string }).code !== '42501' || tries > 300) throw error
      await sleep(100)
    }
  }
}
