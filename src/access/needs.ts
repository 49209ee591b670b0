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

/** Gates, scope, role, allowlists: what can be checked without the input. */
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
  const refused = unmetScope(caller, needs.scopes) ?? unmetRole(caller, needs)
  if (refused) return refused
  for (const list of allowlists) {
    const unlisted = unmetAllowlist(settings, caller, list)
    if (unlisted) return unlisted
  }
  return undefined
}

/**
 * What the caller's role does not allow. Both doors ask the same, so a key can never do what its maker cannot do at the
 * dashboard, and a changed role counts with the next request.
 */
function unmetRole(caller: AnyCaller, needs: Needs): UnmetNeed | undefined {
  const { via } = caller
  if (needs.operator && !(via.kind === 'session' && via.operator)) {
    const sentence = 'Only operators of this instance may do this.'
    return { code: 'missing_role', sentence, by: { kind: 'role', name: 'operator' } }
  }
  // An operator decided what these may do.
  if (via.kind === 'terminal' || (via.kind === 'key' && via.issued_by === 'operator')) return undefined // guard: keys issued by operators keep their scopes
  const lowest = lowestRole(needs)
  const own = via.kind === 'visitor' ? null : via.role // guard: the role of the maker of a key
  return lowest && rankOf(own) < rankOf(lowest) ? lackingRole(lowest, via.kind) : undefined // guard: role of the caller
}

/** The lowest role that is enough: it is at least the one that is stated, and has one of the scopes. */
export function lowestRole({ role, scopes }: Pick<Needs, 'role' | 'scopes'>): Role | undefined {
  if (scopes.length === 0) return role
  return roles.find((each) => rankOf(each) >= rankOf(role ?? null) && mayAny(each, scopes))
}

/** Whether a user of this role may do it at the dashboard. */
export function isEnough(role: Role, needs: Pick<Needs, 'role' | 'scopes'>): boolean {
  const lowest = lowestRole(needs)
  return lowest === undefined || rankOf(role) >= rankOf(lowest)
}

function lackingRole(role: Role, via: AnyCaller['via']['kind']): UnmetNeed {
  const enough = roles.slice(rankOf(role)).map((each) => `${/^[aeiou]/.test(each) ? 'an' : 'a'} ${each}`)
  const key = via === 'key' ? ', and a key can do no more than the user who made it' : ''
  const sentence = `Only ${enough.join(' or ')} of this workspace may do this${key}.`
  return { code: 'missing_role', sentence, by: { kind: 'role', name: role } }
}

/** Whether a user at the dashboard has at least this role in the workspace. */
export function hasRole({ via }: AnyCaller, role: Role): boolean {
  return via.kind === 'session' && rankOf(via.role) >= rankOf(role)
}

function rankOf(role: Role | null): number {
  return role ? roles.indexOf(role) : -1
}

/** Only keys and the terminal have scopes of their own; a user at the dashboard has those of their role. */
function unmetScope(caller: AnyCaller, scopes: readonly Scope[]): UnmetNeed | undefined {
  const { via } = caller
  if (via.kind === 'session' || via.kind === 'visitor' || (via.kind === 'terminal' && scopes.length === 0)) {
    return undefined
  }
  const granted = 'scopes' in caller ? caller.scopes : []
  if (scopes.some((scope) => granted.includes(scope))) return undefined
  return {
    code: 'missing_scope',
    sentence:
      scopes.length === 0
        ? 'API keys cannot do this. Sign in to the dashboard.'
        : `This operation needs a key with the scope ${scopes.join(' or ')}.`,
    by: { kind: 'role', name: lowestRole({ scopes }) ?? 'member' },
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
