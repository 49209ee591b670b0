// TEMPORARY, replaced by the generator.
interface User { id: string; email: string; name: string | null; operator: boolean; time_zone: string | null; has_password: boolean }
type Role = 'member' | 'admin' | 'owner'
type Scope = 'read' | 'write' | 'send' | 'campaigns'
interface Key { id: string; name: string; prefix: string; scopes: Scope[]; mcp_only: boolean; user: { id: string; email: string }; created_at: string; expires_at: string | null; revoked_at: string | null; last_used_at: string | null }
interface Member { user_id: string; email: string; name: string | null; role: Role; joined_at: string; last_seen_at: string | null }
interface Done { ok: boolean; message: string }
interface Gate { name: string; enabled: boolean; changed_at: string | null; description: string }
interface Listed { id: string; label: string }
interface Approval {
  id: string; state: 'waiting' | 'approved' | 'denied' | 'expired' | 'used'; created_at: string; expires_at: string; decided_at: string | null
  workspace: { id: string; name: string }; key: { id: string; name: string; prefix: string }; client_name: string | null
  account: { id: string; name: string; provider: string }; operation: string; tool: string; chat: { id: string; name: string | null }
  payload: Record<string, unknown>; payload_sha256: string; from: string[] | null; to: string[] | null; field: string | null; token_expires_at: string | null; operation_id: string | null; outcome: { state: string; finished_at: string | null; message_id: string | null; code: string | null; error: string | null } | null
}
export interface Routes {
  'GET /sign-in': { answer: { local: boolean; oidc: { label: string } | null } }
  'POST /sign-in': { body: { email: string; password: string }; answer: { user: User } }
  'POST /sign-out': { answer: Done }
  'POST /setup/look': { body: { token: string }; answer: { email: string; expires_at: string; oidc: { label: string } | null } }
  'POST /setup': { body: { token: string; password: string }; answer: { user: User } }
  'POST /setup/oidc': { body: { token: string }; answer: { location: string } }
  'GET /session': { answer: { user: User; session: { id: string; created_at: string; expires_at: string }; workspaces: { id: string; name: string; role: Role }[]; base_url: string; version: string } }
  'PATCH /profile': { body: { name?: string; time_zone?: string }; answer: { user: User } }
  'POST /password': { body: { current_password?: string; password: string }; answer: Done }
  'GET /sessions': { answer: { sessions: { id: string; created_at: string; last_seen_at: string; expires_at: string; user_agent: string | null; current: boolean; identity: { issuer: string } }[] } }
  'POST /sessions/{session_id}/revoke': { params: { session_id: string }; answer: Done }
  'POST /sessions/revoke-others': { answer: Done & { revoked: number } }
  'GET /approvals': { query?: { state?: 'waiting' | 'history'; cursor?: string; limit?: number }; answer: { approvals: Approval[]; next_cursor: string | null; has_more: boolean } }
  'GET /approvals/{request_id}': { params: { request_id: string }; answer: { approval: Approval } }
  'POST /approvals/{request_id}/approve': { params: { request_id: string }; answer: { token: string; expires_at: string } }
  'POST /approvals/{request_id}/deny': { params: { request_id: string }; answer: Done }
  'GET /gates': { answer: { gates: Gate[] } }
  'POST /gates/{name}': { params: { name: string }; body: { enabled: boolean }; answer: { gate: Gate } }
  'GET /allowlists': { answer: { campaign_user: Listed[]; campaign_workspace: Listed[] } }
  'POST /allowlists/{list}': { params: { list: 'campaign_user' | 'campaign_workspace' }; body: { id: string; listed: boolean }; answer: Done }
  'GET /users': { answer: { users: { id: string; email: string }[] } }
  'GET /workspaces': { answer: { workspaces: { id: string; name: string }[] } }
  'GET /w/{workspace_id}/keys': { params: { workspace_id: string }; answer: { keys: Key[] } }
  'POST /w/{workspace_id}/keys': { params: { workspace_id: string }; body: { name: string; scopes: Scope[]; expires_at?: string; mcp_only?: boolean }; answer: { key: Key; secret: string } }
  'POST /w/{workspace_id}/keys/{key_id}/revoke': { params: { workspace_id: string; key_id: string }; answer: { key: Key } }
  'GET /w/{workspace_id}/members': { params: { workspace_id: string }; answer: { members: Member[] } }
  'POST /w/{workspace_id}/members': { params: { workspace_id: string }; body: { email: string; role: Role }; answer: { member: Member; setup_link: string | null } }
  'PATCH /w/{workspace_id}/members/{user_id}': { params: { workspace_id: string; user_id: string }; body: { role: Role }; answer: { member: Member } }
  'DELETE /w/{workspace_id}/members/{user_id}': { params: { workspace_id: string; user_id: string }; answer: Done }
  'POST /w/{workspace_id}/members/{user_id}/setup-link': { params: { workspace_id: string; user_id: string }; answer: { setup_link: string; expires_at: string } }
}
