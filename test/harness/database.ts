/** A database of one test file's own, copied from the template. */
import { randomBytes } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { inject } from 'vitest'
import { template } from './cluster.ts'

export interface TestDatabase {
  readonly url: string
  drop(): Promise<void>
}

export async function copyDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  await admin(`create database ${name} template ${template}`)
  const { host, user, password } = inject('cluster')
  const url = `postgres://${user}:${password}@localhost/${name}?host=${encodeURIComponent(host)}`
  return { url, drop: () => dropDatabase(name) }
}

/** An autovacuum worker belongs to the server: it cannot be ended by us, and goes by itself. */
export async function dropDatabase(name: string): Promise<void> {
  for (let tries = 0; ; tries++) {
    try {
      await admin(`drop database if exists ${name} with (force)`)
      return
    } catch (error) {
      if ((error as { code?: string }).code !== '42501' || tries > 300) throw error
      await sleep(100)
    }
  }
}

async function admin(statement: string): Promise<void> {
  const client = new pg.Client({ ...inject('cluster'), database: 'postgres' })
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}
