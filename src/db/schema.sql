-- Made by `npm run generated` from the catalogs of a migrated database. Do not edit.

create table account_days (
  account_id text not null,
  day date not null,
  workspace_id uuid not null,
  used integer not null default 0,
  sent integer not null default 0,
  cold integer not null default 0,
  lookups integer not null default 0,
  used_cold integer not null default 0,
  CHECK ((used >= 0)),
  CHECK ((used_cold >= 0)),
  PRIMARY KEY (account_id, day)
);

create table account_hosts (
  account_id text not null,
  workspace_id uuid not null,
  lease_owner uuid,
  lease_epoch bigint not null default 0,
  lease_until timestamp with time zone,
  observed_at timestamp with time zone,
  flood_until timestamp with time zone,
  next_campaign_at timestamp with time zone,
  position text,
  writes bigint not null default 0,
  ready_run bigint,
  confirmed_run bigint,
  lookup_flood_until timestamp with time zone,
  reading_flood_until timestamp with time zone,
  cold_stopped_at timestamp with time zone,
  gap_since timestamp with time zone,
  heard_at timestamp with time zone,
  handed_over_at timestamp with time zone,
  takeover_seconds integer not null default 0,
  unlisted_error text,
  unlisted_sends integer not null default 0,
  campaigns_held_at timestamp with time zone,
  campaigns_held_by text,
  login_code_at timestamp with time zone,
  tidied boolean not null default false,
  CHECK (((campaigns_held_at IS NULL) = (campaigns_held_by IS NULL))),
  CHECK ((campaigns_held_by ~ '^[A-Za-z0-9_]{1,64}$'::text)),
  CHECK ((unlisted_error ~ '^[A-Za-z0-9_]{1,64}$'::text)),
  PRIMARY KEY (account_id)
);

create unlogged table account_logins (
  account_id text not null,
  workspace_id uuid not null,
  actor text not null,
  way text not null,
  state text not null,
  attempt uuid not null,
  begins timestamp with time zone[] not null default '{}'::timestamp with time zone[],
  begun_at timestamp with time zone not null default domain_now(),
  alive_until timestamp with time zone not null,
  worker_id uuid,
  shown bytea,
  typed bytea,
  failure jsonb,
  CHECK (((state <> ALL (ARRAY['done'::text, 'failed'::text])) OR ((shown IS NULL) AND (typed IS NULL)))),
  CHECK (((state = 'failed'::text) = (failure IS NOT NULL))),
  CHECK ((state = ANY (ARRAY['qr'::text, 'code'::text, 'password'::text, 'ending'::text, 'done'::text, 'failed'::text]))),
  CHECK ((way = ANY (ARRAY['qr'::text, 'phone'::text, 'logout'::text]))),
  PRIMARY KEY (account_id)
);

create table account_strikes (
  id bigint not null generated always as identity,
  account_id text not null,
  workspace_id uuid not null,
  at timestamp with time zone not null default domain_now(),
  kind text not null,
  seconds integer,
  operation_id uuid,
  PRIMARY KEY (id)
);

create table account_sync (
  account_id text not null,
  workspace_id uuid not null,
  phase text not null default 'chats'::text,
  cursor text,
  chats_total integer not null default 0,
  chats_synced integer not null default 0,
  updated_at timestamp with time zone not null default domain_now(),
  chats_expected integer,
  history_total integer,
  CHECK ((phase = ANY (ARRAY['chats'::text, 'contacts'::text, 'history'::text, 'done'::text]))),
  PRIMARY KEY (account_id)
);

create table accounts (
  id text not null,
  workspace_id uuid not null,
  platform text not null,
  name text not null,
  status text not null default 'CONNECTING'::text,
  status_reason text,
  platform_user_id bigint,
  username text,
  phone text,
  created_at timestamp with time zone not null default domain_now(),
  cold_per_day integer,
  cold_ramp_from date,
  proxy text,
  proxy_sealed bytea,
  CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  CHECK (((proxy IS NULL) = (proxy_sealed IS NULL))),
  CHECK ((cold_per_day >= 0)),
  CHECK ((id ~ '^acc_[0-9A-Za-z]{1,64}$'::text)),
  CHECK ((platform = ANY (ARRAY['sandbox'::text, 'telegram'::text]))),
  CHECK ((status = ANY (ARRAY['CONNECTING'::text, 'READY'::text, 'NEEDS_LOGIN'::text, 'RESTRICTED'::text, 'DISABLED'::text]))),
  PRIMARY KEY (id),
  UNIQUE (workspace_id, id)
);

create table alert_posts (
  id uuid not null,
  kind text not null,
  subject text not null,
  text text not null,
  at timestamp with time zone not null default real_now(),
  attempts integer not null default 0,
  due_at timestamp with time zone not null default real_now(),
  last_error text,
  PRIMARY KEY (id)
);

create table alerts (
  kind text not null,
  subject text not null,
  wrong_since timestamp with time zone,
  right_since timestamp with time zone,
  begun_at timestamp with time zone,
  open boolean not null default false,
  over_text text not null,
  begins timestamp with time zone[] not null default '{}'::timestamp with time zone[],
  PRIMARY KEY (kind, subject)
);

create table allowlists (
  list text not null,
  id uuid not null,
  created_at timestamp with time zone not null default domain_now(),
  CHECK ((list = ANY (ARRAY['campaign_user'::text, 'campaign_workspace'::text]))),
  PRIMARY KEY (list, id)
);

create table approvals (
  id uuid not null,
  workspace_id uuid not null,
  user_id uuid not null,
  key_id uuid not null,
  client_name text,
  operation text not null,
  account_id text not null,
  platform_user_id bigint,
  chat_id bigint not null,
  payload json not null,
  fingerprint bytea not null,
  field_before text[],
  state text not null default 'waiting'::text,
  created_at timestamp with time zone not null default domain_now(),
  expires_at timestamp with time zone not null,
  decided_at timestamp with time zone,
  issuer text,
  subject text,
  idp_user_uuid uuid,
  token_hash bytea,
  token_expires_at timestamp with time zone,
  generation uuid,
  used_at timestamp with time zone,
  CHECK (((char_length(client_name) >= 1) AND (char_length(client_name) <= 200))),
  CHECK (((state = 'used'::text) = (used_at IS NOT NULL))),
  CHECK (((state = 'waiting'::text) = (decided_at IS NULL))),
  CHECK ((num_nulls(issuer, subject, idp_user_uuid, token_hash, token_expires_at, generation) =
CASE
    WHEN (state = ANY (ARRAY['approved'::text, 'used'::text])) THEN 0
    ELSE 6
END)),
  CHECK ((octet_length(fingerprint) = 32)),
  CHECK ((octet_length(token_hash) = 32)),
  CHECK ((state = ANY (ARRAY['waiting'::text, 'approved'::text, 'denied'::text, 'used'::text]))),
  PRIMARY KEY (id),
  UNIQUE (token_hash)
);

create table audit (
  seq bigint not null,
  at timestamp with time zone not null,
  workspace_id uuid,
  actor text not null,
  action text not null,
  target text not null,
  detail text not null,
  hash bytea not null,
  CHECK ((octet_length(hash) = 32)),
  PRIMARY KEY (seq)
);

create table campaign_accounts (
  campaign_id uuid not null,
  account_id text not null,
  workspace_id uuid not null,
  pool boolean not null default false,
  queued integer not null default 0,
  submitting integer not null default 0,
  waiting integer not null default 0,
  completed integer not null default 0,
  replied integer not null default 0,
  failed integer not null default 0,
  ambiguous integer not null default 0,
  cancelled integer not null default 0,
  suppressed integer not null default 0,
  has_open boolean not null generated always as ((((queued + submitting) + waiting) > 0)) stored,
  due_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  CHECK ((LEAST(queued, submitting, waiting, completed, replied, failed, ambiguous, cancelled, suppressed) >= 0)),
  PRIMARY KEY (campaign_id, account_id)
);

create table campaign_counts (
  workspace_id uuid not null,
  at timestamp with time zone not null,
  campaign_id uuid not null,
  account_id text not null,
  sent bigint not null default 0,
  failed bigint not null default 0,
  ambiguous bigint not null default 0,
  reached bigint not null default 0,
  replied bigint not null default 0,
  opted_out bigint not null default 0,
  PRIMARY KEY (workspace_id, at, campaign_id, account_id)
);

create table campaign_people (
  campaign_id uuid not null,
  person_id uuid not null,
  workspace_id uuid not null,
  recipient_id uuid not null,
  PRIMARY KEY (campaign_id, person_id)
);

create table campaign_recipients (
  id uuid not null,
  campaign_id uuid not null,
  workspace_id uuid not null,
  account_id text,
  chat_id bigint,
  identifier text,
  name text,
  status text not null default 'queued'::text,
  step integer not null default 0,
  next_action_at timestamp with time zone,
  last_sent_at timestamp with time zone,
  position integer not null,
  contact text not null,
  username text,
  version integer not null default 0,
  variant integer,
  branch text,
  last_message_id bigint,
  reads timestamp with time zone[] not null default '{}'::timestamp with time zone[],
  replied_at timestamp with time zone,
  reply_message_id bigint,
  reply_step integer,
  reply_variant integer,
  reply_branch text,
  opted_out boolean not null default false,
  reason text,
  unknown_since timestamp with time zone,
  ended_at timestamp with time zone,
  found_id bigint,
  found_username text,
  found_phone text,
  reply_account_id text,
  person_id uuid,
  told_name text,
  asked_at timestamp with time zone,
  unfound_at timestamp with time zone,
  must_look_up boolean not null default false,
  CHECK (((ended_at IS NULL) OR (status <> ALL (ARRAY['queued'::text, 'submitting'::text, 'waiting'::text])))),
  CHECK (((status <> ALL (ARRAY['queued'::text, 'waiting'::text])) OR (next_action_at IS NOT NULL))),
  CHECK (((status <> ALL (ARRAY['submitting'::text, 'waiting'::text, 'completed'::text, 'replied'::text])) OR ((account_id IS NOT NULL) AND (chat_id IS NOT NULL)))),
  CHECK (((unknown_since IS NULL) OR (status = ANY (ARRAY['submitting'::text, 'ambiguous'::text])))),
  CHECK ((branch = ANY (ARRAY['no_reply'::text, 'seen'::text, 'unseen'::text]))),
  CHECK ((status = ANY (ARRAY['queued'::text, 'submitting'::text, 'waiting'::text, 'completed'::text, 'replied'::text, 'failed'::text, 'ambiguous'::text, 'cancelled'::text, 'suppressed'::text]))),
  PRIMARY KEY (id),
  UNIQUE (campaign_id, "position"),
  UNIQUE (campaign_id, contact)
);

create table campaign_steps (
  campaign_id uuid not null,
  workspace_id uuid not null,
  position integer not null,
  branch text not null,
  wait_hours double precision not null,
  variants text[] not null,
  CHECK (((cardinality(variants) >= 1) AND (cardinality(variants) <= 5))),
  CHECK ((branch = ANY (ARRAY['no_reply'::text, 'seen'::text, 'unseen'::text]))),
  CHECK ((wait_hours <= (87600)::double precision)),
  CHECK ((wait_hours >= (0.0833)::double precision)),
  PRIMARY KEY (campaign_id, "position")
);

create table campaigns (
  id uuid not null,
  workspace_id uuid not null,
  user_id uuid not null,
  kind text not null,
  name text,
  status text not null,
  message_text text not null,
  branching_enabled boolean not null default false,
  daily_quota_per_account integer default 30,
  max_followups integer not null default 2,
  scheduled_at timestamp with time zone,
  schedule_timezone text not null default 'UTC'::text,
  created_at timestamp with time zone not null default domain_now(),
  started_at timestamp with time zone,
  completed_at timestamp with time zone,
  cancelled_at timestamp with time zone,
  sequence boolean not null default false,
  pause_reason text,
  audience_total integer,
  stop_on_own_message boolean not null default false,
  names_cleared_to integer,
  names_cleared_at timestamp with time zone,
  CHECK (((audience_total IS NULL) = (kind <> 'broadcast'::text))),
  CHECK (((char_length(message_text) >= 1) AND (char_length(message_text) <= 4096))),
  CHECK (((daily_quota_per_account >= 1) AND (daily_quota_per_account <= 200))),
  CHECK (((daily_quota_per_account IS NULL) = (kind = 'broadcast'::text))),
  CHECK (((max_followups >= 0) AND (max_followups <= 5))),
  CHECK (((status = 'cancelled'::text) = (cancelled_at IS NOT NULL))),
  CHECK (((status = 'paused'::text) = (pause_reason IS NOT NULL))),
  CHECK ((char_length(name) <= 200)),
  CHECK ((kind = ANY (ARRAY['scoped'::text, 'contacts'::text, 'broadcast'::text, 'legacy'::text]))),
  CHECK ((pause_reason = ANY (ARRAY['requested'::text, 'late'::text]))),
  CHECK ((status = ANY (ARRAY['scheduled'::text, 'queued'::text, 'sending'::text, 'paused'::text, 'cancelled'::text, 'completed'::text]))),
  PRIMARY KEY (id),
  UNIQUE (workspace_id, id)
);

