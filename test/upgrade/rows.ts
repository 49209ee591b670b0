/** Rows for the tables that a demo leaves empty, so that a release's backup has some in every table. */

/** The first chat of the demo, and whose it is. */
const chat = `(
  select c.workspace_id, c.account_id, c.chat_id, k.id as key_id, k.user_id
  from chats c join keys k on k.workspace_id = c.workspace_id order by c.account_id, c.chat_id limit 1) as demo`

/** By table. A release that does not have the table yet skips it. In this order: later rows refer to earlier ones. */
export const rowsOf: Readonly<Record<string, string>> = {
  approvals: `
    insert into approvals (id, workspace_id, user_id, key_id, client_name, operation, account_id, chat_id, payload, fingerprint,
      expires_at)
    select gen_random_uuid(), workspace_id, user_id, key_id, 'an agent', 'send_message', account_id, chat_id,
      '{"text": "hello"}', sha256('payload'), now() + interval '1 day' from ${chat}`,
  column_values: `
    insert into column_values (account_id, chat_id, column_id, workspace_id, value)
    select account_id, chat_id, id, demo.workspace_id, '{a value}' from ${chat}
    join columns on columns.workspace_id = demo.workspace_id and type = 'text' limit 1`,
  deleted_messages: `
    insert into deleted_messages (account_id, id, chat_id, workspace_id)
    select account_id, 999999, chat_id, workspace_id from ${chat}`,
  // A trigger adds them to `stored_bytes`.
  file_chunks: `
    insert into file_chunks (file_id, n, workspace_id, bytes) select gen_random_uuid(), 0, workspace_id, 'bytes' from ${chat}`,
  hand_messages: `
    insert into hand_messages (id, workspace_id, account_id, platform, chat_id, message_id, sent_at)
    select gen_random_uuid(), workspace_id, account_id, 'sandbox', 999999, 999999, now() from ${chat}`,
  erasures: `
    insert into erasures (id, workspace_id, person_id, platform, number, actor, contact_allowed, tombstones, done_at)
    select gen_random_uuid(), p.workspace_id, p.id, p.platform, p.number, 'cli:ana', false, array[sha256('name')], now()
    from people p limit 1`,
  tombstones: `
    insert into tombstones (workspace_id, hash, platform, number)
    select workspace_id, sha256('name'), platform, number from people limit 1`,
  erased_chats: `
    insert into erased_chats (account_id, chat_id, workspace_id, erased_at)
    select account_id, 999999, workspace_id, now() from ${chat}`,
  identities: `
    insert into identities (issuer, subject, user_id, idp_user_uuid)
    select 'https://id.example.com', 'subject', user_id, gen_random_uuid() from ${chat}`,
  sessions: `
    insert into sessions (token_hash, user_id, expires_at, id, issuer, subject, user_agent)
    select sha256('token'), user_id, now() + interval '1 day', gen_random_uuid(), 'https://id.example.com', 'subject', 'a browser'
    from ${chat}`,
  suppressions: `
    insert into suppressions (workspace_id, kind, value, source) select workspace_id, 'username', 'nobody', 'operator' from ${chat}`,
  search_stale: `
    insert into search_stale (account_id, sent_at, chat_id, id, listing, workspace_id)
    select account_id, now(), chat_id, 999999, 0, workspace_id from ${chat}`,
  search_forgetting: `
    insert into search_forgetting (account_id, workspace_id, due_at) select account_id, workspace_id, now() from ${chat}`,
  retention: `
    insert into retention (workspace_id, notes_days) select workspace_id, 3650 from ${chat}`,
  search_pending: `
    insert into search_pending (account_id, sent_at, chat_id, id, workspace_id)
    select m.account_id, m.sent_at, m.chat_id, m.id, m.workspace_id from messages m limit 1`,
  outbox: `
    insert into outbox (workspace_id, type, occurred_at, data) select workspace_id, 'demo.event', now(), '{}' from ${chat}`,
  account_strikes: `
    insert into account_strikes (account_id, workspace_id, kind, at, seconds)
    select account_id, workspace_id, 'flood', now(), 30 from ${chat}`,
  webhook_deliveries: `
    insert into webhook_deliveries (id, workspace_id, webhook_id, event_id, type, body, due_at, created_at)
    select gen_random_uuid(), workspace_id, id, 'event', 'webhook.test', '{}', now(), now() from webhooks limit 1`,
  webhook_attempts: `
    insert into webhook_attempts (delivery_id, n, workspace_id, at, ms, error)
    select id, 1, workspace_id, now(), 3, 'refused' from webhook_deliveries limit 1`,
  notes: `
    insert into notes (id, workspace_id, account_id, chat_id, author_id, text)
    select gen_random_uuid(), workspace_id, account_id, chat_id, user_id, 'a note' from ${chat}`,
  saved_replies: `
    insert into saved_replies (id, workspace_id, title, text)
    select gen_random_uuid(), workspace_id, 'Hello', 'Hello, how can I help?' from ${chat}`,
  platform_sessions: `
    insert into platform_sessions (account_id, platform, platform_user_id, sealed)
    select account_id, 'telegram', 4711, 'sealed' from ${chat}`,
  login_numbers: `
    insert into login_numbers (id, workspace_id, number_hash)
    select gen_random_uuid(), workspace_id, sha256('number') from ${chat}`,
  platform_peers: `insert into platform_peers (account_id, number, text) select account_id, 1, 'peer' from ${chat}`,
}

/**
 * Tables without a row in any backup: a manual clock would stop the time of the instance, and time is simulated in tests only. The
 * others are left out of backups.
 */
export const emptyTables: readonly string[] = [
  'manual_clock',
  'simulated_time',
  'schema_migrations',
  'workers',
  'alerts',
  'alert_posts',
]
