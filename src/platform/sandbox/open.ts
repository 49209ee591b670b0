/** Opens the sandbox for a service, with the calls of its control address. */
import { Refusal } from '../../lib/errors.ts'
import { bind, type ControlCall } from '../control-operation.ts'
import type { AdvanceClock, Control, OpenPlatform, PlatformOptions } from '../module.ts'
import { controlOperations } from './control.ts'
import { advanceOperation, followOperation } from './control-clock.ts'
import { demoPeople } from './demo.ts'
import { connectSandbox, type LocalSandbox, openLocalSandbox, type Sandbox } from './sandbox.ts'

/** Runs in this process, or is the one that PARLEY_SANDBOX_URL names. A lone `work` does not run one itself. */
export async function openSandbox(
  { role, data_dir, manual_from, failed }: PlatformOptions,
  url: string | undefined,
): Promise<OpenPlatform | undefined> {
  if (url) return opened(await reachSandbox(url, manual_from), { manual_from, calls: [] })
  if (role === 'work') return undefined
  const sandbox = await openLocalSandbox({ data_dir, manual_from, failed })
  const calls = bind(controlOperations, sandbox.world)
  return { ...opened(sandbox, { manual_from, calls }), demo: demoPeople(sandbox.world) }
}

function opened(
  sandbox: Sandbox,
  { manual_from, calls }: { manual_from: Date | undefined; calls: readonly ControlCall[] },
) {
  const withClock = (advance: AdvanceClock | undefined) =>
    controlOf(advance ? [...calls, ...bind([advanceOperation], advance)] : calls)
  return {
    platform: sandbox.platform,
    real: false,
    clock: manual_from && sandbox,
    control: withClock,
    close: () => sandbox.close(),
  }
}

/** A sandbox on a manual clock has no time until a service sets it. */
async function reachSandbox(url: string, manual_from: Date | undefined): Promise<Sandbox> {
  const sandbox = connectSandbox(url)
  if (!manual_from) return sandbox
  try {
    await sandbox.run(manual_from)
  } catch (cause) {
    throw new Refusal('The sandbox of PARLEY_SANDBOX_URL must be running, with PARLEY_CLOCK=manual too.', {
      cause,
    })
  }
  return sandbox
}

/** What a sandbox serves in a process of its own. */
export function aloneControl(
  sandbox: LocalSandbox,
  { manual, calls }: { manual: boolean; calls: readonly ControlCall[] },
): Control {
  return controlOf([
    ...bind(controlOperations, sandbox.world),
    ...calls,
    ...(manual ? bind([followOperation], sandbox) : []),
  ])
}

function controlOf(calls: readonly ControlCall[]): Control {
  const summary =
    'People, faults and the journal of the built-in platform. Call it with curl from this machine: the admin port ' +
    'answers no page in a browser.'
  return { name: 'sandbox', summary, calls }
}
