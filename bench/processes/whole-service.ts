/** The whole service as `parley start` runs it, in its own process. BENCH_DIR is its data directory. */
import { openSync } from 'node:fs'
import { makeLogger } from '../../src/cli/log.ts'
import { writeLines } from '../../src/cli/log-lines.ts'
import { Service } from '../../src/cli/service.ts'
import { readConfig } from '../../src/config.ts'
import { parts } from '../../src/parts.ts'

const service = await Service.open(parts, {
  role: 'start',
  config: readConfig({ PARLEY_CAMPAIGN_CREATE_PER_MINUTE: '1000' }),
  log: makeLogger('info', writeLines(openSync('/dev/null', 'w'))),
  data_dir: process.env.BENCH_DIR ?? '',
  port: 0,
  admin_port: undefined,
  demo: false,
})
const { address } = await service.begin()
process.on('message', async () => {
  await service.stop()
  process.exit(0)
})
process.send?.({ address })
