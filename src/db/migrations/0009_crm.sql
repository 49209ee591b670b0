-- What a sales team reads off its chats: who was placed where, how much was written, and the campaigns to come.

-- When somebody first put the chat into a stage; null: nobody has, and it is in `new`.
alter table chats add column placed_at timestamptz;
update chats set placed_at = domain_now() where stage_key <> 'new';
create index chats_placed on chats (account_id, chat_id) where placed_at is not null;

-- Messages counted as they are stored: all of them, by day (UTC) and by quarter of an hour. Any stretch that begins at a
-- midnight somewhere is some quarters and then days. Without a key to accounts, which every writer would lock.
create table message_counts (
  workspace_id uuid not null,
  span text not null check (span in ('all', 'day', 'quarter')),
  -- When it begins; '-infinity' for all.
  at timestamptz not null,
  account_id text not null,
  received bigint not null default 0,
  sent bigint not null default 0,
  primary key (workspace_id, span, at, account_id)
);
insert into message_counts (workspace_id, span, at, account_id, received, sent)
select workspace_id, case when grouping(day) = 0 then 'day' when grouping(quarter) = 0 then 'quarter' else 'all' end,
  coalesce(day, quarter, '-infinity'), account_id, count(*) filter (where not is_sender),
  count(*) filter (where is_sender)
from (
  select workspace_id, account_id, is_sender, date_bin('1 day', sent_at, '2000-01-01 00:00Z') as day,
    date_bin('15 minutes', sent_at, '2000-01-01 00:00Z') as quarter
  from messages) stored
group by grouping sets ((workspace_id, account_id), (workspace_id, account_id, day), (workspace_id, account_id, quarter));

create table campaigns (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  user_id uuid not null references users,
  kind text not null check (kind in ('scoped', 'contacts', 'legacy')),
  name text check (char_length(name) <= 200),
  status text not null
    check (status in ('scheduled', 'queued', 'sending', 'paused', 'cancelled', 'completed')),
  message_text text not null check (char_length(message_text) between 1 and 4096),
  branching_enabled boolean not null default false,
  daily_quota_per_account integer not null default 30 check (daily_quota_per_account between 1 and 200),
  max_followups integer not null default 2 check (max_followups between 0 and 10),
  scheduled_at timestamptz,
  schedule_timezone text not null default 'UTC',
  created_at timestamptz not null default domain_now(),
  started_at timestamptz,
  completed_at timestamptz,
  cancelled_at timestamptz,
  unique (workspace_id, id),
  -- Cancellation is irreversible, so the two facts never disagree.
  check ((status = 'cancelled') = (cancelled_at is not null))
);
create index campaigns_recent on campaigns (workspace_id, created_at desc, id desc);

create table campaign_steps (
  campaign_id uuid not null,
  workspace_id uuid not null,
  -- Its place among the steps as they were given.
  position integer not null,
  branch text not null check (branch in ('no_reply', 'seen', 'unseen')),
  wait_hours double precision not null check (wait_hours >= 0.0833),
  variants text[] not null check (cardinality(variants) between 1 and 5),
  primary key (campaign_id, position),
  foreign key (workspace_id, campaign_id) references campaigns (workspace_id, id)
);

create table campaign_recipients (
  id uuid primary key,
  campaign_id uuid not null,
  workspace_id uuid not null,
  account_id text,
  chat_id bigint,
  identifier text,
  name text,
  status text not null default 'queued' check (status in ('queued', 'submitting', 'waiting', 'completed', 'replied',
    'failed', 'ambiguous', 'cancelled', 'suppressed')),
  -- How many messages it has had.
  step integer not null default 0,
  next_action_at timestamptz,
  last_sent_at timestamptz,
  foreign key (workspace_id, campaign_id) references campaigns (workspace_id, id),
  foreign key (workspace_id, account_id) references accounts (workspace_id, id)
);
create index campaign_recipients_campaign on campaign_recipients (campaign_id, id);

-- What came of a campaign's messages, by quarter of an hour, and all together at '-infinity'. `reached`: recipients with a first message that
-- the platform accepted; `replied`: those who answered.
create table campaign_counts (
  workspace_id uuid not null,
  at timestamptz not null,
  campaign_id uuid not null,
  account_id text not null,
  sent bigint not null default 0,
  failed bigint not null default 0,
  ambiguous bigint not null default 0,
  reached bigint not null default 0,
  replied bigint not null default 0,
  primary key (workspace_id, at, campaign_id, account_id),
  foreign key (workspace_id, campaign_id) references campaigns (workspace_id, id)
);
create index campaign_counts_campaign on campaign_counts (campaign_id, at);
