/** Marks what a request has changed, for pages that show it. */
import type { App } from '../app.ts'
import type { AnyCaller } from '../contract.ts'
import { isPrivate, type Mark, type MarkKind } from '../mark.ts'
import type { Reply, Route } from '../route.ts'

interface PerformedRequest {
  readonly params: unknown
  readonly query: unknown
  readonly body: unknown
  readonly reply: Reply
}

/** Call it after the commit. A refusal has changed nothing. */
export function markTouched(app: App, route: Route, caller: AnyCaller, done: PerformedRequest): void {
  if (done.reply.status >= 400) return
  const marks = (route.touches ?? []).flatMap((kind) => marksOf(kind, caller, done))
  app.wake.mark(...marks) // guard: a route marks what it touches
}

function marksOf(kind: MarkKind, caller: AnyCaller, done: PerformedRequest): Mark[] {
  const user_id = 'user_id' in caller ? caller.user_id : undefined
  if (isPrivate({ kind })) return user_id === undefined ? [] : [{ kind, workspace_id: null, user_id }]
  const named = { ...asObject(done.query), ...asObject(done.body), ...asObject(done.params) }
  if (!('workspace_id' in caller)) {
    // An operator who changes a workspace changes what its members see.
    const workspace_id = kind === 'instance' ? undefined : textOf(named.workspace_id)
    return [null, ...(workspace_id === undefined ? [] : [workspace_id])].map((id) => ({
      kind,
      workspace_id: id,
    }))
  }
  return [inWorkspace(kind, caller.workspace_id, named)]
}

function inWorkspace(kind: MarkKind, workspace_id: string, named: Readonly<Record<string, unknown>>): Mark {
  const account_id = textOf(named.account_id)
  const chat_id = textOf(named.chat_id)
  return {
    kind,
    workspace_id,
    ...(account_id !== undefined && { account_id }),
    ...(chat_id !== undefined && { chat_id }),
  }
}

function asObject(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {}
}

function textOf(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}