create table chat_sync (
  account_id text not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  oldest_id bigint,
  complete boolean not null default false,
  wanted_at timestamp with time zone,
  gap_after bigint,
  PRIMARY KEY (account_id, chat_id)
);

create table chats (
  account_id text not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  kind text not null,
  name text not null default ''::text,
  username text,
  participants jsonb not null default '[]'::jsonb,
  last_message_id bigint,
  last_message_text text,
  last_message_at timestamp with time zone not null default '-infinity'::timestamp with time zone,
  unread_count integer not null default 0,
  read_by_them_id bigint,
  read_by_them_at timestamp with time zone,
  stage_key text not null default 'new'::text,
  name_tokens tsvector,
  placed_at timestamp with time zone,
  last_is_sender boolean,
  last_sender_of bigint,
  assignee_id uuid,
  CHECK ((kind = ANY (ARRAY['private'::text, 'group'::text, 'channel'::text]))),
  CHECK ((unread_count >= 0)),
  PRIMARY KEY (account_id, chat_id)
);

create table column_options (
  workspace_id uuid not null,
  column_id uuid not null,
  value text not null,
  color text,
  position integer not null,
  deleted_at timestamp with time zone,
  CHECK (((char_length(value) >= 1) AND (char_length(value) <= 200))),
  PRIMARY KEY (column_id, value)
);

create table column_values (
  account_id text not null,
  chat_id bigint not null,
  column_id uuid not null,
  workspace_id uuid not null,
  value text[] not null,
  updated_at timestamp with time zone not null default domain_now(),
  CHECK ((cardinality(value) > 0)),
  PRIMARY KEY (account_id, chat_id, column_id)
);

create table columns (
  id uuid not null,
  workspace_id uuid not null,
  name text not null,
  type text not null,
  position integer not null,
  created_at timestamp with time zone not null default domain_now(),
  CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  CHECK ((type = ANY (ARRAY['select'::text, 'multi_select'::text, 'text'::text, 'number'::text, 'date'::text, 'checkbox'::text, 'url'::text]))),
  PRIMARY KEY (id),
  UNIQUE (workspace_id, id)
);

create table contacts (
  account_id text not null,
  provider_id bigint not null,
  workspace_id uuid not null,
  name text not null default ''::text,
  username text,
  phone text,
  sort_name text not null default ''::text,
  name_tokens tsvector not null default ''::tsvector,
  PRIMARY KEY (account_id, provider_id)
);

create table deleted_messages (
  account_id text not null,
  id bigint not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  PRIMARY KEY (account_id, id, chat_id)
);

create table erased_chats (
  account_id text not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  erased_at timestamp with time zone not null,
  last_id bigint not null default 0,
  from_id bigint,
  PRIMARY KEY (account_id, chat_id)
);

create table erasures (
  id uuid not null,
  workspace_id uuid not null,
  person_id uuid not null,
  platform text not null,
  number bigint not null,
  actor text not null,
  contact_allowed boolean not null,
  tombstones bytea[] not null,
  at timestamp with time zone not null default domain_now(),
  step text not null default 'begin'::text,
  after text,
  cleared integer not null default 0,
  total integer not null default 0,
  done_at timestamp with time zone,
  PRIMARY KEY (id)
);

create table event_sequences (
  workspace_id uuid not null,
  sequence bigint not null,
  PRIMARY KEY (workspace_id)
);

create unlogged table event_waits (
  id uuid not null,
  workspace_id uuid not null,
  caller text not null,
  expires_at timestamp with time zone not null,
  PRIMARY KEY (id)
);

create table events (
  workspace_id uuid not null,
  sequence bigint not null,
  id text not null,
  type text not null,
  occurred_at timestamp with time zone not null,
  created_at timestamp with time zone not null default domain_now(),
  data json not null,
  traceparent text,
  PRIMARY KEY (workspace_id, sequence)
);

create table file_chunks (
  file_id uuid not null,
  n integer not null,
  workspace_id uuid not null,
  bytes bytea not null,
  stored_at timestamp with time zone not null default clock_timestamp(),
  PRIMARY KEY (file_id, n)
);

create table gates (
  name text not null,
  enabled boolean not null,
  changed_at timestamp with time zone not null default domain_now(),
  PRIMARY KEY (name)
);

create table hand_messages (
  id uuid not null,
  workspace_id uuid not null,
  account_id text not null,
  platform text not null,
  chat_id bigint not null,
  operation_id uuid,
  message_id bigint,
  sent_at timestamp with time zone,
  CHECK ((((operation_id IS NULL) = (message_id IS NOT NULL)) AND ((message_id IS NULL) = (sent_at IS NULL)))),
  CHECK ((chat_id > 0)),
  PRIMARY KEY (id),
  UNIQUE (account_id, chat_id, message_id),
  UNIQUE (operation_id)
);

create unlogged table history_questions (
  id uuid not null,
  account_id text not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  since timestamp with time zone not null,
  asked_at timestamp with time zone not null default clock_timestamp(),
  answered_at timestamp with time zone,
  shown jsonb,
  CHECK (((shown IS NULL) OR (answered_at IS NOT NULL))),
  PRIMARY KEY (id)
);

create table identities (
  issuer text not null,
  subject text not null,
  user_id uuid not null,
  idp_user_uuid uuid not null,
  created_at timestamp with time zone not null default domain_now(),
  PRIMARY KEY (issuer, subject)
);

create table instance (
  singleton boolean not null default true,
  id uuid not null default gen_random_uuid(),
  restore_counter bigint not null default 0,
  generation uuid not null default gen_random_uuid(),
  restore_counter_at timestamp with time zone not null default clock_timestamp(),
  run_no bigint not null default 0,
  run text,
  removed_id uuid,
  unconfirmed_since timestamp with time zone,
  CHECK (singleton),
  PRIMARY KEY (singleton)
);

create table keys (
  id uuid not null,
  workspace_id uuid not null,
  user_id uuid not null,
  name text not null,
  prefix text not null,
  hash bytea not null,
  scopes text[] not null,
  mcp_only boolean not null default false,
  created_at timestamp with time zone not null default domain_now(),
  expires_at timestamp with time zone,
  revoked_at timestamp with time zone,
  last_used_at timestamp with time zone,
  issued_by text,
  CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  CHECK (((scopes <@ ARRAY['read'::text, 'write'::text, 'send'::text, 'campaigns'::text, 'people'::text, 'people_export'::text, 'people_erase'::text]) AND (cardinality(scopes) > 0))),
  CHECK ((issued_by = ANY (ARRAY['user'::text, 'operator'::text]))),
  CHECK ((octet_length(hash) = 32)),
  PRIMARY KEY (id),
  UNIQUE (hash)
);

create table login_numbers (
  id uuid not null,
  workspace_id uuid not null,
  number_hash bytea not null,
  begun_at timestamp with time zone not null default domain_now(),
  CHECK ((octet_length(number_hash) = 32)),
  PRIMARY KEY (id)
);

create table manual_clock (
  singleton boolean not null default true,
  at timestamp with time zone not null,
  CHECK (singleton),
  PRIMARY KEY (singleton)
);

create unlogged table media_chunks (
  file_id uuid not null,
  n integer not null,
  bytes bytea not null,
  PRIMARY KEY (file_id, n)
);

create unlogged table media_files (
  id uuid not null,
  account_id text not null,
  chat_id bigint not null,
  message_id bigint not null,
  index integer not null,
  workspace_id uuid not null,
  wanted_at timestamp with time zone not null default clock_timestamp(),
  size bigint,
  ended_at timestamp with time zone,
  failure text,
  head bytea,
  CHECK (((ended_at IS NULL) OR (failure IS NOT NULL) OR (size IS NOT NULL))),
  CHECK (((failure IS NULL) OR (ended_at IS NOT NULL))),
  CHECK ((failure = ANY (ARRAY['gone'::text, 'too_large'::text, 'unavailable'::text]))),
  CHECK ((size >= 0)),
  PRIMARY KEY (id),
  UNIQUE (account_id, chat_id, message_id, index)
);

create table memberships (
  workspace_id uuid not null,
  user_id uuid not null,
  role text not null,
  created_at timestamp with time zone not null default domain_now(),
  ended_at timestamp with time zone,
  CHECK ((role = ANY (ARRAY['owner'::text, 'admin'::text, 'member'::text]))),
  PRIMARY KEY (workspace_id, user_id)
);

create table message_counts (
  workspace_id uuid not null,
  span text not null,
  at timestamp with time zone not null,
  account_id text not null,
  received bigint not null default 0,
  sent bigint not null default 0,
  CHECK ((span = ANY (ARRAY['all'::text, 'day'::text, 'quarter'::text]))),
  PRIMARY KEY (workspace_id, span, at, account_id)
);

create table messages (
  account_id text not null,
  chat_id bigint not null,
  id bigint not null,
  workspace_id uuid not null,
  text text not null,
  is_sender boolean not null,
  sender_id bigint,
  sent_at timestamp(3) with time zone not null,
  edited_at timestamp with time zone,
  deleted_at timestamp with time zone,
  attachments jsonb not null default '[]'::jsonb,
  random_id bigint,
  announced boolean not null default false,
  listing smallint not null default 0,
  PRIMARY KEY (account_id, chat_id, id)
);

create table note_answers (
  one boolean not null default true,
  after_workspace_id uuid,
  after_key text not null default ''::text,
  done_at timestamp with time zone,
  CHECK (one),
  PRIMARY KEY (one)
);

create table notes (
  id uuid not null,
  workspace_id uuid not null,
  account_id text not null,
  chat_id bigint not null,
  author_id uuid not null,
  text text not null,
  created_at timestamp(3) with time zone not null default domain_now(),
  cleared_at timestamp with time zone,
  CHECK (((char_length(text) <= 4096) AND ((text = ''::text) = (cleared_at IS NOT NULL)))),
  PRIMARY KEY (id)
);

create table operations (
  id uuid not null,
  workspace_id uuid not null,
  kind text not null,
  effect text not null,
  idempotency_key text,
  fingerprint bytea not null,
  state text not null,
  reason text,
  user_id uuid,
  key_id uuid,
  account_id text,
  chat_id bigint,
  payload jsonb,
  random_id bigint,
  attempt_no integer not null default 0,
  attempt_token uuid,
  owner uuid,
  lease_until timestamp with time zone,
  expires_at timestamp with time zone,
  reply_status integer,
  reply_body json,
  reconciled boolean not null default false,
  closed_as text,
  created_at timestamp with time zone not null default domain_now(),
  finished_at timestamp with time zone,
  detail text,
  file_id uuid,
  proof_message_id bigint,
  proof_at timestamp with time zone,
  hint_message_id bigint,
  looked_for_at timestamp with time zone,
  closed_at timestamp with time zone,
  public_id uuid,
  forgettable boolean not null default false,
  queued_no integer not null default 1,
  crossed_at timestamp with time zone,
  campaign_id uuid,
  recipient_id uuid,
  step_no integer,
  quota_day date,
  cold boolean not null default false,
  cleared_at timestamp with time zone,
  CHECK ((((campaign_id IS NULL) = (recipient_id IS NULL)) AND ((recipient_id IS NULL) = (step_no IS NULL)))),
  CHECK (((char_length(idempotency_key) >= 1) AND (char_length(idempotency_key) <= 255))),
  CHECK (((state <> 'completed'::text) OR (reply_status IS NOT NULL))),
  CHECK ((closed_as = ANY (ARRAY['sent'::text, 'not_sent'::text]))),
  CHECK ((effect = ANY (ARRAY['local'::text, 'platform'::text]))),
  CHECK ((octet_length(fingerprint) = 32)),
  CHECK ((state = ANY (ARRAY['queued'::text, 'submitting'::text, 'completed'::text, 'refused'::text, 'released'::text, 'ambiguous'::text]))),
  CHECK ((step_no >= 0)),
  PRIMARY KEY (id),
  UNIQUE (account_id, random_id),
  UNIQUE (recipient_id, step_no),
  UNIQUE (workspace_id, kind, idempotency_key)
);

