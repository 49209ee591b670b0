/**
 * What each route for people answers to each caller, written independently of the code: adding one without a line
 * here fails. A line has one entry for each object of the route, in the order of `objects`.
 */

/** The callers. All but `stranger` and `operator` belong to the same workspace. */
export const personas = [
  'member',
  'admin',
  'owner',
  /** May change the whole instance, and belongs to no workspace. */
  'operator',
  /** The owner of another workspace. */
  'stranger',
  /** Was an owner, and has left. */
  'former',
  'signed_out',
  /** An API key of the workspace's owner, with every scope, instead of a session. */
  'key',
] as const
export type Persona = (typeof personas)[number]

/** The objects of a route: the caller's own, others' in the workspace, others' elsewhere. */
export type Subject = 'own' | 'colleague' | 'owner' | 'foreign' | 'missing' | 'malformed' | 'any'

export interface Line {
  readonly method: string
  readonly path: string
  /** Other addresses than the example's, or the only one. */
  readonly objects: readonly Subject[]
  readonly answers: Readonly<Record<Persona, string>>
}

const nobodyElse = {
  signed_out: '401 not_signed_in',
  key: '401 not_signed_in',
}
/** In a workspace: callers who do not belong to it learn nothing. */
const members = { operator: '404', stranger: '404', former: '404', ...nobodyElse }
/** Outside a workspace. */
const operators = {
  member: '403 missing_role',
  admin: '403 missing_role',
  owner: '403 missing_role',
  stranger: '403 missing_role',
  former: '403 missing_role',
  ...nobodyElse,
}
/** For every caller, signed in or not. */
const everybody = (answer: string) =>
  Object.fromEntries(personas.map((persona) => [persona, answer])) as Record<Persona, string>
/** For every signed-in caller, whatever their role and workspace. */
const users = (answer: string) => ({ ...everybody(answer), ...nobodyElse })
/** What an agent requests of its own user; a user who has left gets no more requests. */
const ofOneself = {
  objects: ['own', 'colleague', 'owner', 'foreign', 'missing', 'malformed'],
  answers: { ...users('200, 404, 404, 404, 404, 404'), operator: '404', former: '404' },
} as const
const fromAdmin = { ...members, member: '403 missing_role' }
const fromOwner = { ...fromAdmin, admin: '403 missing_role' }

/** Accounts, stages, saved replies and the like belong to a workspace and not to a user: `own` is one of the caller's workspace. */
const ofWorkspace = ['own', 'foreign', 'missing', 'malformed'] as const
const forAdmins = (own: string) => ({ admin: `${own}, 404, 404, 404`, owner: `${own}, 404, 404, 404` })
const changesForAdmins = (own: string) =>
  ({ objects: ofWorkspace, answers: { ...fromAdmin, ...forAdmins(own) } }) as const

const everyMember = (own: string) => ({ ...members, member: own, admin: own, owner: own })
const changesSavedReply = { objects: ofWorkspace, answers: everyMember('200, 404, 404, 404') } as const
/** A chat is named with its account, which is the object. */
const ofChat = { objects: ofWorkspace, answers: everyMember('200, 404, 404, 404') } as const

const forOperators = (answer: string) =>
  ({ objects: ['any'], answers: { ...operators, operator: answer } }) as const
/** Operators reach every workspace's. */
const ofAnyWorkspace = {
  objects: ofWorkspace,
  answers: { ...operators, operator: '200, 200, 404, 404' },
} as const

