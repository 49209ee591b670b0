/** Shared by the sandbox's tests: a world in this process or in its own, and its other side. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { bind, type ControlCall } from '../../src/platform/control-operation.ts'
import type { AccountRef } from '../../src/platform/port.ts'
import { sandboxPlatform } from '../../src/platform/sandbox/adapter.ts'
import { controlOperations } from '../../src/platform/sandbox/control.ts'
import { directLink } from '../../src/platform/sandbox/direct-link.ts'
import { socketLink } from '../../src/platform/sandbox/socket-link.ts'
import type { World } from '../../src/platform/sandbox/world.ts'
import { heldAccount } from './account-store.ts'
import type { Fixture, OtherSide } from './conformance-stage.ts'
import { centreOperations } from './mtproto/control.ts'
import type { DataCentre } from './mtproto/data-centre.ts'

/** Calls an operation of the control address by its name. */
export type Ask = (name: string, input: object) => Promise<unknown>

export function askWorld(world: World): Ask {
  return askCalls(bind(controlOperations, world))
}

/** The calls of a data centre, and of the world behind it. */
export function askCentre(centre: DataCentre): Ask {
  return askCalls([...bind(controlOperations, centre.world), ...bind(centreOperations, centre)])
}

function askCalls(calls: readonly ControlCall[]): Ask {
  return (name, input) => {
    const call = requireNamed(calls, name)
    return call.handle(call.method === 'GET' ? { query: input } : { body: input })
  }
}

/** Over HTTP, as the sandbox process serves it. */
export function askAddress(address: string): Ask {
  return async (name, input) => {
    const { method, path } = requireNamed([...controlOperations, ...centreOperations], name)
    const given = new Map<string, unknown>(Object.entries(input))
    const place = path.replace(/\{(\w+)\}/g, (_, param: string) => {
      const value = String(given.get(param))
      given.delete(param)
      return value
    })
    const url = new URL(`/sandbox/v1${place}`, address)
    const body = method === 'POST' || method === 'PATCH' ? JSON.stringify(Object.fromEntries(given)) : null
    if (method === 'GET') for (const [key, value] of Object.entries(input)) url.searchParams.set(key, value)
    const response = await fetch(url, { method, body, headers: { 'content-type': 'application/json' } })
    const answer = await response.json()
    if (!response.ok) throw new Error(JSON.stringify(answer))
    return answer
  }
}

function requireNamed<T extends { readonly name: string }>(all: readonly T[], name: string): T {
  const found = all.find((each) => each.name === name)
  if (!found) throw new Error(`There is no operation ${name}.`)
  return found
}

export function otherSide(ask: Ask): OtherSide {
  const number = async (name: string, input: object, field: string): Promise<number> => {
    const answer = (await ask(name, input)) as Record<string, number>
    return answer[field] ?? Number.NaN
  }
  return {
    addPerson: (person) => number('addPerson', person, 'person_id'),
    addGroup: (group) => number('addGroup', group, 'chat_id'),
    write: (message) => number('writeMessage', message, 'message_id'),
    read: (mark) => number('readMessages', mark, 'up_to_message_id'),
    edit: async (edit) => {
      await ask('editMessage', edit)
    },
    remove: async (message) => {
      await ask('deleteMessage', message)
    },
    fault: async (fault) => {
      await ask('addFault', fault)
    },
    sentTexts: async (account_id) => {
      const { entries } = (await ask('readJournal', { after: 0 })) as {
        entries: { kind: string; account_id: string; text: string }[]
      }
      return entries
        .filter((entry) => entry.kind === 'send' && entry.account_id === account_id)
        .map((entry) => entry.text)
    },
  }
}

/** Of every sandbox, whichever way it is connected. */
const sandboxTraits = { showsCounts: true, captionLengthMax: null, lostPosition: '999999' } as const

let accounts = 0

async function newAccount(): Promise<AccountRef> {
  accounts++
  return heldAccount({ account_id: `acc_${accounts}`, name: `Account ${accounts}` })
}

export async function directFixture(world: World): Promise<Fixture> {
  return {
    platform: sandboxPlatform(directLink(world)),
    others: otherSide(askWorld(world)),
    ...sandboxTraits,
    newAccount,
    close: () => world.close(),
  }
}

export interface SandboxProcess {
  readonly address: string
  readonly child: ChildProcess
  readonly ask: Ask
  kill(signal: 'SIGKILL' | 'SIGTERM'): Promise<void>
}

/** A world in its own process, served on loopback. */
export async function startProcess(data_dir: string): Promise<SandboxProcess> {
  const script = fileURLToPath(new URL('./sandbox-process.ts', import.meta.url))
  const child = spawn(process.execPath, [script, data_dir], { stdio: ['ignore', 'pipe', 'inherit'] })
  const [line] = await once(createInterface(child.stdout), 'line')
  const address = String(line)
  return {
    address,
    child,
    ask: askAddress(address),
    kill: async (signal) => {
      if (child.exitCode !== null || child.signalCode !== null) return
      child.kill(signal)
      await once(child, 'exit')
    },
  }
}

export async function processFixture(data_dir: string): Promise<Fixture> {
  const sandbox = await startProcess(data_dir)
  return {
    platform: sandboxPlatform(socketLink(sandbox.address)),
    others: otherSide(sandbox.ask),
    ...sandboxTraits,
    newAccount,
    close: () => sandbox.kill('SIGTERM'),
  }
}
