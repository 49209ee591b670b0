/** What mtcute requires of its runtime. `@mtcute/node` would add a native SQLite and two parsers. */
import type { ICorePlatform } from '@mtcute/core'

/** Logs nothing: mtcute's lines contain messages and phone numbers. */
export const surroundings: ICorePlatform = {
  beforeExit: () => () => {},
  log: () => {},
  getDefaultLogLevel: () => null,
  getDeviceModel: () => 'Parley',
}
