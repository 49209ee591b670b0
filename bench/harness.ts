/** Shared by the benchmarks: their own instance, and figures that are all read the same way. */
import { closeSync, fsyncSync, openSync, writeSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { createUser } from '../src/capabilities/users/users.ts'
import { createWorkspace } from '../src/capabilities/workspaces/workspaces.ts'
import { makeLogger } from '../src/cli/log.ts'
import { type OpenApp, openApp } from '../src/cli/open.ts'
import { readConfig } from '../src/config.ts'
import { operations } from '../src/lists/operations.ts'
import { routes } from '../src/lists/routes.ts'
import { allow } from '../test/harness/role.ts'

/** Uses a fresh embedded instance and removes it afterwards, or uses the one in a directory that is kept. */
export async function withInstance(
  work: (app: OpenApp, data_dir: string) => Promise<void>,
  { kept, env = {} }: { kept?: string | undefined; env?: Readonly<Record<string, string>> } = {},
): Promise<void> {
  const data_dir = kept ?? (await mkdtemp(join(tmpdir(), 'parley-bench-')))
  // Large data is copied in without triggers and without flushing to disk.
  await allow(data_dir, 'superuser')
  const config = readConfig({ PARLEY_POOL_SIZE: '16', ...env })
  const log = makeLogger('silent')
  const app = await openApp({ config, data_dir, log, claim: 'service', operations, routes })
  try {
    await work(app, data_dir)
  } finally {
    await app.close()
    if (kept === undefined) await rm(data_dir, { recursive: true, force: true })
  }
}

export async function makeAccounts(
  app: OpenApp,
  count: number,
): Promise<{ workspace_id: string; user_id: string; ids: string[] }> {
  const workspace = await createWorkspace(app, 'system', { name: 'Bench' })
  const user = await createUser(app, 'system', { email: 'bench@example.org', workspace_id: workspace.id })
  const ids = await addAccounts(app, workspace.id, count)
  return { workspace_id: workspace.id, user_id: user.id, ids }
}

export async function addAccounts(app: OpenApp, workspace_id: string, count: number): Promise<string[]> {
  const ids: string[] = []
  for (let at = 0; at < count; at++) {
    const name = `Account ${at}`
    const { id } = await createAccount(app, 'system', { workspace_id, platform: 'sandbox', name })
    ids.push(id)
  }
  return ids
}

/** How long one fsync takes: everything durable waits for at least one. */
export function fsyncMs(directory: string): number {
  const file = openSync(join(directory, 'fsync-probe'), 'w')
  const times = Array.from({ length: 50 }, () => {
    const startedAt = performance.now()
    writeSync(file, 'x')
    fsyncSync(file)
    return performance.now() - startedAt
  })
  closeSync(file)
  return quantile(times, 0.5)
}

export function quantile(values: readonly number[], part: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? Number.NaN
}

export function row(label: string, value: string): void {
  console.log(`${label.padEnd(58)}${value.padStart(14)}`)
}

export function number(value: number, digits = 0): string {
  return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits })
}

/** Compares a ratio with its goal, and makes the run fail if it misses it. */
export function verdict(label: string, ratio: number, goal: { least?: number; most?: number }): void {
  const met =
    ratio >= (goal.least ?? Number.NEGATIVE_INFINITY) && ratio <= (goal.most ?? Number.POSITIVE_INFINITY)
  const wanted = goal.least !== undefined ? `≥ ${goal.least}` : `≤ ${goal.most}`
  row(`${label} (goal ${wanted})`, `${number(ratio, 2)} ${met ? 'met' : 'MISSED'}`)
  if (!met) process.exitCode = 1
}
