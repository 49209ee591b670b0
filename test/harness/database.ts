/** One test file's own database, copied from the template. */
import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { administer, dropFrom, planOnce } from './cluster.ts'

export interface TestDatabase {
  readonly url: string
  drop(): Promise<void>
}

export interface CopyOptions {
  /** `shipped` for a test of plans or of large tables: PostgreSQL decides itself when to plan a statement again. */
  readonly plans?: 'once' | 'shipped' | undefined
}

export async function copyDatabase({ plans = 'once' }: CopyOptions = {}): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  const cluster = inject('cluster')
  const create = `create database ${name} template ${cluster.template}`
  await administer(cluster, create, ...(plans === 'once' ? [planOnce(name)] : []))
  const { host, user, password } = cluster
  const url = `postgres://${user}:${password}@localhost/${name}?host=${encodeURIComponent(host)}`
  return { url, drop: () => dropDatabase(name) }
}

export function dropDatabase(name: string): Promise<void> {
  return dropFrom(inject('cluster'), name)
}
