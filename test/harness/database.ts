/** One test file's own database, copied from the template. */
import { randomBytes } from 'node:crypto'
import { inject } from 'vitest'
import { administer, dropFrom, template } from './cluster.ts'

export interface TestDatabase {
  readonly url: string
  drop(): Promise<void>
}

export async function copyDatabase(): Promise<TestDatabase> {
  const name = `test_${randomBytes(8).toString('hex')}`
  const cluster = inject('cluster')
  await administer(cluster, `create database ${name} template ${template}`)
  const { host, user, password } = cluster
  const url = `postgres://${user}:${password}@localhost/${name}?host=${encodeURIComponent(host)}`
  return { url, drop: () => dropDatabase(name) }
}

export function dropDatabase(name: string): Promise<void> {
  return dropFrom(inject('cluster'), name)
}
