/**
 * Which workers of this disk have found the database restored and have not put everything back. A file for each worker, so
 * that none writes over what another one owes, and the next worker of the disk finds what a dead one has left.
 */
import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

export interface Debt {
  readonly worker_id: string
  /** Another one each time it is kept. */
  readonly token: string
}

const pathOf = (directory: string, worker_id: string) => join(directory, `${worker_id}.owes`)

/** On the disk when it resolves. */
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
    // Its worker, or one that has taken it over, may have dropped it meanwhile.
    const token = await readFile(join(directory, name), 'utf8').catch(() => undefined)
    return token === undefined ? [] : [{ worker_id, token }]
  })
  return (await Promise.all(debts)).flat()
}
