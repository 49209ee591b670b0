/** Foreign clients of Telegram at the data centre of the tests: `npm run test:clients` starts it. */
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { parsePublicKey } from '@mtcute/core/utils.js'
import { Crypto } from '../../../src/platform/mtcute-crypto.ts'
import { endProcesses } from '../../harness/process.ts'
import { spawnDataCentre } from '../../platform/data-centre-process.ts'
import { askAddress } from '../../platform/sandbox-fixture.ts'
import { gramjs } from './gramjs.ts'
import { mtprotoCore } from './mtproto-core.ts'
import { takeSteps } from './steps.ts'

const crypto = new Crypto()
crypto.initialize()
const data_dir = await mkdtemp(join(tmpdir(), 'parley-foreign-'))
const centre = spawnDataCentre({ data_dir, args: ['--dedupe', 'on'] })
try {
  const ask = askAddress(await centre.ready())
  const [, port, file = ''] = /^PARLEY_TELEGRAM_DC=127\.0\.0\.1:(\d+),(.+)$/m.exec(centre.stdout()) ?? []
  const place = { port: Number(port), key: parsePublicKey(crypto, await readFile(file, 'utf8')) }
  for (const [n, client] of [...gramjs, mtprotoCore].entries()) {
    const account = {
      ...{ account_id: `desk_${n}`, name: 'Sales desk', phone: `+999662010${n}`, password: 'correct horse' },
    }
    const begunAt = performance.now()
    const { passed, of, failed } = await takeSteps({ ...place, ask, client, account })
    const seconds = ((performance.now() - begunAt) / 1000).toFixed(1)
    process.stdout.write(`${client.name}: ${passed} of ${of} steps, ${seconds} s\n`)
    if (failed) throw failed
  }
} finally {
  await endProcesses()
  await rm(data_dir, { recursive: true, force: true })
}
// What the libraries leave behind, such as timers, does not keep the process.
process.exit(0)
