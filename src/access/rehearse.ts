/** Checks a write to the end without doing it, so that obstacles show before a person is asked to approve. */
import { z } from 'zod'
import type { App } from '../app.ts'
import type { Caller } from '../contract.ts'
import { requireReachable } from '../ledger/liveness.ts'
import { type ChatNumber, chatId, chatNumber } from '../lib/shapes.ts'
import type { AnyCall, Reply, Route } from '../route.ts'
import { type Incoming, inspect } from './perform.ts'

/** The input as parsed, and what it would apply to. */
interface Rehearsed {
  readonly body: Readonly<Record<string, unknown>>
  readonly account_id: string
  readonly chat_id: ChatNumber
}

const named = z.object({ account_id: z.string(), chat_id: chatId })

export async function rehearse(
  app: App,
  route: Route,
  caller: Caller,
  incoming: Incoming,
): Promise<Rehearsed> {
  const checked = await inspect(app, route, caller, incoming)
  const call = checked.call(undefined)
  const { body } = checked
  if (route.effect === 'platform') {
    // Does not count against the account's limits: nothing is done yet.
    const { account_id, chat_id } = await route.handle(app, call)
    await requireReachable(app, account_id, route)
    if (chat_id === null) throw new Error(`${route.name} names no chat.`)
    return { body, account_id, chat_id }
  }
  if (route.effect !== 'local') throw new Error(`${route.name} cannot be undone.`)
  const { account_id, chat_id } = named.parse((await undo(app, route, call)).body)
  return { body, account_id, chat_id: chatNumber(chat_id) }
}

/** Thrown to roll back a transaction that succeeded. */
class Undone extends Error {
  readonly reply: Reply

  constructor(reply: Reply) {
    super('Rolled back on purpose.')
    this.reply = reply
  }
}

async function undo(app: App, route: Extract<Route, { effect: 'local' }>, call: AnyCall): Promise<Reply> {
  try {
    return await app.db.transaction(async (tx) => {
      throw new Undone(await route.handle(app, tx, call))
    })
  } catch (error) {
    if (error instanceof Undone) return error.reply
    throw error
  }
}
