/** `npm run data-centre` as a process of its own, which a test can kill, and how Parley reaches it. */
import { fileURLToPath } from 'node:url'
import { type Parley, spawnParley } from '../harness/process.ts'

export const dataCentreMain = fileURLToPath(new URL('./mtproto/main.ts', import.meta.url))

interface Place {
  readonly data_dir: string
  /** Of the first data centre; a free one by default. */
  readonly mtproto_port?: string
  /** More arguments. */
  readonly args?: readonly string[]
}

export function spawnDataCentre({ data_dir, mtproto_port = '0', args = [] }: Place): Parley {
  const place = ['--port', '0', '--mtproto-port', mtproto_port, '--data-dir', data_dir]
  return spawnParley(['data-centre', ...place, ...args], {}, dataCentreMain)
}

/** The address that it has printed, and an application of Telegram's. */
export function telegramEnv(printed: string): Record<string, string> {
  return {
    PARLEY_TELEGRAM_API_ID: '1',
    PARLEY_TELEGRAM_API_HASH: '0'.repeat(32),
    PARLEY_TELEGRAM_DC: /^PARLEY_TELEGRAM_DC=(.+)$/m.exec(printed)?.[1] ?? '',
  }
}
