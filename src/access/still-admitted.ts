/** Whether callers whose requests take long would still be admitted: their keys and sessions may have ended meanwhile. */
import type { App } from '../app.ts'
import type { Caller } from '../contract.ts'
import { ApiError } from '../lib/errors.ts'
import { listValidKeys } from './keys.ts'
import { listSignedIn } from './sessions.ts'

/** What a new request of the caller would get; undefined: it would be admitted. */
export type Refusals = (caller: Caller) => ApiError | undefined

/** One statement for all keys, and one for all sessions. */
export async function readRefusals({ db }: Pick<App, 'db'>, callers: readonly Caller[]): Promise<Refusals> {
  const keys = [...new Set(callers.flatMap(({ via }) => (via.kind === 'key' ? [via.id] : [])))]
  const sessions = callers.flatMap(({ via, workspace_id }) =>
    via.kind === 'session' ? [{ id: via.id, workspace_id }] : [],
  )
  const [valid, signedIn] = await Promise.all([
    keys.length > 0 ? listValidKeys(db, keys) : [],
    sessions.length > 0 ? listSignedIn(db, sessions) : [],
  ])
  const admitted = new Map([
    ...valid.map(({ id, disabled }) => [id, disabled] as const),
    ...signedIn.map(({ id, workspace_id, disabled }) => [`${id} ${workspace_id}`, disabled] as const),
  ])
  return ({ via, workspace_id }) => {
    if (via.kind === 'terminal') return undefined
    const disabled = admitted.get(via.kind === 'key' ? via.id : `${via.id} ${workspace_id}`)
    if (disabled === undefined) return new ApiError(via.kind === 'key' ? 'invalid_key' : 'not_signed_in')
    return disabled ? new ApiError('workspace_disabled') : undefined
  }
}
