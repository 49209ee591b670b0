/** What tests and benchmarks need of an embedded PostgreSQL and Parley does not. */
import { layOut, role, runAlone } from '../../src/db/embedded-cluster.ts'

/** The role of Parley gets it for good; the server must not be running. */
export async function allow(data_dir: string, attribute: 'createdb' | 'superuser'): Promise<void> {
  const place = await layOut(data_dir)
  await runAlone(place, place.cluster, [`alter role ${role} ${attribute}`])
}
