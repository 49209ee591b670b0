/**
 * Which workers of this disk have found the database restored and have not put everything back. Each worker has its own
 * file, so that none overwrites another's debt, and the next worker of the disk finds the debts of a dead one.
 */
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface Debt {
  readonly worker_id: string
  /** New each time the debt is stored. */
  readonly token: string
}

const pathOf = (directory: string, worker_id: string) => join(directory, `${worker_id}.owes`)

/** Resolves once it is on disk. */
export async function keepDebt(directory: string, { worker_id, token }: Debt): Promise<void> {
  const path = pathOf(directory, worker_id)
  await writeFile(`${path}.new`, token, { mode: 0o600, flush: true })
  await rename(`${path}.new`, path)
}

export async function dropDebt(directory: string, worker_id: string): Promise<void> {
  await rm(pathOf(directory, worker_id), { force: true })
}

export async function listDebts(directory: string): Promise<Debt[]> {
  const names = await readdir(directory)
  const debts = names.sort().map(async (name): Promise<Debt[]> => {
    const [, worker_id] = /^([0-9a-f-]{36})\.owes$/.exec(name) ?? []
    if (worker_id === undefined) return []
    // Its worker, or the worker that took it over, may have dropped it meanwhile.
    const token = await readFile(join(directory, name), 'utf8').catch(() => undefined)
    return token === undefined ? [] : [{ worker_id, token }]
  })
  return (await Promise.all(debts)).flat()
}
