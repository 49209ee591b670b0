/** docs/privacy.md names every column that has personal data: a new one fails here until it is in one of the two lists. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'

const root = join(import.meta.dirname, '..')
const schema = readFileSync(join(root, 'src', 'db', 'schema.sql'), 'utf8')
const page = readFileSync(join(root, 'docs', 'privacy.md'), 'utf8')

/**
 * The columns without personal data: ids of rows, times, counts, states, hashes that nothing can be guessed by, and what operators and
 * members call their own things. A column that says something about a person goes into docs/privacy.md instead.
 */
const others: Readonly<Record<string, string>> = {
  account_days: `account_id day workspace_id used sent cold lookups used_cold`,
  account_hosts: `account_id workspace_id lease_owner lease_epoch lease_until observed_at flood_until next_campaign_at position writes ready_run confirmed_run lookup_flood_until reading_flood_until cold_stopped_at gap_since heard_at handed_over_at takeover_seconds unlisted_error unlisted_sends campaigns_held_at campaigns_held_by login_code_at tidied`,
  account_logins: `account_id workspace_id way state attempt begins begun_at alive_until worker_id failure`,
  account_strikes: `id account_id workspace_id at kind seconds operation_id`,
  account_sync: `account_id workspace_id phase cursor chats_total chats_synced updated_at chats_expected history_total`,
  accounts: `id workspace_id platform status status_reason created_at cold_per_day cold_ramp_from proxy proxy_sealed`,
  alert_posts: `id kind subject at attempts due_at last_error`,
  alerts: `kind subject wrong_since right_since begun_at open begins`,
  allowlists: `list id created_at`,
  approvals: `id workspace_id key_id operation account_id state created_at expires_at decided_at token_hash token_expires_at generation used_at`,
  audit: `seq at workspace_id action hash`,
  campaign_accounts: `campaign_id account_id workspace_id pool queued submitting waiting completed replied failed ambiguous cancelled suppressed has_open due_at`,
  campaign_counts: `workspace_id at campaign_id account_id sent failed ambiguous reached replied opted_out`,
  campaign_people: `campaign_id workspace_id recipient_id`,
  campaign_recipients: `id campaign_id workspace_id account_id status step next_action_at last_sent_at position version variant branch last_message_id reads replied_at reply_message_id reply_step reply_variant reply_branch opted_out reason unknown_since ended_at reply_account_id asked_at unfound_at must_look_up`,
  campaign_steps: `campaign_id workspace_id position branch wait_hours variants`,
  campaigns: `id workspace_id kind name status message_text branching_enabled daily_quota_per_account max_followups scheduled_at schedule_timezone created_at started_at completed_at cancelled_at sequence pause_reason audience_total stop_on_own_message names_cleared_to names_cleared_at`,
  chat_sync: `account_id workspace_id oldest_id complete wanted_at gap_after`,
  chats: `account_id workspace_id kind last_message_id last_message_at unread_count stage_key placed_at last_is_sender last_sender_of`,
  column_options: `workspace_id column_id value color position deleted_at`,
  column_values: `account_id column_id workspace_id updated_at`,
  columns: `id workspace_id name type position created_at`,
  contacts: `account_id workspace_id`,
  deleted_messages: `account_id id workspace_id`,
  erased_chats: `account_id workspace_id erased_at last_id from_id`,
  erasures: `id workspace_id platform contact_allowed at step after cleared total done_at`,
  event_sequences: `workspace_id sequence`,
  event_waits: `id workspace_id expires_at`,
  events: `workspace_id sequence id type occurred_at created_at traceparent`,
  file_chunks: `file_id n workspace_id stored_at`,
  gates: `name enabled changed_at`,
  hand_messages: `id workspace_id account_id platform operation_id message_id sent_at`,
  history_questions: `id account_id workspace_id since asked_at answered_at shown`,
  identities: `created_at`,
  instance: `singleton id restore_counter generation restore_counter_at run_no run removed_id unconfirmed_since`,
  keys: `id workspace_id name prefix hash scopes mcp_only created_at expires_at revoked_at last_used_at issued_by`,
  login_numbers: `id workspace_id begun_at`,
  manual_clock: `singleton at`,
  media_chunks: `file_id n`,
  media_files: `id account_id message_id index workspace_id wanted_at size ended_at failure`,
  memberships: `workspace_id created_at ended_at`,
  message_counts: `workspace_id span at account_id received sent`,
  messages: `account_id id workspace_id is_sender sent_at edited_at deleted_at random_id announced listing`,
  note_answers: `one after_workspace_id after_key done_at`,
  notes: `id workspace_id account_id created_at cleared_at`,
  operations: `id workspace_id kind effect idempotency_key state reason key_id account_id random_id attempt_no attempt_token owner lease_until expires_at reply_status reconciled closed_as created_at finished_at file_id proof_message_id proof_at hint_message_id looked_for_at closed_at public_id forgettable queued_no crossed_at campaign_id recipient_id step_no quota_day cold cleared_at`,
  outbox: `id workspace_id type occurred_at traceparent`,
  people: `id workspace_id platform first_seen_at erased_at`,
  people_backfill: `one after_account_id after_number done_at after_recipient_id tied_at`,
  person_names: `person_id kind account_id workspace_id platform first_seen_at last_seen_at until second`,
  platform_peers: `account_id`,
  platform_sessions: `account_id platform created_at`,
  request_log: `hits idle_at`,
  retention: `workspace_id messages_days operations_days recipients_days notes_days`,
  saved_replies: `id workspace_id title text created_at updated_at`,
  schema_migrations: `version name checksum applied_at`,
  search_forgetting: `account_id workspace_id due_at turn`,
  search_lists: `segment_id part length bytes`,
  search_pending: `account_id sent_at id workspace_id since`,
  search_ranks: `segment_id part newest_at`,
  search_segments: `id account_id workspace_id messages oldest_at newest_at format`,
  search_stale: `account_id sent_at id listing workspace_id`,
  secret_use: `one secret_id old_id turn addresses_sealed`,
  sessions: `token_hash created_at last_seen_at expires_at id revoked_at`,
  settings: `name value`,
  setup_links: `token_hash created_at expires_at used_at`,
  simulated_time: `singleton at`,
  stages: `workspace_id key label terminal hidden position created_at color`,
  stored_bytes: `workspace_id bytes`,
  stored_keys: `purpose sealed`,
  suppressions: `workspace_id kind source created_at`,
  tombstones: `workspace_id platform`,
  users: `id operator created_at disabled_at`,
  webhook_attempts: `delivery_id n workspace_id at status ms`,
  webhook_deliveries: `id workspace_id webhook_id sequence event_id type state attempts series_attempts due_at created_at delivered_at last_at last_status last_ms traceparent`,
  webhooks: `id workspace_id events secret previous_secret previous_until active created_at position consecutive_failures probe_at probe_gap_seconds disabled_at lease_owner lease_until deleted_at stop_reason url_no`,
  workers: `id started_at beat_at stopped_at owes drives platforms version failing disk_free`,
  workspaces: `id name timezone created_at sending_window disabled_at timezone_before timezone_from day_floor`,
}

