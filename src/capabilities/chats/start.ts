/** Opening a private chat: who is meant, and whether they may be written to. */
import type { App } from '../../app.ts'
import type { Account, Caller } from '../../contract.ts'
import { ApiError } from '../../lib/errors.ts'
import { quote } from '../../lib/text.ts'
import { parseIdentifier } from '../../platform/identifier.ts'
import type { Identifier } from '../../platform/port.ts'
import type { Wish } from '../../route.ts'
import { findSuppressed } from '../suppressions/suppressions.ts'

export interface StartRequest {
  readonly account_id: string
  readonly identifier: string
  readonly provider?: string | undefined
  readonly text?: string | undefined
}

/** What only the additional operations know. */
export function isExtended({ identifier, provider, text }: StartRequest): boolean {
  const parsed = parseIdentifier(identifier)
  const other = typeof parsed === 'object' && parsed.kind !== 'username'
  return other || provider !== undefined || text !== undefined
}

/** What the identifier must be, before anything is looked up. */
export async function requireStartable(
  app: App,
  _caller: Caller,
  { body }: { readonly body: StartRequest },
): Promise<void> {
  const parsed = readIdentifier(body.identifier)
  const { gates } = await app.settings.current()
  if (gates.has('extended')) return
  if (parsed.kind !== 'username') throw new ApiError('unsupported_identifier')
  for (const name of ['provider', 'text'] as const) {
    if (body[name] !== undefined) {
      throw new ApiError('invalid_request', {
        detail: `${name} is taken only where the extended operations are switched on.`,
      })
    }
  }
}

function readIdentifier(identifier: string): Identifier {
  const parsed = parseIdentifier(identifier)
  if (parsed === 'invalid') {
    throw new ApiError('invalid_username', {
      detail: `${quote(identifier)} is not a username: 3 to 32 letters, digits and underscores, a letter first.`,
    })
  }
  if (parsed === 'unsupported') {
    throw new ApiError('unsupported_identifier', {
      detail: 'identifier must be a username, an @username, or a link such as t.me/name.',
    })
  }
  return parsed
}

export async function startChat(
  app: App,
  { caller, accounts, body }: { caller: Caller; accounts: readonly Account[]; body: StartRequest },
): Promise<Wish> {
  const [account] = accounts
  if (!account) throw new ApiError('account_unavailable')
  if (body.provider !== undefined && body.provider.toLowerCase() !== account.provider) {
    throw new ApiError('invalid_request', {
      detail: `provider must be ${account.provider}, which this account is on; there is no other way to reach people from it.`,
    })
  }
  const identifier = readIdentifier(body.identifier)
  const known = { [identifier.kind]: identifier.value }
  // What is known before the look-up spares it; who it really is, is checked again after it.
  if (await findSuppressed(app.db, caller.workspace_id, known)) throw new ApiError('identity_suppressed')
  return { account_id: account.id, chat_id: null, payload: { identifier } }
}
