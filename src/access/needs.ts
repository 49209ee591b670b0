/** What the instance and the caller must satisfy before the input is read. */
import type { Snapshot } from '../app.ts'
import {
  type Allowlist,
  type AnyCaller,
  type Needs,
  type Role,
  roles,
  type Scope,
  scopesOfRole,
} from '../contract.ts'
import { ApiError, type ErrorCode } from '../lib/errors.ts'

/** Gates, role, scope, allowlists: what can be checked without the input. */
export function requireNeeds(settings: Snapshot, caller: AnyCaller, needs: Needs): void {
  const missing = unmetNeed(settings, caller, needs)
  if (missing) throw new ApiError(missing.code, { detail: missing.sentence })
}

/** Whether the caller could do this now, as /me reports it. */
export function isCapable(settings: Snapshot, caller: AnyCaller, needs: Needs): boolean {
  return unmetNeed(settings, caller, needs) === undefined
}

/** What keeps a caller from something, so that a page can say who may change that. */
interface Obstacle {
  readonly kind: 'gate' | 'role' | 'allowlist'
  /** The gate, the lowest role that may, or the allowlist. */
  readonly name: string
}

/** The first obstacle in the order of the checks; undefined if the caller could do this now. */
export function findObstacle(settings: Snapshot, caller: AnyCaller, needs: Needs): Obstacle | undefined {
  return unmetNeed(settings, caller, needs)?.by
}

interface UnmetNeed {
  readonly code: ErrorCode
  readonly sentence: string
  readonly by: Obstacle
}

function unmetNeed(settings: Snapshot, caller: AnyCaller, needs: Needs): UnmetNeed | undefined {
  const { gates = [], allowlists = [] } = needs
  for (const gate of gates) {
    if (!settings.gates.has(gate)) {
      const sentence = `The feature "${gate}" is switched off on this instance.`
      return { code: 'feature_disabled', sentence, by: { kind: 'gate', name: gate } }
    }
  }
  const refused = unmetRole(caller, needs) ?? unmetScope(caller, needs.scopes)
  if (refused) return refused
  for (const list of allowlists) {
    const unlisted = unmetAllowlist(settings, caller, list)
    if (unlisted) return unlisted
  }
  return undefined
}

/** What a route requires of a user. A key has no role: `role` always refuses it, and `dashboard_role` never does. */
function unmetRole(caller: AnyCaller, { role, dashboard_role, operator }: Needs): UnmetNeed | undefined {
  const { via } = caller
  if (operator && !(via.kind === 'session' && via.operator)) {
    const sentence = 'Only operators of this instance may do this.'
    return { code: 'missing_role', sentence, by: { kind: 'role', name: 'operator' } }
  }
  const wanted = role ?? (via.kind === 'session' ? dashboard_role : undefined) // guard: role at the dashboard
  return wanted && !hasRole(caller, wanted) ? lackingRole(wanted) : undefined
}

function lackingRole(role: Role): UnmetNeed {
  const enough = roles.slice(rankOf(role)).map((each) => `${/^[aeiou]/.test(each) ? 'an' : 'a'} ${each}`)
  const sentence = `Only ${enough.join(' or ')} of this workspace may do this.`
  return { code: 'missing_role', sentence, by: { kind: 'role', name: role } }
}

/** Whether a user at the dashboard has at least this role in the workspace. */
export function hasRole({ via }: AnyCaller, role: Role): boolean {
  return via.kind === 'session' && rankOf(via.role) >= rankOf(role)
}

function rankOf(role: Role | null): number {
  return role ? roles.indexOf(role) : -1
}

function unmetScope(caller: AnyCaller, scopes: readonly Scope[]): UnmetNeed | undefined {
  if (scopes.length === 0 && caller.via.kind !== 'key') return undefined
  const granted = 'scopes' in caller ? caller.scopes : []
  if (scopes.some((scope) => granted.includes(scope))) return undefined
  return {
    code: 'missing_scope',
    sentence:
      scopes.length === 0
        ? 'API keys cannot do this. Sign in to the dashboard.'
        : `This operation needs a key with the scope ${scopes.join(' or ')}.`,
    by: { kind: 'role', name: roles.find((role) => mayAny(role, scopes)) ?? 'member' },
  }
}

function mayAny(role: Role, scopes: readonly Scope[]): boolean {
  return scopes.some((scope) => scopesOfRole[role].includes(scope))
}

function unmetAllowlist(settings: Snapshot, caller: AnyCaller, list: Allowlist): UnmetNeed | undefined {
  const by = { kind: 'allowlist', name: list } as const
  if (!settings.allowlists) {
    return { code: 'schema_unavailable', sentence: 'The campaign allowlists are not installed.', by }
  }
  const who = list === 'campaign_user' ? 'user' : 'workspace'
  const id = 'workspace_id' in caller ? caller[`${who}_id`] : undefined
  if (id !== undefined && settings.allowlists[list].has(id)) return undefined
  const of = caller.via.kind === 'key' ? `The ${who} of this key` : `The ${who}`
  return { code: 'not_allowlisted', sentence: `${of} is not on the campaign allowlist.`, by }
}