export const lines: Readonly<Record<string, Line>> = {
  list_days: { method: 'GET', path: '/analytics/days', objects: ['any'], answers: everyMember('200') },
  list_suppressions: { method: 'GET', path: '/suppressions', objects: ['any'], answers: everyMember('200') },
  add_suppression: { method: 'POST', path: '/suppressions', objects: ['any'], answers: everyMember('200') },
  // The example's entry is not on the list; `capabilities/suppressions` removes one that is.
  remove_suppression: {
    method: 'POST',
    path: '/suppressions/remove',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '404', owner: '404' },
  },
  import_suppressions: {
    method: 'POST',
    path: '/suppressions/import',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  export_suppressions: {
    method: 'GET',
    path: '/suppressions/export',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  update_workspace: {
    method: 'PATCH',
    path: '/workspace',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  get_retention: {
    method: 'GET',
    path: '/retention',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  preview_retention: {
    method: 'GET',
    path: '/retention/preview',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  set_retention: {
    method: 'PUT',
    path: '/retention',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  get_audience: { method: 'GET', path: '/audience', objects: ['any'], answers: everyMember('200') },
  list_broadcasts: {
    method: 'GET',
    path: '/broadcasts',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  list_campaign_progress: {
    method: 'GET',
    path: '/campaign_progress',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  list_recipients: {
    method: 'GET',
    path: '/campaigns/{campaign_id}/recipients',
    ...changesForAdmins('200'),
  },
  list_inbox: { method: 'GET', path: '/inbox', objects: ['any'], answers: everyMember('200') },
  count_inbox: { method: 'GET', path: '/inbox/counts', objects: ['any'], answers: everyMember('200') },
  list_assignees: { method: 'GET', path: '/assignees', objects: ['any'], answers: everyMember('200') },
  get_board: { method: 'GET', path: '/board', objects: ['any'], answers: everyMember('200') },
  get_chat_suppression: { method: 'GET', path: '/chats/{chat_id}/suppression', ...ofChat },
  list_chat_campaigns: { method: 'GET', path: '/chats/{chat_id}/campaigns', ...ofChat },
  get_timeline: { method: 'GET', path: '/chats/{chat_id}/timeline', ...ofChat },
  assign_chat: { method: 'PUT', path: '/chats/{chat_id}/assignee', ...ofChat },
  create_note: {
    method: 'POST',
    path: '/chats/{chat_id}/notes',
    objects: ofWorkspace,
    answers: everyMember('201, 404, 404, 404'),
  },
  delete_note: {
    method: 'DELETE',
    path: '/notes/{note_id}',
    objects: ['own', 'colleague', 'foreign', 'missing', 'malformed'],
    answers: {
      ...members,
      member: '200, 403 missing_role, 404, 404, 404',
      admin: '200, 200, 404, 404, 404',
      owner: '200, 200, 404, 404, 404',
    },
  },
  close_operation: {
    method: 'POST',
    path: '/operations/{operation_id}/close',
    objects: ofWorkspace,
    answers: everyMember('200, 404, 404, 404'),
  },
  list_approvals: { method: 'GET', path: '/approvals', objects: ['any'], answers: users('200') },
  get_approval: { method: 'GET', path: '/approvals/{request_id}', ...ofOneself },
  approve_request: { method: 'POST', path: '/approvals/{request_id}/approve', ...ofOneself },
  deny_request: { method: 'POST', path: '/approvals/{request_id}/deny', ...ofOneself },
  visit_chat: {
    method: 'POST',
    path: '/chats/{chat_id}/presence',
    objects: ofWorkspace,
    answers: everyMember('200, 404, 404, 404'),
  },
  open_stream: { method: 'GET', path: '/stream', objects: ['any'], answers: users('200') },
  get_sign_in: { method: 'GET', path: '/sign-in', objects: ['any'], answers: everybody('200') },
  sign_in: {
    method: 'POST',
    path: '/sign-in',
    objects: ['any'],
    answers: everybody('401 sign_in_refused'),
  },
  look_at_setup: { method: 'POST', path: '/setup/look', objects: ['any'], answers: everybody('404') },
  set_up: { method: 'POST', path: '/setup', objects: ['any'], answers: everybody('404') },
  sign_out: { method: 'POST', path: '/sign-out', objects: ['any'], answers: users('200') },
  get_session: { method: 'GET', path: '/session', objects: ['any'], answers: users('200') },
  update_profile: { method: 'PATCH', path: '/profile', objects: ['any'], answers: users('200') },
  change_password: { method: 'POST', path: '/password', objects: ['any'], answers: users('200') },
  list_sessions: { method: 'GET', path: '/sessions', objects: ['any'], answers: users('200') },
  revoke_session: {
    method: 'POST',
    path: '/sessions/{session_id}/revoke',
    objects: ['own', 'colleague', 'foreign', 'missing', 'malformed'],
    answers: users('200, 404, 404, 404, 404'),
  },
  revoke_other_sessions: {
    method: 'POST',
    path: '/sessions/revoke-others',
    objects: ['any'],
    answers: users('200'),
  },
  // There is no identity provider here; `capabilities/oidc` tests it with one.
  begin_oidc_setup: {
    method: 'POST',
    path: '/setup/oidc',
    objects: ['any'],
    answers: everybody('404'),
  },
  list_accounts: {
    method: 'GET',
    path: '/accounts',
    objects: ['any'],
    answers: { ...members, member: '200', admin: '200', owner: '200' },
  },
  get_account: {
    method: 'GET',
    path: '/accounts/{account_id}',
    objects: ofWorkspace,
    answers: { ...members, member: '200, 404, 404, 404', ...forAdmins('200') },
  },
  create_account: {
    method: 'POST',
    path: '/accounts',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '201', owner: '201' },
  },
  update_account: { method: 'PATCH', path: '/accounts/{account_id}', ...changesForAdmins('200') },
  enable_account: { method: 'POST', path: '/accounts/{account_id}/enable', ...changesForAdmins('200') },
  disable_account: { method: 'POST', path: '/accounts/{account_id}/disable', ...changesForAdmins('200') },
  // There is no worker here, so no login is in progress; `capabilities/accounts` tests them with one.
  begin_login: { method: 'POST', path: '/accounts/{account_id}/login', ...changesForAdmins('409') },
  get_login: {
    method: 'GET',
    path: '/accounts/{account_id}/login',
    objects: ofWorkspace,
    answers: { ...members, member: '200, 404, 404, 404', ...forAdmins('200') },
  },
  answer_login: { method: 'POST', path: '/accounts/{account_id}/login/answer', ...changesForAdmins('409') },
  give_up_login: { method: 'DELETE', path: '/accounts/{account_id}/login', ...changesForAdmins('200') },
  log_out_account: { method: 'POST', path: '/accounts/{account_id}/logout', ...changesForAdmins('503') },
  get_workspace: { method: 'GET', path: '/workspace', objects: ['any'], answers: everyMember('200') },
  list_stages: { method: 'GET', path: '/stages', objects: ['any'], answers: everyMember('200') },
  create_stage: {
    method: 'POST',
    path: '/stages',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '201', owner: '201' },
  },
  update_stage: { method: 'PATCH', path: '/stages/{stage_key}', ...changesForAdmins('200') },
  delete_stage: { method: 'DELETE', path: '/stages/{stage_key}', ...changesForAdmins('200') },
  create_column: {
    method: 'POST',
    path: '/columns',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '201', owner: '201' },
  },
  update_column: { method: 'PATCH', path: '/columns/{column_id}', ...changesForAdmins('200') },
  delete_column: { method: 'DELETE', path: '/columns/{column_id}', ...changesForAdmins('200') },
  // The column of the test has the option of the example, so a second one of that name is refused.
  add_option: { method: 'POST', path: '/columns/{column_id}/options', ...changesForAdmins('409') },
  update_option: { method: 'PATCH', path: '/columns/{column_id}/options', ...changesForAdmins('200') },
  delete_option: { method: 'DELETE', path: '/columns/{column_id}/options', ...changesForAdmins('200') },
  list_saved_replies: {
    method: 'GET',
    path: '/saved_replies',
    objects: ['any'],
    answers: everyMember('200'),
  },
  create_saved_reply: {
    method: 'POST',
    path: '/saved_replies',
    objects: ['any'],
    answers: everyMember('201'),
  },
  update_saved_reply: {
    method: 'PATCH',
    path: '/saved_replies/{saved_reply_id}',
    ...changesSavedReply,
  },
  delete_saved_reply: {
    method: 'DELETE',
    path: '/saved_replies/{saved_reply_id}',
    ...changesSavedReply,
  },
  list_keys: {
    method: 'GET',
    path: '/keys',
    objects: ['any'],
    answers: { ...members, member: '200', admin: '200', owner: '200' },
  },
  create_key: {
    method: 'POST',
    path: '/keys',
    objects: ['any'],
    answers: { ...members, member: '201', admin: '201', owner: '201' },
  },
  revoke_key: {
    method: 'POST',
    path: '/keys/{key_id}/revoke',
    objects: ['own', 'colleague', 'owner', 'foreign', 'missing', 'malformed'],
    answers: {
      ...members,
      member: '200, 404, 404, 404, 404, 404',
      admin: '200, 200, 200, 404, 404, 404',
      owner: '200, 200, 200, 404, 404, 404',
    },
  },
  list_members: {
    method: 'GET',
    path: '/members',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '200', owner: '200' },
  },
  add_member: {
    method: 'POST',
    path: '/members',
    objects: ['any'],
    answers: { ...fromAdmin, admin: '201', owner: '201' },
  },
  set_member_role: {
    method: 'PATCH',
    path: '/members/{user_id}',
    objects: ['own', 'colleague', 'owner', 'foreign', 'missing', 'malformed'],
    answers: { ...fromOwner, owner: '200, 200, 200, 404, 404, 404' },
  },
  remove_member: {
    method: 'DELETE',
    path: '/members/{user_id}',
    objects: ['own', 'colleague', 'owner', 'foreign', 'missing', 'malformed'],
    answers: {
      ...members,
      member: '200, 403, 403, 403, 403, 403',
      admin: '200, 200, 403, 404, 404, 404',
      owner: '200, 200, 200, 404, 404, 404',
    },
  },
  list_made: {
    method: 'GET',
    path: '/members/{user_id}/made',
    objects: ['own', 'colleague', 'owner', 'foreign', 'missing', 'malformed'],
    answers: {
      ...members,
      member: '200, 403, 403, 403, 403, 403',
      admin: '200, 200, 403, 404, 404, 404',
      owner: '200, 200, 200, 404, 404, 404',
    },
  },
  make_member_setup_link: {
    method: 'POST',
    path: '/members/{user_id}/setup-link',
    objects: ['own', 'colleague', 'owner', 'foreign', 'missing', 'malformed'],
    answers: {
      ...fromAdmin,
      admin: '409, 200, 403, 404, 404, 404',
      owner: '409, 200, 200, 404, 404, 404',
    },
  },
  list_gates: {
    method: 'GET',
    path: '/gates',
    objects: ['any'],
    answers: { ...operators, operator: '200' },
  },
  set_gate: {
    method: 'POST',
    path: '/gates/{name}',
    objects: ['any', 'missing'],
    answers: { ...operators, operator: '200, 404' },
  },
  list_allowlists: {
    method: 'GET',
    path: '/allowlists',
    objects: ['any'],
    answers: { ...operators, operator: '200' },
  },
  set_allowlist: {
    method: 'POST',
    path: '/allowlists/{list}',
    objects: ['any', 'missing'],
    answers: { ...operators, operator: '200, 404' },
  },
  list_users: {
    method: 'GET',
    path: '/users',
    objects: ['any'],
    answers: { ...operators, operator: '200' },
  },
  make_user_setup_link: {
    method: 'POST',
    path: '/users/{user_id}/setup-link',
    objects: ['own', 'foreign', 'missing', 'malformed'],
    answers: { ...operators, operator: '200, 200, 404, 404' },
  },
  list_workspaces: {
    method: 'GET',
    path: '/workspaces',
    objects: ['any'],
    answers: { ...operators, operator: '200' },
  },
  create_workspace: { method: 'POST', path: '/workspaces', ...forOperators('201') },
  rename_workspace: { method: 'PATCH', path: '/workspaces/{workspace_id}', ...ofAnyWorkspace },
  disable_workspace: { method: 'POST', path: '/workspaces/{workspace_id}/disable', ...ofAnyWorkspace },
  enable_workspace: { method: 'POST', path: '/workspaces/{workspace_id}/enable', ...ofAnyWorkspace },
  create_user: { method: 'POST', path: '/users', ...forOperators('201') },
  update_user: { method: 'PATCH', path: '/users/{user_id}', ...ofAnyWorkspace },
  enable_user: { method: 'POST', path: '/users/{user_id}/enable', ...ofAnyWorkspace },
  // Not themselves.
  disable_user: {
    method: 'POST',
    path: '/users/{user_id}/disable',
    objects: ['own', 'colleague', 'foreign', 'missing', 'malformed'],
    answers: { ...operators, operator: '409, 200, 200, 404, 404' },
  },
  get_sending: { method: 'GET', path: '/sending', objects: ['any'], answers: users('200') },
  get_dispatch: { method: 'GET', path: '/dispatch', ...forOperators('200') },
  set_dispatch: { method: 'POST', path: '/dispatch', ...forOperators('200') },
  // Parley waits for no worker here.
  dispatch_without: { method: 'POST', path: '/dispatch/without', ...forOperators('404') },
  list_troubled_accounts: { method: 'GET', path: '/accounts', ...forOperators('200') },
  list_ambiguous: { method: 'GET', path: '/operations/ambiguous', ...forOperators('200') },
  close_ambiguous: { method: 'POST', path: '/operations/{operation_id}/close', ...ofAnyWorkspace },
  list_audit: { method: 'GET', path: '/audit', ...forOperators('200') },
  get_audit: { method: 'GET', path: '/audit/verdict', ...forOperators('200') },
  verify_audit: { method: 'POST', path: '/audit/verify', ...forOperators('200') },
  get_instance: { method: 'GET', path: '/instance', ...forOperators('200') },
}