create table outbox (
  id bigint not null generated always as identity,
  workspace_id uuid not null,
  type text not null,
  occurred_at timestamp with time zone not null,
  data json not null,
  traceparent text,
  PRIMARY KEY (id)
);

create table people (
  id uuid not null,
  workspace_id uuid not null,
  platform text not null,
  number bigint not null,
  first_seen_at timestamp with time zone not null default domain_now(),
  erased_at timestamp with time zone,
  CHECK ((number > 0)),
  PRIMARY KEY (id),
  UNIQUE (workspace_id, platform, number)
);

create table people_backfill (
  one boolean not null default true,
  after_account_id text not null default ''::text,
  after_number bigint not null default 0,
  done_at timestamp with time zone,
  after_recipient_id uuid,
  tied_at timestamp with time zone,
  CHECK (one),
  PRIMARY KEY (one)
);

create table person_names (
  person_id uuid not null,
  kind text not null,
  value text not null,
  account_id text not null,
  workspace_id uuid not null,
  platform text not null,
  first_seen_at timestamp with time zone not null default domain_now(),
  last_seen_at timestamp with time zone,
  until timestamp with time zone,
  second boolean not null default false,
  CHECK ((kind = ANY (ARRAY['username'::text, 'phone'::text]))),
  CHECK ((value <> ''::text)),
  PRIMARY KEY (person_id, kind, value, account_id)
);

create table platform_peers (
  account_id text not null,
  number bigint not null,
  text text not null,
  PRIMARY KEY (account_id, number)
);

create table platform_sessions (
  account_id text not null,
  platform text not null,
  platform_user_id bigint not null,
  sealed bytea not null,
  created_at timestamp with time zone not null default domain_now(),
  PRIMARY KEY (account_id),
  UNIQUE (platform, platform_user_id)
);

create unlogged table request_log (
  caller text not null,
  hits timestamp with time zone[] not null,
  idle_at timestamp with time zone,
  PRIMARY KEY (caller)
);

create table retention (
  workspace_id uuid not null,
  messages_days integer,
  operations_days integer,
  recipients_days integer,
  notes_days integer,
  CHECK (((messages_days >= 1) AND (messages_days <= 3650))),
  CHECK (((notes_days >= 1) AND (notes_days <= 3650))),
  CHECK (((operations_days >= 1) AND (operations_days <= 3650))),
  CHECK (((recipients_days >= 30) AND (recipients_days <= 3650))),
  PRIMARY KEY (workspace_id)
);

create table saved_replies (
  id uuid not null,
  workspace_id uuid not null,
  title text not null,
  text text not null,
  created_at timestamp with time zone not null default domain_now(),
  updated_at timestamp with time zone not null default domain_now(),
  CHECK (((char_length(text) >= 1) AND (char_length(text) <= 4096))),
  CHECK (((char_length(title) >= 1) AND (char_length(title) <= 100))),
  PRIMARY KEY (id)
);

create table schema_migrations (
  version integer not null,
  name text not null,
  checksum text not null,
  applied_at timestamp with time zone not null default now(),
  PRIMARY KEY (version)
);

create table search_forgetting (
  account_id text not null,
  workspace_id uuid not null,
  due_at timestamp with time zone not null,
  turn bigint not null default 1,
  PRIMARY KEY (account_id)
);

create table search_lists (
  segment_id bigint not null,
  word text not null,
  part integer not null,
  length integer not null,
  bytes bytea not null,
  PRIMARY KEY (segment_id, word, part)
);

create table search_pending (
  account_id text not null,
  sent_at timestamp with time zone not null,
  chat_id bigint not null,
  id bigint not null,
  workspace_id uuid not null,
  since timestamp with time zone not null default clock_timestamp(),
  PRIMARY KEY (account_id, sent_at, chat_id, id)
);

create table search_ranks (
  segment_id bigint not null,
  part integer not null,
  newest_at timestamp with time zone not null,
  bytes bytea not null,
  PRIMARY KEY (segment_id, part)
);

create table search_segments (
  id bigint not null generated always as identity,
  account_id text not null,
  workspace_id uuid not null,
  messages integer not null,
  oldest_at timestamp with time zone not null,
  newest_at timestamp with time zone not null,
  format smallint not null default 1,
  CHECK ((messages >= 0)),
  PRIMARY KEY (id)
);

create table search_stale (
  account_id text not null,
  sent_at timestamp with time zone not null,
  chat_id bigint not null,
  id bigint not null,
  listing smallint not null,
  workspace_id uuid not null,
  PRIMARY KEY (account_id, sent_at, chat_id, id, listing)
);

create table secret_use (
  one boolean not null default true,
  secret_id text not null,
  old_id text,
  turn integer not null default 0,
  addresses_sealed boolean not null default false,
  CHECK ((old_id <> secret_id)),
  CHECK (one),
  PRIMARY KEY (one)
);

create table sessions (
  token_hash bytea not null,
  user_id uuid not null,
  created_at timestamp with time zone not null default domain_now(),
  last_seen_at timestamp with time zone not null default domain_now(),
  expires_at timestamp with time zone not null,
  id uuid not null,
  issuer text not null,
  subject text not null,
  user_agent text not null default ''::text,
  revoked_at timestamp with time zone,
  CHECK ((char_length(user_agent) <= 300)),
  CHECK ((octet_length(token_hash) = 32)),
  PRIMARY KEY (token_hash),
  UNIQUE (id)
);

create table settings (
  name text not null,
  value jsonb not null,
  PRIMARY KEY (name)
);

create table setup_links (
  token_hash bytea not null,
  user_id uuid not null,
  created_at timestamp with time zone not null default domain_now(),
  expires_at timestamp with time zone not null,
  used_at timestamp with time zone,
  made_by uuid,
  CHECK ((octet_length(token_hash) = 32)),
  PRIMARY KEY (token_hash)
);

create table simulated_time (
  singleton boolean not null default true,
  at timestamp with time zone not null,
  CHECK (singleton),
  PRIMARY KEY (singleton)
);

create table stages (
  workspace_id uuid not null,
  key text not null,
  label text not null,
  terminal boolean not null default false,
  hidden boolean not null default false,
  position integer not null,
  created_at timestamp with time zone not null default domain_now(),
  color text,
  CHECK (((char_length(label) >= 1) AND (char_length(label) <= 200))),
  CHECK (((key <> 'new'::text) OR (NOT hidden))),
  CHECK ((color ~* '^(#[0-9a-f]{6}|[a-z]{1,20})$'::text)),
  CHECK ((key ~ '^[a-z0-9][a-z0-9_-]{0,63}$'::text)),
  PRIMARY KEY (workspace_id, key)
);

create table stored_bytes (
  workspace_id uuid not null,
  bytes bigint not null,
  CHECK ((bytes >= 0)),
  PRIMARY KEY (workspace_id)
);

create table stored_keys (
  purpose text not null,
  sealed bytea not null,
  PRIMARY KEY (purpose)
);

create table suppressions (
  workspace_id uuid not null,
  kind text not null,
  value text not null,
  source text not null,
  evidence jsonb not null default '{}'::jsonb,
  created_at timestamp with time zone not null default domain_now(),
  CHECK ((kind = ANY (ARRAY['platform_id'::text, 'username'::text, 'phone'::text]))),
  CHECK ((source = ANY (ARRAY['operator'::text, 'import'::text, 'opt_out'::text]))),
  PRIMARY KEY (workspace_id, kind, value)
);

create table tombstones (
  workspace_id uuid not null,
  hash bytea not null,
  platform text not null,
  number bigint not null,
  CHECK ((octet_length(hash) = 32)),
  PRIMARY KEY (workspace_id, hash, platform, number)
);

create table users (
  id uuid not null,
  email text not null,
  name text not null default ''::text,
  password_hash text,
  operator boolean not null default false,
  created_at timestamp with time zone not null default domain_now(),
  disabled_at timestamp with time zone,
  time_zone text,
  CHECK (((char_length(email) >= 3) AND (char_length(email) <= 320))),
  CHECK (((char_length(time_zone) >= 1) AND (char_length(time_zone) <= 64))),
  PRIMARY KEY (id)
);

create table webhook_attempts (
  delivery_id uuid not null,
  n integer not null,
  workspace_id uuid not null,
  at timestamp with time zone not null,
  status integer,
  ms integer not null,
  error text,
  response text,
  PRIMARY KEY (delivery_id, n)
);

create table webhook_deliveries (
  id uuid not null,
  workspace_id uuid not null,
  webhook_id uuid not null,
  sequence bigint,
  event_id text not null,
  type text not null,
  body text,
  state text not null default 'pending'::text,
  attempts integer not null default 0,
  series_attempts integer not null default 0,
  due_at timestamp with time zone,
  created_at timestamp with time zone not null,
  delivered_at timestamp with time zone,
  last_at timestamp with time zone,
  last_status integer,
  last_ms integer,
  last_error text,
  traceparent text,
  CHECK (((sequence IS NULL) = (body IS NOT NULL))),
  CHECK (((state = 'delivered'::text) = (delivered_at IS NOT NULL))),
  CHECK (((state = 'pending'::text) = (due_at IS NOT NULL))),
  CHECK ((state = ANY (ARRAY['pending'::text, 'delivered'::text, 'failed'::text]))),
  PRIMARY KEY (id),
  UNIQUE (webhook_id, sequence)
);

create table webhooks (
  id uuid not null,
  workspace_id uuid not null,
  url text not null,
  events text[] not null,
  secret bytea not null,
  previous_secret bytea,
  previous_until timestamp with time zone,
  active boolean not null default true,
  created_at timestamp with time zone not null default domain_now(),
  position bigint not null,
  consecutive_failures integer not null default 0,
  probe_at timestamp with time zone,
  probe_gap_seconds integer,
  disabled_at timestamp with time zone,
  lease_owner uuid,
  lease_until timestamp with time zone,
  deleted_at timestamp with time zone,
  made_by uuid,
  stop_reason text,
  url_sealed bytea,
  url_no integer not null default 0,
  CHECK (((deleted_at IS NULL) OR (NOT active))),
  CHECK (((previous_secret IS NULL) = (previous_until IS NULL))),
  CHECK (((probe_at IS NULL) = (probe_gap_seconds IS NULL))),
  CHECK (((url <> ''::text) OR (url_sealed IS NOT NULL))),
  CHECK ((cardinality(events) > 0)),
  CHECK ((char_length(url) <= 2048)),
  CHECK ((consecutive_failures >= 0)),
  CHECK ((stop_reason = ANY (ARRAY['maker_removed'::text, 'maker_disabled'::text]))),
  PRIMARY KEY (id),
  UNIQUE (workspace_id, id)
);

create table workers (
  id uuid not null,
  started_at timestamp with time zone not null default clock_timestamp(),
  beat_at timestamp with time zone not null default clock_timestamp(),
  stopped_at timestamp with time zone,
  owes boolean not null default false,
  drives boolean not null default true,
  platforms text[] not null default '{}'::text[],
  version text not null default ''::text,
  failing text[] not null default '{}'::text[],
  disk_free bigint,
  PRIMARY KEY (id)
);

create table workspaces (
  id uuid not null,
  name text not null,
  timezone text not null default 'UTC'::text,
  created_at timestamp with time zone not null default domain_now(),
  sending_window text,
  disabled_at timestamp with time zone,
  timezone_before text,
  timezone_from timestamp with time zone,
  day_floor date,
  CHECK ((((timezone_before IS NULL) = (timezone_from IS NULL)) AND ((timezone_from IS NULL) = (day_floor IS NULL)))),
  CHECK (((char_length(name) >= 1) AND (char_length(name) <= 200))),
  CHECK (((char_length(sending_window) >= 1) AND (char_length(sending_window) <= 100))),
  PRIMARY KEY (id)
);

-- indexes

