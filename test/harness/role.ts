/** What tests and benchmarks need from an embedded PostgreSQL and Parley does not. */
import { layOut, role, runAlone } from '../../src/db/embedded-cluster.ts'

/** Grants it to Parley's role permanently; the server must not be running. */
export async function allow(
  data_dir: string,
  ...attributes: readonly ('createdb' | 'createrole' | 'superuser')[]
): Promise<void> {
  const place = await layOut(data_dir)
  await runAlone(place, place.cluster, [`alter role ${role} ${attributes.join(' ')}`])
}