const columns = new Map(
  [...schema.matchAll(/^create (?:unlogged )?table (\w+) \(\n(.*?)^\);/gms)].map(
    ([, table = '', body = '']) => [
      table,
      [...body.matchAll(/^ {2}([a-z_0-9]+) /gm)].map(([, name = '']) => name),
    ],
  ),
)

/** The rows of the page's tables with columns, by their first cell. */
const personal = new Map(
  [...page.matchAll(/^\| `(\w+)` \| [^|]+ \| ([^|]+) \| [^|]+ \|$/gm)].map(([, table = '', cell = '']) => [
    table,
    [...cell.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
  ]),
)

test('every column of every table is named in docs/privacy.md, or is known to have no personal data', () => {
  expect(columns.size).toBeGreaterThan(70)
  expect(personal.size).toBeGreaterThan(40)
  const listed = new Map(
    [...new Set([...personal.keys(), ...Object.keys(others)])].map((table) => [
      table,
      [...(personal.get(table) ?? []), ...(others[table] ?? '').split(' ').filter(Boolean)].toSorted(),
    ]),
  )
  const sorted = (map: ReadonlyMap<string, readonly string[]>) =>
    [...map]
      .map(([table, names]) => [table, names.toSorted()] as const)
      .toSorted(([a], [b]) => (a < b ? -1 : 1))
  expect(sorted(listed)).toEqual(sorted(columns))
})

test('names, texts and numbers of people are never on the list of columns without personal data', () => {
  const telling =
    /^(text|username|phone|email|chat_id|sender_id|provider_id|participants|payload|reply_body|evidence|user_agent)$/
  const wrong = Object.entries(others).flatMap(([table, names]) =>
    names
      .split(' ')
      .filter((name) => telling.test(name) && !(table === 'saved_replies' && name === 'text'))
      .map((name) => `${table}.${name}`),
  )
  expect(wrong).toEqual([])
})