CREATE INDEX account_hosts_owner ON public.account_hosts USING btree (lease_owner);
CREATE INDEX account_logins_open ON public.account_logins USING btree (alive_until) WHERE (state <> ALL (ARRAY['done'::text, 'failed'::text]));
CREATE INDEX account_strikes_recent ON public.account_strikes USING btree (account_id, at DESC);
CREATE INDEX accounts_workspace ON public.accounts USING btree (workspace_id, created_at, id);
CREATE INDEX alert_posts_subject ON public.alert_posts USING btree (kind, subject, id);
CREATE INDEX approvals_created ON public.approvals USING btree (created_at);
CREATE INDEX approvals_key ON public.approvals USING btree (key_id, fingerprint, created_at DESC);
CREATE INDEX approvals_user ON public.approvals USING btree (user_id, created_at DESC, id DESC);
CREATE INDEX approvals_waiting ON public.approvals USING btree (key_id, expires_at) WHERE (state = 'waiting'::text);
CREATE INDEX audit_action ON public.audit USING btree (action, seq);
CREATE INDEX audit_actor ON public.audit USING btree (actor, seq);
CREATE INDEX audit_workspace ON public.audit USING btree (workspace_id, seq);
CREATE INDEX campaign_accounts_open ON public.campaign_accounts USING btree (account_id, due_at) WHERE has_open;
CREATE INDEX campaign_accounts_pool ON public.campaign_accounts USING btree (account_id, campaign_id) WHERE pool;
CREATE INDEX campaign_counts_campaign ON public.campaign_counts USING btree (campaign_id, at);
CREATE INDEX campaign_recipients_chat ON public.campaign_recipients USING btree (account_id, chat_id) WHERE (chat_id IS NOT NULL);
CREATE INDEX campaign_recipients_contact ON public.campaign_recipients USING btree (workspace_id, contact) WHERE (ended_at IS NULL);
CREATE INDEX campaign_recipients_due ON public.campaign_recipients USING btree (account_id, campaign_id, status, next_action_at, "position") WHERE (status = ANY (ARRAY['queued'::text, 'waiting'::text]));
CREATE INDEX campaign_recipients_found_id ON public.campaign_recipients USING btree (workspace_id, found_id) WHERE ((found_id IS NOT NULL) AND (ended_at IS NULL));
CREATE INDEX campaign_recipients_found_phone ON public.campaign_recipients USING btree (workspace_id, found_phone) WHERE ((found_phone IS NOT NULL) AND (ended_at IS NULL));
CREATE INDEX campaign_recipients_found_username ON public.campaign_recipients USING btree (workspace_id, found_username) WHERE ((found_username IS NOT NULL) AND (ended_at IS NULL));
CREATE INDEX campaign_recipients_free ON public.campaign_recipients USING btree (campaign_id, next_action_at, "position") WHERE ((account_id IS NULL) AND (status = 'queued'::text));
CREATE INDEX campaign_recipients_open_chat ON public.campaign_recipients USING btree (workspace_id, chat_id) WHERE ((chat_id IS NOT NULL) AND (status = ANY (ARRAY['submitting'::text, 'waiting'::text, 'ambiguous'::text])));
CREATE INDEX campaign_recipients_person ON public.campaign_recipients USING btree (campaign_id, chat_id) WHERE (chat_id IS NOT NULL);
CREATE INDEX campaign_recipients_tied ON public.campaign_recipients USING btree (workspace_id, person_id) WHERE ((person_id IS NOT NULL) AND (ended_at IS NULL));
CREATE INDEX campaign_recipients_unknown ON public.campaign_recipients USING btree (next_action_at) WHERE (status = 'submitting'::text);
CREATE INDEX campaigns_broadcasts ON public.campaigns USING btree (workspace_id, created_at DESC, id DESC) WHERE (kind = 'broadcast'::text);
CREATE INDEX campaigns_open ON public.campaigns USING btree (status, scheduled_at) WHERE (status = ANY (ARRAY['scheduled'::text, 'queued'::text, 'sending'::text, 'paused'::text]));
CREATE INDEX campaigns_recent ON public.campaigns USING btree (workspace_id, created_at DESC, id DESC);
CREATE INDEX campaigns_uncleared ON public.campaigns USING btree (workspace_id, COALESCE(completed_at, cancelled_at)) WHERE ((names_cleared_at IS NULL) AND (status = ANY (ARRAY['completed'::text, 'cancelled'::text])));
CREATE INDEX chat_sync_fresh ON public.chat_sync USING btree (account_id, chat_id) WHERE ((oldest_id IS NULL) AND (NOT complete));
CREATE INDEX chat_sync_gap ON public.chat_sync USING btree (account_id) WHERE (gap_after IS NOT NULL);
CREATE INDEX chat_sync_incomplete ON public.chat_sync USING btree (account_id) WHERE (NOT complete);
CREATE INDEX chat_sync_wanted ON public.chat_sync USING btree (account_id, wanted_at) WHERE (wanted_at IS NOT NULL);
CREATE INDEX chats_assigned ON public.chats USING btree (account_id, assignee_id, last_message_at DESC, chat_id DESC) WHERE (assignee_id IS NOT NULL);
CREATE INDEX chats_placed ON public.chats USING btree (account_id, chat_id) WHERE (placed_at IS NOT NULL);
CREATE INDEX chats_recent ON public.chats USING btree (account_id, last_message_at DESC, chat_id DESC);
CREATE INDEX chats_stage ON public.chats USING btree (account_id, stage_key, last_message_at DESC, chat_id DESC);
CREATE INDEX chats_unanswered ON public.chats USING btree (account_id, last_message_at DESC, chat_id DESC) WHERE (NOT last_is_sender);
CREATE INDEX chats_unread ON public.chats USING btree (account_id, last_message_at DESC, chat_id DESC) WHERE (unread_count > 0);
CREATE INDEX chats_words ON public.chats USING gin (account_id, name_tokens) WHERE (name_tokens IS NOT NULL);
CREATE INDEX column_values_column ON public.column_values USING btree (column_id, account_id, chat_id);
CREATE INDEX contacts_name ON public.contacts USING btree (account_id, sort_name, provider_id);
CREATE INDEX contacts_phone ON public.contacts USING btree (workspace_id, phone_digits(phone)) WHERE (phone IS NOT NULL);
CREATE INDEX contacts_username ON public.contacts USING btree (workspace_id, lower(username)) WHERE (username IS NOT NULL);
CREATE INDEX contacts_words ON public.contacts USING gin (account_id, name_tokens);
CREATE INDEX erasures_open ON public.erasures USING btree (at) WHERE (done_at IS NULL);
CREATE INDEX erasures_person ON public.erasures USING btree (person_id, at);
CREATE INDEX event_waits_workspace ON public.event_waits USING btree (workspace_id, expires_at);
CREATE INDEX events_age ON public.events USING btree (created_at);
CREATE INDEX file_chunks_first ON public.file_chunks USING btree (stored_at) WHERE (n = 0);
CREATE INDEX hand_messages_person ON public.hand_messages USING btree (workspace_id, chat_id);
CREATE INDEX history_questions_open ON public.history_questions USING btree (account_id, id) WHERE (answered_at IS NULL);
CREATE INDEX identities_user ON public.identities USING btree (user_id);
CREATE INDEX keys_workspace ON public.keys USING btree (workspace_id, created_at);
CREATE INDEX login_numbers_begun ON public.login_numbers USING btree (begun_at);
CREATE INDEX login_numbers_number ON public.login_numbers USING btree (number_hash, begun_at);
CREATE INDEX media_files_kept ON public.media_files USING btree (workspace_id, ended_at) INCLUDE (size);
CREATE INDEX media_files_old ON public.media_files USING btree (wanted_at);
CREATE INDEX media_files_wanted ON public.media_files USING btree (account_id, wanted_at) WHERE (ended_at IS NULL);
CREATE INDEX memberships_user ON public.memberships USING btree (user_id);
CREATE INDEX messages_history ON public.messages USING btree (account_id, chat_id, sent_at DESC, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX messages_id ON public.messages USING btree (account_id, id);
CREATE INDEX messages_random ON public.messages USING btree (account_id, random_id) WHERE (random_id IS NOT NULL);
CREATE INDEX messages_received ON public.messages USING btree (account_id, chat_id) WHERE (NOT is_sender);
CREATE INDEX messages_recent ON public.messages USING btree (account_id, sent_at DESC, id DESC) WHERE (deleted_at IS NULL);
CREATE INDEX notes_timeline ON public.notes USING btree (account_id, chat_id, created_at DESC, id DESC);
CREATE INDEX notes_uncleared ON public.notes USING btree (workspace_id, created_at) WHERE (text <> ''::text);
CREATE INDEX operations_ambiguous ON public.operations USING btree (account_id, created_at) WHERE (state = 'ambiguous'::text);
CREATE INDEX operations_attempt ON public.operations USING btree (attempt_token) WHERE (state = ANY (ARRAY['submitting'::text, 'ambiguous'::text]));
CREATE INDEX operations_file ON public.operations USING btree (file_id) WHERE (file_id IS NOT NULL);
CREATE INDEX operations_forgettable ON public.operations USING btree (finished_at) WHERE (forgettable AND (state = ANY (ARRAY['completed'::text, 'refused'::text, 'released'::text])));
CREATE INDEX operations_in_flight ON public.operations USING btree (account_id) WHERE ((state = 'submitting'::text) AND (campaign_id IS NOT NULL));
CREATE INDEX operations_queued ON public.operations USING btree (account_id, chat_id, created_at, id) WHERE (state = 'queued'::text);
CREATE INDEX operations_submitting ON public.operations USING btree (lease_until) WHERE ((state = 'submitting'::text) AND (effect = 'platform'::text));
CREATE INDEX operations_uncleared ON public.operations USING btree (workspace_id, finished_at) WHERE ((cleared_at IS NULL) AND (state = ANY (ARRAY['completed'::text, 'refused'::text, 'released'::text])));
CREATE INDEX operations_unsent ON public.operations USING btree (account_id, chat_id, created_at DESC, id DESC) WHERE (state = ANY (ARRAY['queued'::text, 'submitting'::text, 'refused'::text, 'ambiguous'::text]));
CREATE INDEX person_names_value ON public.person_names USING btree (workspace_id, kind, value);
CREATE INDEX saved_replies_workspace ON public.saved_replies USING btree (workspace_id, title, id);
CREATE INDEX search_ranks_newest ON public.search_ranks USING btree (segment_id, newest_at, part DESC);
CREATE INDEX search_segments_account ON public.search_segments USING btree (account_id);
CREATE INDEX sessions_identity ON public.sessions USING btree (issuer, subject);
CREATE INDEX sessions_user ON public.sessions USING btree (user_id);
CREATE INDEX setup_links_user ON public.setup_links USING btree (user_id);
CREATE UNIQUE INDEX users_email ON public.users USING btree (lower(email));
CREATE INDEX webhook_deliveries_due ON public.webhook_deliveries USING btree (webhook_id, due_at, sequence) WHERE (state = 'pending'::text);
CREATE INDEX webhook_deliveries_listed ON public.webhook_deliveries USING btree (webhook_id, state, created_at, COALESCE(sequence, (0)::bigint), id);
CREATE INDEX webhook_deliveries_tests ON public.webhook_deliveries USING btree (webhook_id) WHERE ((state = 'pending'::text) AND (sequence IS NULL));
CREATE INDEX webhooks_active ON public.webhooks USING btree (workspace_id, "position") WHERE active;
CREATE INDEX webhooks_deleted ON public.webhooks USING btree (id) WHERE (deleted_at IS NOT NULL);
CREATE INDEX webhooks_plain ON public.webhooks USING btree (id) WHERE (url <> ''::text);
CREATE INDEX workers_owing ON public.workers USING btree (id) WHERE owes;

-- foreign keys

alter table account_days add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table account_hosts add FOREIGN KEY (account_id) REFERENCES accounts(id);
alter table account_hosts add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table account_strikes add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table account_sync add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table accounts add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table approvals add FOREIGN KEY (key_id) REFERENCES keys(id);
alter table approvals add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table approvals add FOREIGN KEY (workspace_id, user_id) REFERENCES memberships(workspace_id, user_id);
alter table campaign_accounts add FOREIGN KEY (workspace_id, campaign_id) REFERENCES campaigns(workspace_id, id);
alter table campaign_counts add FOREIGN KEY (workspace_id, campaign_id) REFERENCES campaigns(workspace_id, id);
alter table campaign_people add FOREIGN KEY (person_id) REFERENCES people(id);
alter table campaign_people add FOREIGN KEY (workspace_id, campaign_id) REFERENCES campaigns(workspace_id, id);
alter table campaign_recipients add FOREIGN KEY (person_id) REFERENCES people(id);
alter table campaign_recipients add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table campaign_recipients add FOREIGN KEY (workspace_id, campaign_id) REFERENCES campaigns(workspace_id, id);
alter table campaign_steps add FOREIGN KEY (workspace_id, campaign_id) REFERENCES campaigns(workspace_id, id);
alter table campaigns add FOREIGN KEY (user_id) REFERENCES users(id);
alter table campaigns add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table chat_sync add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table chats add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table chats add FOREIGN KEY (workspace_id, assignee_id) REFERENCES memberships(workspace_id, user_id);
alter table chats add FOREIGN KEY (workspace_id, stage_key) REFERENCES stages(workspace_id, key);
alter table column_options add FOREIGN KEY (workspace_id, column_id) REFERENCES columns(workspace_id, id) ON DELETE CASCADE;
alter table column_values add FOREIGN KEY (account_id, chat_id) REFERENCES chats(account_id, chat_id) ON DELETE CASCADE;
alter table column_values add FOREIGN KEY (workspace_id, column_id) REFERENCES columns(workspace_id, id) ON DELETE CASCADE;
alter table columns add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table contacts add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table deleted_messages add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table erasures add FOREIGN KEY (person_id) REFERENCES people(id);
alter table erasures add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table hand_messages add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table hand_messages add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table identities add FOREIGN KEY (user_id) REFERENCES users(id);
alter table keys add FOREIGN KEY (workspace_id, user_id) REFERENCES memberships(workspace_id, user_id);
alter table login_numbers add FOREIGN KEY (workspace_id) REFERENCES workspaces(id) ON DELETE CASCADE;
alter table media_chunks add FOREIGN KEY (file_id) REFERENCES media_files(id) ON DELETE CASCADE;
alter table memberships add FOREIGN KEY (user_id) REFERENCES users(id);
alter table memberships add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table messages add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table notes add FOREIGN KEY (account_id, chat_id) REFERENCES chats(account_id, chat_id) ON DELETE CASCADE;
alter table notes add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table notes add FOREIGN KEY (workspace_id, author_id) REFERENCES memberships(workspace_id, user_id);
alter table operations add FOREIGN KEY (key_id) REFERENCES keys(id);
alter table operations add FOREIGN KEY (user_id) REFERENCES users(id);
alter table operations add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table operations add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table people add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table person_names add FOREIGN KEY (person_id) REFERENCES people(id);
alter table person_names add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table person_names add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table platform_peers add FOREIGN KEY (account_id) REFERENCES accounts(id);
alter table platform_sessions add FOREIGN KEY (account_id) REFERENCES accounts(id);
alter table retention add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table saved_replies add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table search_forgetting add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table search_segments add FOREIGN KEY (workspace_id, account_id) REFERENCES accounts(workspace_id, id);
alter table sessions add FOREIGN KEY (issuer, subject) REFERENCES identities(issuer, subject) ON DELETE CASCADE;
alter table sessions add FOREIGN KEY (user_id) REFERENCES users(id);
alter table setup_links add FOREIGN KEY (made_by) REFERENCES users(id);
alter table setup_links add FOREIGN KEY (user_id) REFERENCES users(id);
alter table stages add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table suppressions add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table tombstones add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table webhook_attempts add FOREIGN KEY (delivery_id) REFERENCES webhook_deliveries(id) ON DELETE CASCADE;
alter table webhook_deliveries add FOREIGN KEY (workspace_id, webhook_id) REFERENCES webhooks(workspace_id, id);
alter table webhooks add FOREIGN KEY (workspace_id) REFERENCES workspaces(id);
alter table webhooks add FOREIGN KEY (workspace_id, made_by) REFERENCES memberships(workspace_id, user_id);

-- functions

CREATE OR REPLACE FUNCTION public.begin_run()
 RETURNS bigint
 LANGUAGE plpgsql
AS $function$
declare
  number bigint;
begin
  update instance set run = generation || ' ' || server_run(), run_no = run_no + 1
  where run is distinct from generation || ' ' || server_run() returning run_no into number;
  if number is null then
    return (select run_no from instance);
  end if;
  with ready as materialized (
    select h.account_id from account_hosts h join accounts a on a.id = h.account_id
    where a.status = 'READY' order by h.account_id for no key update of h)
  update account_hosts h set ready_run = number from ready where h.account_id = ready.account_id;
  return number;
end $function$;
CREATE OR REPLACE FUNCTION public.begin_run_first()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform begin_run();
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.count_deleted_bytes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  deleted record;
begin
  for deleted in
    select workspace_id, sum(octet_length(bytes)) as bytes from gone group by workspace_id order by workspace_id
  loop
    update stored_bytes s set bytes = s.bytes - deleted.bytes where s.workspace_id = deleted.workspace_id;
  end loop;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.count_moved_recipients()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  -- Not a join of the two, which takes the square of the time where it was planned for few rows.
  if not exists (
    select campaign_id, account_id, status, next_action_at from new_rows
    except all
    select campaign_id, account_id, status, next_action_at from old_rows) then
    return null;
  end if;
  if exists (select campaign_id, account_id from new_rows except select campaign_id, account_id from old_rows) then
    insert into campaign_accounts (campaign_id, account_id, workspace_id)
    select distinct campaign_id, coalesce(account_id, ''), workspace_id from new_rows order by 1, 2
    on conflict do nothing;
  end if;
  with moved as materialized (
    select campaign_id, coalesce(account_id, '') as account_id,
      sum(case status when 'queued' then n else 0 end) as queued,
      sum(case status when 'submitting' then n else 0 end) as submitting,
      sum(case status when 'waiting' then n else 0 end) as waiting,
      sum(case status when 'completed' then n else 0 end) as completed,
      sum(case status when 'replied' then n else 0 end) as replied,
      sum(case status when 'failed' then n else 0 end) as failed,
      sum(case status when 'ambiguous' then n else 0 end) as ambiguous,
      sum(case status when 'cancelled' then n else 0 end) as cancelled,
      sum(case status when 'suppressed' then n else 0 end) as suppressed,
      min(next_action_at) as due_at
    from (
      select campaign_id, account_id, status, -1 as n, null as next_action_at from old_rows
      union all
      select campaign_id, account_id, status, 1, case when status in ('queued', 'waiting') then next_action_at end
      from new_rows) both_rows
    group by 1, 2),
  locked as materialized (
    select m.* from campaign_accounts c join moved m using (campaign_id, account_id)
    where m.due_at is not null
      or (m.queued, m.submitting, m.waiting, m.completed, m.replied, m.failed, m.ambiguous, m.cancelled, m.suppressed)
        <> (0, 0, 0, 0, 0, 0, 0, 0, 0)
    order by 1, 2 for no key update of c)
  update campaign_accounts c set
    queued = c.queued + m.queued, submitting = c.submitting + m.submitting, waiting = c.waiting + m.waiting,
    completed = c.completed + m.completed, replied = c.replied + m.replied, failed = c.failed + m.failed,
    ambiguous = c.ambiguous + m.ambiguous, cancelled = c.cancelled + m.cancelled,
    suppressed = c.suppressed + m.suppressed, due_at = least(c.due_at, m.due_at)
  from locked m where c.campaign_id = m.campaign_id and c.account_id = m.account_id;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.count_new_recipients()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into campaign_accounts as c (campaign_id, account_id, workspace_id,
    queued, submitting, waiting, completed, replied, failed, ambiguous, cancelled, suppressed, due_at)
  select campaign_id, coalesce(account_id, ''), workspace_id,
    count(*) filter (where status = 'queued'), count(*) filter (where status = 'submitting'),
    count(*) filter (where status = 'waiting'), count(*) filter (where status = 'completed'),
    count(*) filter (where status = 'replied'), count(*) filter (where status = 'failed'),
    count(*) filter (where status = 'ambiguous'), count(*) filter (where status = 'cancelled'),
    count(*) filter (where status = 'suppressed'),
    coalesce(min(next_action_at) filter (where status in ('queued', 'waiting')), 'infinity')
  from new_rows group by 1, 2, 3 order by 1, 2
  on conflict (campaign_id, account_id) do update set
    queued = c.queued + excluded.queued, submitting = c.submitting + excluded.submitting,
    waiting = c.waiting + excluded.waiting, completed = c.completed + excluded.completed,
    replied = c.replied + excluded.replied, failed = c.failed + excluded.failed,
    ambiguous = c.ambiguous + excluded.ambiguous, cancelled = c.cancelled + excluded.cancelled,
    suppressed = c.suppressed + excluded.suppressed, due_at = least(c.due_at, excluded.due_at);
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.count_stored_bytes()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  most bigint := nullif(current_setting('parley.stored_bytes_max', true), '')::bigint;
  total bigint;
begin
  insert into stored_bytes as s (workspace_id, bytes) values (new.workspace_id, octet_length(new.bytes))
    on conflict (workspace_id) do update set bytes = s.bytes + excluded.bytes
    returning bytes into total;
  if total > most then
    raise exception 'the workspace has stored more than % bytes', most using errcode = 'PF429';
  end if;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.count_webhook_address()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.url_no := old.url_no + 1;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.domain_now()
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
RETURN COALESCE((SELECT manual_clock.at FROM manual_clock), statement_timestamp());
CREATE OR REPLACE FUNCTION public.end_assignments()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update chats c set assignee_id = null from accounts a
  where a.workspace_id = new.workspace_id and c.account_id = a.id and c.assignee_id = new.user_id;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.end_suppressed()
 RETURNS trigger
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
AS $function$
begin
  with given as materialized (
    select workspace_id, kind, value, case
        when kind = 'platform_id' and value ~ '^[0-9]{1,19}$' and value::numeric <= 9223372036854775807
        then value::bigint end as number
    from new_rows),
  tied as materialized (
    select p.* from given s cross join lateral people_named(s.workspace_id, s.kind, s.value) p),
  named as materialized (
    select workspace_id, kind || ':' || value as contact from given
    union
    select t.workspace_id, n.name from tied t cross join lateral names_of(t.id) as n (name)
    union
    select workspace_id, 'platform_id:' || number from tied
    union
    select workspace_id, kind || ':' || overlay(value placing '0' from length_of_code + 1 for 0)
    from given cross join generate_series(1, 3) as length_of_code
    where kind = 'phone' and phone_digits(overlay(value placing '0' from length_of_code + 1 for 0)) = value),
  found as materialized (
    select r.id from named s cross join lateral (
      select r.id from campaign_recipients r where r.workspace_id = s.workspace_id and r.contact = s.contact
        and r.ended_at is null and r.status in ('queued', 'waiting') offset 0) r
    union all
    select r.id from given s join accounts a on a.workspace_id = s.workspace_id and s.number is not null
      cross join lateral (
        select r.id from campaign_recipients r where r.account_id = a.id and r.chat_id = s.number offset 0) r
    union all
    select r.id from tied t join accounts a on a.workspace_id = t.workspace_id and a.platform = t.platform
      cross join lateral (
        select r.id from campaign_recipients r where r.account_id = a.id and r.chat_id = t.number offset 0) r
    union all
    select r.id from tied t cross join lateral (
      select r.id from campaign_recipients r where r.workspace_id = t.workspace_id and r.person_id = t.id
        and r.ended_at is null offset 0) r
    union all
    select r.id from given s cross join lateral unread_contacts_named(s.workspace_id, s.kind, s.value) c
      cross join lateral (
        select r.id from campaign_recipients r where r.account_id = c.account_id and r.chat_id = c.number offset 0) r),
  locked as materialized (
    select r.id from (select distinct id from found order by id) f cross join lateral (
      select r.id from campaign_recipients r where r.id = f.id and r.status in ('queued', 'waiting') for update) r)
  -- By an array: a join may read every recipient, because nobody can estimate how many are locked.
  update campaign_recipients r
  set status = 'suppressed', reason = 'suppressed', next_action_at = null, ended_at = domain_now()
  where r.id = any(array(select id from locked));
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.end_with_maker(maker uuid, workspace uuid, reason text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  -- By id: the lock order of every transaction.
  with stopped as materialized (
    select id from webhooks
    where made_by = maker and workspace_id = coalesce(workspace, workspace_id) and active
    order by id for no key update)
  update webhooks w set active = false, stop_reason = reason from stopped where w.id = stopped.id;
  update setup_links l set used_at = domain_now()
  where l.used_at is null and (
    -- The maker has seen the links of others, and could still become these users.
    l.made_by = maker and (workspace is null or exists (
      select from memberships m where m.user_id = l.user_id and m.workspace_id = workspace))
    or l.user_id = maker and not exists (
      select from memberships m where m.user_id = maker and m.ended_at is null and workspace is not null));
  -- The worker closes the connection, and stores no login that is not wanted any more.
  update account_logins set state = 'failed', shown = null, typed = null, failure = jsonb_build_object(
    'code', 'conflict', 'error', 'The login was cancelled: the member who began it is no longer one.', 'retry_after', null)
  where actor = 'user:' || maker and workspace_id = coalesce(workspace, workspace_id)
    and way <> 'logout' and state not in ('done', 'failed');
end $function$;
CREATE OR REPLACE FUNCTION public.end_with_membership()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform end_with_maker(new.user_id, new.workspace_id, 'maker_removed');
  -- Sessions that open nothing any more. A user of other workspaces, or an operator, stays signed in there.
  update sessions s set revoked_at = domain_now() from users u
  where s.user_id = new.user_id and u.id = s.user_id and s.revoked_at is null and not u.operator and not exists (
    select from memberships m where m.user_id = new.user_id and m.ended_at is null);
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.end_with_user()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform end_with_maker(new.id, null, 'maker_disabled');
  -- Of every workspace and whoever issued them, as at the end of a membership.
  update keys set revoked_at = domain_now() where user_id = new.id and revoked_at is null;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.erase_events_of_service_chat(account text)
 RETURNS void
 LANGUAGE sql
AS $function$
  update events e set data = '{"erased": true}' from accounts a
  where a.id = account and e.workspace_id = a.workspace_id
    and e.data ->> 'chat_id' = 'platform:chat:777000' and e.data ->> 'account_id' = account;
  update outbox o set data = '{"erased": true}' from accounts a
  where a.id = account and o.workspace_id = a.workspace_id
    and o.data ->> 'chat_id' = 'platform:chat:777000' and o.data ->> 'account_id' = account;
$function$;
CREATE OR REPLACE FUNCTION public.erase_in_new_account()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into erased_chats (account_id, chat_id, workspace_id, erased_at)
  select distinct on (e.number) new.id, e.number, new.workspace_id, e.at from erasures e
  where e.workspace_id = new.workspace_id and e.platform = new.platform
  order by e.number, e.at desc;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.erase_service_chat(account text)
 RETURNS boolean
 LANGUAGE plpgsql
AS $function$
begin
  if not exists (select from messages where account_id = account and chat_id = 777000)
    and not exists (select from chats where account_id = account and chat_id = 777000) then
    return false;
  end if;
  -- Their lists of words have the digits too. Segments of another format are not read, and are built again from the messages.
  update search_segments s set format = 0
  where s.account_id = account and exists (
    select from messages m
    where m.account_id = account and m.chat_id = 777000 and m.sent_at between s.oldest_at and s.newest_at);
  delete from search_pending where account_id = account and chat_id = 777000;
  delete from search_stale where account_id = account and chat_id = 777000;
  delete from media_files where account_id = account and chat_id = 777000;
  delete from messages where account_id = account and chat_id = 777000;
  delete from deleted_messages where account_id = account and chat_id = 777000;
  delete from chat_sync where account_id = account and chat_id = 777000;
  delete from chats where account_id = account and chat_id = 777000;
  delete from contacts where account_id = account and provider_id = 777000;
  delete from platform_peers where account_id = account and number = 777000;
  return true;
end $function$;
CREATE OR REPLACE FUNCTION public.forbidden_by_suppression(workspace uuid, account text, person bigint)
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
  return recipient_forbidden(workspace, account, person, '{}');
end $function$;
CREATE OR REPLACE FUNCTION public.forget_found()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.found_id := null;
  new.found_username := null;
  new.found_phone := null;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.forget_media_file()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  delete from media_files where account_id = old.account_id and chat_id = old.chat_id and message_id = old.id;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.forget_strangers(account text)
 RETURNS void
 LANGUAGE sql
AS $function$
  with known as materialized (
    select platform_user_id as number from accounts where id = account
    union select chat_id from chats where account_id = account
    union select provider_id from contacts where account_id = account
    union select sender_id from messages where account_id = account and chat_id < 0
    union select p.number from accounts a
      join campaign_recipients r on r.workspace_id = a.workspace_id and r.person_id is not null and r.ended_at is null
      join people p on p.id = r.person_id
      where a.id = account
    union select chat_id from campaign_recipients where account_id = account)
  delete from platform_peers p
  where p.account_id = account and p.number > 0 and not exists (select from known k where k.number = p.number);
$function$;
CREATE OR REPLACE FUNCTION public.give_person_back()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  delete from campaign_people t
  where t.campaign_id = old.campaign_id and t.person_id = old.person_id and t.recipient_id = old.id;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.guard_approvals()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if (new.id, new.workspace_id, new.user_id, new.key_id, new.operation, new.account_id, new.chat_id, new.fingerprint,
      new.created_at)
      is distinct from (old.id, old.workspace_id, old.user_id, old.key_id, old.operation, old.account_id, old.chat_id,
      old.fingerprint, old.created_at)
    -- One that is not waiting for its use any more may be erased.
    or (new.payload::text <> old.payload::text and new.payload::text <> '{"erased": true}')
    or new.platform_user_id is distinct from old.platform_user_id then
    raise exception 'approval % must stay what was asked for', old.id using errcode = 'restrict_violation';
  end if;
  if old.state <> 'waiting' and (new.issuer, new.subject, new.idp_user_uuid, new.token_hash, new.token_expires_at,
      new.generation, new.decided_at)
      is distinct from (old.issuer, old.subject, old.idp_user_uuid, old.token_hash, old.token_expires_at,
      old.generation, old.decided_at) then
    raise exception 'approval % must stay as it was decided', old.id using errcode = 'restrict_violation';
  end if;
  if new.state <> old.state and (old.state, new.state) not in (
      ('waiting', 'approved'), ('waiting', 'denied'), ('approved', 'used')) then
    raise exception 'approval % must not go from % to %', old.id, old.state, new.state
      using errcode = 'restrict_violation';
  end if;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.guard_campaigns()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if new.status <> old.status and (old.status, new.status) not in (
      ('scheduled', 'queued'), ('scheduled', 'paused'), ('scheduled', 'cancelled'),
      ('queued', 'sending'), ('queued', 'paused'), ('queued', 'cancelled'), ('queued', 'completed'),
      ('sending', 'paused'), ('sending', 'cancelled'), ('sending', 'completed'),
      ('paused', 'scheduled'), ('paused', 'queued'), ('paused', 'sending'), ('paused', 'cancelled')) then
    raise exception 'campaign % must not go from % to %', old.id, old.status, new.status
      using errcode = 'restrict_violation';
  end if;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.guard_operations()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if tg_op = 'DELETE' then
    if old.forgettable and old.state in ('completed', 'refused', 'released')
      and old.finished_at < domain_now() - interval '30 days' then
      return old;
    end if;
    raise exception 'operation % must not be deleted', old.id using errcode = 'restrict_violation';
  end if;
  if (new.id, new.workspace_id, new.kind, new.effect, new.fingerprint, new.forgettable)
      is distinct from (old.id, old.workspace_id, old.kind, old.effect, old.fingerprint, old.forgettable)
    or new.idempotency_key is distinct from old.idempotency_key
    or (new.campaign_id, new.recipient_id, new.step_no)
      is distinct from (old.campaign_id, old.recipient_id, old.step_no)
    or new.random_id is distinct from old.random_id then
    raise exception 'operation % must keep its identity', old.id using errcode = 'restrict_violation';
  end if;
  if new.state = old.state then
    return new;
  end if;
  if (old.state, new.state) not in (
      ('queued', 'submitting'), ('queued', 'released'), ('queued', 'refused'),
      ('submitting', 'completed'), ('submitting', 'refused'), ('submitting', 'released'), ('submitting', 'ambiguous'),
      ('ambiguous', 'completed'), ('ambiguous', 'released'),
      ('released', 'queued'), ('released', 'submitting')) then
    raise exception 'operation % must not go from % to %', old.id, old.state, new.state
      using errcode = 'restrict_violation';
  end if;
  if old.state in ('submitting', 'ambiguous') and new.state in ('released', 'refused')
    and new.reason is distinct from 'platform_refused' and new.reason is distinct from 'never_written' then
    raise exception 'operation % crossed the boundary: only proof leads back', old.id using errcode = 'restrict_violation';
  end if;
  -- What it stores from here on was not cleared.
  new.cleared_at := null;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.guard_recipients()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if (new.id, new.campaign_id, new.workspace_id, new.position)
      is distinct from (old.id, old.campaign_id, old.workspace_id, old.position)
    or (new.contact is distinct from old.contact
      and (new.contact not like 'cleared:%' or old.status in ('queued', 'submitting', 'waiting'))) then
    raise exception 'recipient % must keep its identity', old.id using errcode = 'restrict_violation';
  end if;
  if new.status <> old.status and (old.status, new.status) not in (
      ('queued', 'submitting'), ('queued', 'failed'), ('queued', 'cancelled'), ('queued', 'suppressed'),
      ('queued', 'waiting'), ('queued', 'completed'), ('queued', 'ambiguous'),
      ('waiting', 'submitting'), ('waiting', 'completed'), ('waiting', 'replied'), ('waiting', 'failed'),
      ('waiting', 'cancelled'), ('waiting', 'suppressed'), ('waiting', 'ambiguous'),
      ('submitting', 'queued'), ('submitting', 'waiting'), ('submitting', 'completed'), ('submitting', 'replied'),
      ('submitting', 'failed'), ('submitting', 'ambiguous'), ('submitting', 'cancelled'), ('submitting', 'suppressed'),
      ('completed', 'replied'),
      ('ambiguous', 'completed'), ('ambiguous', 'replied'), ('ambiguous', 'failed'),
      ('failed', 'completed'), ('failed', 'replied')) then
    raise exception 'recipient % must not go from % to %', old.id, old.status, new.status
      using errcode = 'restrict_violation';
  end if;
  new.version := old.version + 1;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.is_listed(workspace uuid, account text, number bigint, known text[])
 RETURNS boolean
 LANGUAGE plpgsql
 STABLE
AS $function$
declare
  on_platform text := (select a.platform from accounts a where a.id = account);
begin
  return exists (
    select from (
      select asked.kind, asked.value, case when bool_or(asked.until is null) then null else max(asked.until) end as until
      from (
        select split_part(name, ':', 1) as kind, split_part(name, ':', 2) as value, null::timestamptz as until
        from unnest(known) as name
        union all
        select t.kind, t.value, t.until
        from (
          select is_listed.number as number, (
            select p.id from people p
            where p.workspace_id = workspace and p.platform = on_platform and p.number = is_listed.number) as id
          where is_listed.number is not null
          union all
          -- Nobody was looked up yet: asks about the people who have one of the names now, as far as any account knows.
          select p.number, p.id from unnest(known) as name
          cross join lateral (
            select * from person_names n where n.workspace_id = workspace and n.kind = split_part(name, ':', 1)
              and n.value = split_part(name, ':', 2) offset 0) n
          cross join lateral (select * from people p where p.id = n.person_id limit 1) p
          where is_listed.number is null and n.platform = on_platform and n.until is null
          union all
          select given.number, (
            select p.id from people p
            where p.workspace_id = workspace and p.platform = on_platform and p.number = given.number)
          from (
            select split_part(name, ':', 2)::bigint as number from unnest(known) as name
            where is_listed.number is null and name ~ '^platform_id:[0-9]{1,18}$') given
          union all
          -- A name of an erased person leads to their number, unless it leads to somebody else by now.
          select t.number, null from unnest(known) as name
          cross join lateral (
            select * from tombstones t
            where t.workspace_id = workspace and t.hash = decode(split_part(name, ':', 2), 'hex') offset 0) t
          where is_listed.number is null and name ~ '^tombstone:[0-9a-f]{64}$' and t.platform = on_platform and not exists (
            select from unnest(known) as now_known
            cross join lateral (
              select * from person_names o where o.workspace_id = workspace and o.kind = split_part(now_known, ':', 1)
                and o.value = split_part(now_known, ':', 2) offset 0) o
            cross join lateral (select * from people p where p.id = o.person_id limit 1) p
            where o.platform = on_platform and o.until is null and p.number <> t.number)) who
        cross join lateral (
          select 'platform_id' as kind, who.number::text as value, null::timestamptz as until
          union all
          (select n.kind, n.value, n.until from person_names n where n.person_id = who.id offset 0)
          union all
          -- Until every contact of before was read, some people have no row. The list is the workspace's, so every account's contact counts.
          select name.kind, name.value, null
          from accounts a
          cross join lateral (
            select * from contacts c where c.account_id = a.id and c.provider_id = who.number limit 1) c
          cross join lateral (
            values ('username', lower(c.username)), ('phone', phone_digits(c.phone))) as name (kind, value)
          where a.workspace_id = workspace and a.platform = on_platform
            and exists (select from people_backfill where done_at is null)) t) asked
      -- A recipient by chat has an account and a chat in the place of a name.
      where asked.kind in ('username', 'phone', 'platform_id') and asked.value is not null
      group by 1, 2) named
    cross join lateral (
      select from suppressions s
      where s.workspace_id = workspace and s.kind = named.kind and s.value = named.value
        and (named.until is null or named.until >= s.created_at)
      limit 1) s);
end $function$;
CREATE OR REPLACE FUNCTION public.kept_since(workspace uuid)
 RETURNS timestamp with time zone
 LANGUAGE sql
 STABLE
AS $function$
  select coalesce((
    select domain_now() - make_interval(days => r.messages_days) from retention r where r.workspace_id = workspace),
    '-infinity')
$function$;
CREATE OR REPLACE FUNCTION public.knows_names(person uuid, account text)
 RETURNS boolean
 LANGUAGE sql
 STABLE
AS $function$
  select exists (select from person_names n where n.person_id = person and n.account_id = account);
$function$;
CREATE OR REPLACE FUNCTION public.learn_changed_contacts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform learn_names(g.workspace_id, g.account_id, g.numbers, g.usernames, g.phones)
  from (
    select n.workspace_id, n.account_id, array_agg(n.provider_id order by n.provider_id) as numbers,
      array_agg(n.username order by n.provider_id) as usernames,
      array_agg(case when n.phone is distinct from o.phone then n.phone end order by n.provider_id) as phones
    from new_rows n join old_rows o on o.account_id = n.account_id and o.provider_id = n.provider_id
    where (n.username, n.phone) is distinct from (o.username, o.phone)
    group by 1, 2 order by 2) g;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.learn_names(workspace uuid, account text, numbers bigint[], usernames text[], phones text[], asked_kind text DEFAULT NULL::text, asked_value text DEFAULT NULL::text, has boolean DEFAULT true)
 RETURNS void
 LANGUAGE plpgsql
 SET enable_seqscan TO 'off'
 SET enable_hashjoin TO 'off'
 SET enable_mergejoin TO 'off'
AS $function$
declare
  seen_at timestamptz := domain_now();
  on_platform text := (select a.platform from accounts a where a.id = account and a.workspace_id = workspace);
begin
  insert into people (id, workspace_id, platform, number, first_seen_at)
  select gen_random_uuid(), workspace, on_platform, g.number, seen_at
  from unnest(numbers) as g (number)
  where g.number > 0 and not exists (
    select from people p where p.workspace_id = workspace and p.platform = on_platform and p.number = g.number offset 0)
  order by g.number
  on conflict do nothing;

  with shown as materialized (
    select p.id as person_id, t.kind, t.value, false as second
    from unnest(numbers, usernames, phones) as g (number, username, phone)
    cross join lateral (
      select p.id from people p
      where p.workspace_id = workspace and p.platform = on_platform and p.number = g.number and p.erased_at is null limit 1) p
    cross join lateral (values
      ('username', nullif(lower(g.username), '')), ('phone', nullif(phone_digits(g.phone), ''))) as t (kind, value)
    where t.kind = 'username' or t.value is not null),
  asked as materialized (
    select asked_kind as kind, case asked_kind when 'phone' then phone_digits(asked_value) else lower(asked_value) end as value
    where asked_kind in ('username', 'phone')),
  seen as materialized (
    select * from shown
    union all
    select distinct s.person_id, a.kind, a.value, a.kind = 'username'
    from shown s cross join asked a
    where has and a.value <> '' and not exists (
      select from shown o where o.person_id = s.person_id and o.kind = a.kind and o.value = a.value)),
  changing as materialized (
    -- Of the same person: another value ends, this one was seen again.
    select n.person_id, n.kind, n.value, n.account_id
    from seen s cross join lateral (
      select * from person_names n where n.person_id = s.person_id and n.kind = s.kind offset 0) n
    where case when n.value is distinct from s.value then n.until is null and not n.second and not exists (
        select from seen o where o.person_id = n.person_id and o.kind = n.kind and o.value = n.value)
      else n.account_id = account and (n.until is not null or n.last_seen_at is null or n.second <> s.second
        or n.last_seen_at < seen_at - interval '1 day') end
    union
    -- The platform was asked, and they no longer have it. A phone number that it does not show may still be theirs.
    select n.person_id, n.kind, n.value, n.account_id
    from asked a cross join shown s cross join lateral (
      select * from person_names n where n.person_id = s.person_id and n.kind = a.kind and n.value = a.value offset 0) n
    where not has and a.kind = 'username' and n.until is null
    union
    -- Of another person: the name is no longer theirs.
    select n.person_id, n.kind, n.value, n.account_id
    from seen s cross join lateral (
      select * from person_names n where n.workspace_id = workspace and n.kind = s.kind and n.value = s.value
      offset 0) n
    where n.platform = on_platform and n.person_id <> s.person_id and n.until is null),
  locked as materialized (
    select n.person_id, n.kind, n.value, n.account_id
    from (select * from changing order by person_id, kind, value, account_id) c
    cross join lateral (
      select * from person_names n
      where n.person_id = c.person_id and n.kind = c.kind and n.value = c.value and n.account_id = c.account_id
      for update) n),
  ended as (
    update person_names n set until = seen_at from locked l
    where n.person_id = l.person_id and n.kind = l.kind and n.value = l.value and n.account_id = l.account_id
      and n.until is null and not exists (
        select from seen s where s.person_id = l.person_id and s.kind = l.kind and s.value = l.value))
  insert into person_names (person_id, kind, value, account_id, workspace_id, platform, first_seen_at, last_seen_at, second)
  select s.person_id, s.kind, s.value, account, workspace, on_platform, seen_at, seen_at, s.second
  from seen s
  where s.value is not null and (select count(*) from locked) >= 0 and not exists (
    select from person_names n
    where n.person_id = s.person_id and n.kind = s.kind and n.value = s.value and n.account_id = account
      and n.second = s.second and n.until is null and n.last_seen_at >= seen_at - interval '1 day' offset 0)
  order by s.person_id, s.kind, s.value
  on conflict (person_id, kind, value, account_id) do update set last_seen_at = seen_at, until = null,
    second = excluded.second;
end $function$;
CREATE OR REPLACE FUNCTION public.learn_new_contacts()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  perform learn_names(g.workspace_id, g.account_id, g.numbers, g.usernames, g.phones)
  from (
    select workspace_id, account_id, array_agg(provider_id order by provider_id) as numbers,
      array_agg(username order by provider_id) as usernames, array_agg(phone order by provider_id) as phones
    from new_rows group by 1, 2 order by 2) g;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.list_changed_message()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
declare
  was_listed boolean;
begin
  new.listing := (old.listing + 1) % 32768;
  if new.deleted_at is null then
    insert into search_pending (account_id, sent_at, chat_id, id, workspace_id)
    values (new.account_id, new.sent_at, new.chat_id, new.id, new.workspace_id)
    on conflict (account_id, sent_at, chat_id, id) do update set workspace_id = excluded.workspace_id
    returning (xmax = 0) into was_listed;
  else
    delete from search_pending
    where account_id = old.account_id and sent_at = old.sent_at and chat_id = old.chat_id and id = old.id;
    was_listed := not found;
  end if;
  if was_listed then
    insert into search_stale (account_id, sent_at, chat_id, id, listing, workspace_id)
    values (old.account_id, old.sent_at, old.chat_id, old.id, old.listing, old.workspace_id)
    on conflict do nothing;
  end if;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.list_new_messages()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into search_pending (account_id, sent_at, chat_id, id, workspace_id)
  select account_id, sent_at, chat_id, id, workspace_id from added where deleted_at is null;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.names_of(person uuid)
 RETURNS SETOF text
 LANGUAGE sql
 STABLE
AS $function$
  select distinct n.kind || ':' || n.value from person_names n where n.person_id = person and n.until is null;
$function$;
CREATE OR REPLACE FUNCTION public.note_last_sender()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  new.last_is_sender := (
    select is_sender from messages
    where account_id = new.account_id and chat_id = new.chat_id and id = new.last_message_id);
  new.last_sender_of := new.last_message_id;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.note_send_by_hand()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  insert into hand_messages (id, workspace_id, account_id, platform, chat_id, operation_id)
  select gen_random_uuid(), new.workspace_id, a.id, a.platform, new.chat_id, new.id
  from accounts a where a.id = new.account_id and a.workspace_id = new.workspace_id
  on conflict do nothing;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.people_named(workspace uuid, name_kind text, name_value text)
 RETURNS SETOF people
 LANGUAGE sql
 STABLE
AS $function$
  select p.* from (
    select n.person_id from person_names n
    where n.workspace_id = workspace and n.kind = name_kind and n.value = name_value and n.until is null) n
  cross join lateral (select * from people p where p.id = n.person_id) p
  union
  select p.* from (
    select distinct a.platform from accounts a where a.workspace_id = workspace and name_kind = 'platform_id') a
  cross join lateral (
    select * from people p where p.workspace_id = workspace and p.platform = a.platform
      and p.number = case when name_value ~ '^[0-9]{1,18}$' then name_value::bigint end) p;
$function$;
CREATE OR REPLACE FUNCTION public.person_of(workspace uuid, account text, person_number bigint)
 RETURNS uuid
 LANGUAGE plpgsql
AS $function$
declare
  on_platform text;
  person uuid;
begin
  select a.platform, p.id into on_platform, person
  from accounts a left join people p
    on p.workspace_id = workspace and p.platform = a.platform and p.number = person_number
  where a.id = account;
  if person is null and person_number > 0 and on_platform is not null then
    insert into people (id, workspace_id, platform, number) values (gen_random_uuid(), workspace, on_platform, person_number)
    on conflict do nothing;
    select p.id into person from people p
    where p.workspace_id = workspace and p.platform = on_platform and p.number = person_number;
  end if;
  return person;
end $function$;
CREATE OR REPLACE FUNCTION public.phone_digits(phone text)
 RETURNS text
 LANGUAGE sql
 IMMUTABLE PARALLEL SAFE STRICT
RETURN regexp_replace(regexp_replace(regexp_replace(regexp_replace(phone, '\(\s*0\s*\)'::text, ''::text, 'g'::text), '\D'::text, ''::text, 'g'::text), '^00'::text, ''::text), '^(?!225|242)([17]|2[07]|3[0-46]|4[013-9]|5[1-8]|6[0-6]|8[1246]|9[0-58]|(?:2[1-689]|3[578]|42|5[09]|6[789]|8[035789]|9[679])\d)0'::text, '\1'::text);
CREATE OR REPLACE FUNCTION public.raise_settings_version()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update settings set value = to_jsonb((value #>> '{}')::bigint + 1) where name = 'version';
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.real_now()
 RETURNS timestamp with time zone
 LANGUAGE sql
AS $function$select coalesce((select at from simulated_time), clock_timestamp())$function$;
CREATE OR REPLACE FUNCTION public.recipient_forbidden(workspace uuid, account text, person bigint, known text[])
 RETURNS text
 LANGUAGE plpgsql
AS $function$
begin
  if not pg_try_advisory_xact_lock_shared(suppressions_lock(workspace)) then
    return 'busy';
  end if;
  -- Asked after the lock: an entry that committed before it is seen.
  return case when is_listed(workspace, account, person, known) then 'identity_suppressed' end;
end $function$;
CREATE OR REPLACE FUNCTION public.refuse_change()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  raise exception 'rows of % are never changed', tg_table_name;
end $function$;
CREATE OR REPLACE FUNCTION public.revoke_keys_of_ended_membership()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update keys set revoked_at = domain_now()
  where workspace_id = new.workspace_id and user_id = new.user_id and revoked_at is null;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.revoke_sessions_of_disabled_user()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  update sessions set revoked_at = domain_now() where user_id = new.id and revoked_at is null;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.server_run()
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$select extract(epoch from pg_postmaster_start_time())::text || ' ' || pg_relation_filenode('instance')$function$;
CREATE OR REPLACE FUNCTION public.suppressions_lock(workspace uuid)
 RETURNS bigint
 LANGUAGE sql
 IMMUTABLE
RETURN hashtextextended(('suppressions '::text || (workspace)::text), (0)::bigint);
CREATE OR REPLACE FUNCTION public.take_person()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if (select k.kind from campaigns k where k.id = new.campaign_id) <> 'contacts' then
    return null;
  end if;
  insert into campaign_people (campaign_id, person_id, workspace_id, recipient_id)
  values (new.campaign_id, new.person_id, new.workspace_id, new.id)
  on conflict do nothing;
  if not found and new.step = 0 and new.status = 'submitting' and new.unknown_since is null and exists (
      select from campaign_people t where t.campaign_id = new.campaign_id and t.person_id = new.person_id
        and t.recipient_id <> new.id) then
    raise exception 'another recipient of the campaign is the same person' using errcode = 'unique_violation';
  end if;
  return null;
end $function$;
CREATE OR REPLACE FUNCTION public.tidy_account(account text)
 RETURNS void
 LANGUAGE plpgsql
AS $function$
begin
  -- In the sandbox 777000 may be anybody.
  if exists (select from accounts where id = account and platform = 'telegram') then
    if erase_service_chat(account) then
      perform erase_events_of_service_chat(account);
    end if;
    perform forget_strangers(account);
  end if;
  update account_hosts set tidied = true where account_id = account;
end $function$;
CREATE OR REPLACE FUNCTION public.tie_recipient()
 RETURNS trigger
 LANGUAGE plpgsql
AS $function$
begin
  if new.account_id is not null then
    new.person_id := person_of(new.workspace_id, new.account_id, new.chat_id);
    -- Only a process of the release before writes what its look-up found.
    if new.found_id = new.chat_id and tg_op = 'UPDATE' and old.found_id is null then
      perform learn_names(new.workspace_id, new.account_id, array[new.found_id], array[new.found_username],
        array[new.found_phone]);
    end if;
  end if;
  return new;
end $function$;
CREATE OR REPLACE FUNCTION public.tie_recipients(after uuid, most integer, OUT read_rows integer, OUT last_id uuid)
 RETURNS record
 LANGUAGE plpgsql
AS $function$
begin
  with page as materialized (
    select r.id from campaign_recipients r where after is null or r.id > after order by r.id limit most),
  held as materialized (
    select r.id, r.campaign_id, r.workspace_id, r.account_id, r.chat_id, r.person_id, r.status, r.step
    from page p cross join lateral (select * from campaign_recipients r where r.id = p.id for update) r),
  tied as (
    update campaign_recipients r set person_id = person_of(h.workspace_id, h.account_id, h.chat_id)
    from held h where r.id = h.id and h.person_id is null and h.chat_id is not null and h.account_id is not null
    returning r.id, r.campaign_id, r.workspace_id, r.person_id, r.status, r.step),
  known as (
    select id, campaign_id, workspace_id, person_id, status, step from tied
    union all
    select id, campaign_id, workspace_id, person_id, status, step from held where person_id is not null),
  taken as (
    insert into campaign_people (campaign_id, person_id, workspace_id, recipient_id)
    select w.campaign_id, w.person_id, w.workspace_id, w.id
    from known w join campaigns k on k.id = w.campaign_id and k.kind = 'contacts'
    where w.person_id is not null and (w.step > 0 or w.status in ('submitting', 'ambiguous'))
    order by 1, 2
    on conflict do nothing)
  select count(*)::int, (array_agg(id order by id desc))[1] into read_rows, last_id from page;
end $function$;
CREATE OR REPLACE FUNCTION public.unread_contacts_named(workspace uuid, name_kind text, name_value text)
 RETURNS TABLE(account_id text, number bigint)
 LANGUAGE sql
 STABLE
AS $function$
  select a.id, unread.number from (
    select c.account_id, c.provider_id as number from contacts c
    where name_kind = 'username' and c.workspace_id = workspace and lower(c.username) = name_value
      and exists (select from people_backfill where done_at is null)
    union all
    select c.account_id, c.provider_id from contacts c
    where name_kind = 'phone' and c.workspace_id = workspace and phone_digits(c.phone) = name_value
      and exists (select from people_backfill where done_at is null)) unread
  join accounts seen_by on seen_by.id = unread.account_id
  join accounts a on a.workspace_id = workspace and a.platform = seen_by.platform;
$function$;
CREATE OR REPLACE FUNCTION public.wire_time(at timestamp with time zone)
 RETURNS text
 LANGUAGE sql
 STABLE PARALLEL SAFE
RETURN CASE WHEN (at > '-infinity'::timestamp with time zone) THEN to_char((at AT TIME ZONE 'UTC'::text), 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"'::text) ELSE NULL::text END;
CREATE OR REPLACE FUNCTION public.workspace_day(timezone text, timezone_before text, timezone_from timestamp with time zone, day_floor date, instant timestamp with time zone)
 RETURNS date
 LANGUAGE sql
 STABLE PARALLEL SAFE
AS $function$
  select greatest((instant at time zone case when instant < timezone_from then timezone_before else timezone end)::date, day_floor)
$function$;

-- triggers

CREATE TRIGGER accounts_begin_run BEFORE UPDATE OF status ON public.accounts FOR EACH ROW WHEN (((old.status = 'READY'::text) AND (new.status <> 'READY'::text))) EXECUTE FUNCTION begin_run_first();
CREATE TRIGGER accounts_erased AFTER INSERT ON public.accounts FOR EACH ROW EXECUTE FUNCTION erase_in_new_account();
CREATE TRIGGER accounts_version AFTER INSERT OR DELETE OR UPDATE OF status, name ON public.accounts FOR EACH STATEMENT EXECUTE FUNCTION raise_settings_version();
CREATE TRIGGER allowlists_version AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.allowlists FOR EACH STATEMENT EXECUTE FUNCTION raise_settings_version();
CREATE TRIGGER approvals_guard BEFORE UPDATE ON public.approvals FOR EACH ROW EXECUTE FUNCTION guard_approvals();
CREATE TRIGGER audit_append_only BEFORE DELETE OR UPDATE OR TRUNCATE ON public.audit FOR EACH STATEMENT EXECUTE FUNCTION refuse_change();
CREATE TRIGGER recipients_added AFTER INSERT ON public.campaign_recipients REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_new_recipients();
CREATE TRIGGER recipients_forget_found BEFORE UPDATE ON public.campaign_recipients FOR EACH ROW WHEN (((new.ended_at IS NOT NULL) AND ((new.found_id IS NOT NULL) OR (new.found_username IS NOT NULL) OR (new.found_phone IS NOT NULL)))) EXECUTE FUNCTION forget_found();
CREATE TRIGGER recipients_give_back AFTER UPDATE ON public.campaign_recipients FOR EACH ROW WHEN (((old.person_id IS NOT NULL) AND ((old.step > 0) OR (old.status = ANY (ARRAY['submitting'::text, 'ambiguous'::text]))) AND (NOT ((new.step > 0) OR (new.status = ANY (ARRAY['submitting'::text, 'ambiguous'::text])))))) EXECUTE FUNCTION give_person_back();
CREATE TRIGGER recipients_guard BEFORE UPDATE ON public.campaign_recipients FOR EACH ROW EXECUTE FUNCTION guard_recipients();
CREATE TRIGGER recipients_moved AFTER UPDATE ON public.campaign_recipients REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION count_moved_recipients();
CREATE TRIGGER recipients_take_person AFTER UPDATE ON public.campaign_recipients FOR EACH ROW WHEN (((new.person_id IS NOT NULL) AND ((new.step > 0) OR (new.status = ANY (ARRAY['submitting'::text, 'ambiguous'::text]))) AND (NOT ((old.step > 0) OR (old.status = ANY (ARRAY['submitting'::text, 'ambiguous'::text])))))) EXECUTE FUNCTION take_person();
CREATE TRIGGER recipients_tie BEFORE UPDATE ON public.campaign_recipients FOR EACH ROW WHEN (((new.chat_id IS NOT NULL) AND (new.chat_id IS DISTINCT FROM old.chat_id) AND (NOT (new.person_id IS DISTINCT FROM old.person_id)))) EXECUTE FUNCTION tie_recipient();
CREATE TRIGGER recipients_tie_new BEFORE INSERT ON public.campaign_recipients FOR EACH ROW WHEN (((new.chat_id IS NOT NULL) AND (new.person_id IS NULL))) EXECUTE FUNCTION tie_recipient();
CREATE TRIGGER campaigns_guard BEFORE UPDATE OF status ON public.campaigns FOR EACH ROW EXECUTE FUNCTION guard_campaigns();
CREATE TRIGGER chats_last BEFORE INSERT OR UPDATE ON public.chats FOR EACH ROW WHEN ((new.last_sender_of IS DISTINCT FROM new.last_message_id)) EXECUTE FUNCTION note_last_sender();
CREATE TRIGGER contacts_changed_names AFTER UPDATE ON public.contacts REFERENCING OLD TABLE AS old_rows NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION learn_changed_contacts();
CREATE TRIGGER contacts_new_names AFTER INSERT ON public.contacts REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION learn_new_contacts();
CREATE TRIGGER file_chunks_deleted AFTER DELETE ON public.file_chunks REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION count_deleted_bytes();
CREATE TRIGGER file_chunks_stored AFTER INSERT ON public.file_chunks FOR EACH ROW EXECUTE FUNCTION count_stored_bytes();
CREATE TRIGGER gates_version AFTER INSERT OR DELETE OR UPDATE OR TRUNCATE ON public.gates FOR EACH STATEMENT EXECUTE FUNCTION raise_settings_version();
CREATE TRIGGER keys_version AFTER DELETE OR UPDATE OF revoked_at, expires_at, scopes, mcp_only ON public.keys FOR EACH STATEMENT EXECUTE FUNCTION raise_settings_version();
CREATE TRIGGER memberships_assignments AFTER UPDATE OF ended_at ON public.memberships FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL))) EXECUTE FUNCTION end_assignments();
CREATE TRIGGER memberships_ended AFTER UPDATE OF ended_at ON public.memberships FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL))) EXECUTE FUNCTION revoke_keys_of_ended_membership();
CREATE TRIGGER memberships_makers AFTER UPDATE OF ended_at ON public.memberships FOR EACH ROW WHEN (((old.ended_at IS NULL) AND (new.ended_at IS NOT NULL))) EXECUTE FUNCTION end_with_membership();
CREATE TRIGGER memberships_role_version AFTER UPDATE OF role ON public.memberships FOR EACH STATEMENT EXECUTE FUNCTION raise_settings_version();
CREATE TRIGGER memberships_version AFTER INSERT OR DELETE OR UPDATE OF ended_at ON public.memberships FOR EACH STATEMENT EXECUTE FUNCTION raise_settings_version();
CREATE TRIGGER messages_added AFTER INSERT ON public.messages REFERENCING NEW TABLE AS added FOR EACH STATEMENT EXECUTE FUNCTION list_new_messages();
CREATE TRIGGER messages_changed BEFORE UPDATE ON public.messages FOR EACH ROW WHEN (((old.deleted_at IS NULL) AND ((new.deleted_at IS NOT NULL) OR (new.text IS DISTINCT FROM old.text)))) EXECUTE FUNCTION list_changed_message();
CREATE TRIGGER messages_media AFTER UPDATE OF attachments ON public.messages FOR EACH ROW WHEN (((old.attachments <> '[]'::jsonb) AND ((old.attachments IS DISTINCT FROM new.attachments) OR (old.edited_at IS DISTINCT FROM new.edited_at)))) EXECUTE FUNCTION forget_media_file();
CREATE TRIGGER operations_by_hand AFTER INSERT OR UPDATE OF state ON public.operations FOR EACH ROW WHEN (((new.state = 'queued'::text) AND (new.key_id IS NULL) AND (new.user_id IS NOT NULL) AND (new.chat_id > 0) AND (new.kind = ANY (ARRAY['send_message'::text, 'start_chat_text'::text])))) EXECUTE FUNCTION note_send_by_hand();
CREATE TRIGGER operations_guard BEFORE DELETE OR UPDATE ON public.operations FOR EACH ROW EXECUTE FUNCTION guard_operations();
CREATE TRIGGER suppressions_end_recipients AFTER INSERT ON public.suppressions REFERENCING NEW TABLE AS new_rows FOR EACH STATEMENT EXECUTE FUNCTION end_suppressed();
CREATE TRIGGER users_disabled AFTER UPDATE OF disabled_at ON public.users FOR EACH ROW WHEN (((old.disabled_at IS NULL) AND (new.disabled_at IS NOT NULL))) EXECUTE FUNCTION revoke_sessions_of_disabled_user();
CREATE TRIGGER users_makers AFTER UPDATE OF disabled_at ON public.users FOR EACH ROW WHEN (((old.disabled_at IS NULL) AND (new.disabled_at IS NOT NULL))) EXECUTE FUNCTION end_with_user();
CREATE TRIGGER users_version AFTER UPDATE OF disabled_at ON public.users FOR EACH STATEMENT EXECUTE FUNCTION raise_settings_version();
CREATE TRIGGER webhooks_address BEFORE UPDATE OF url ON public.webhooks FOR EACH ROW WHEN (((new.url <> ''::text) AND (new.url <> old.url) AND (new.url_no = old.url_no))) EXECUTE FUNCTION count_webhook_address();
CREATE TRIGGER workspaces_version AFTER UPDATE ON public.workspaces FOR EACH STATEMENT EXECUTE FUNCTION raise_settings_version();
