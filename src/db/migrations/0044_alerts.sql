-- Alerts of the instance for PARLEY_ALERT_URL: what is wrong now, and the posts that have not been delivered yet.
create table alerts (
  kind text not null,
  -- What it is about: an account, a worker, a webhook, a loop; empty: the instance.
  subject text not null,
  primary key (kind, subject),
  -- Since when it has been wrong without a break; null: it is not.
  wrong_since timestamptz,
  -- Since when it has been right again; null: it is not.
  right_since timestamptz,
  -- The last time that a post said that it began; null: none did.
  begun_at timestamptz,
  -- A post said that it began, and none that it is over.
  open boolean not null default false,
  -- What a post says when it is over.
  over_text text not null
);

create table alert_posts (
  id uuid primary key,
  kind text not null,
  subject text not null,
  text text not null,
  at timestamptz not null default real_now(),
  attempts integer not null default 0,
  due_at timestamptz not null default real_now(),
  -- Why the last attempt failed: a status, or a word such as `timeout`.
  last_error text
);
create index alert_posts_subject on alert_posts (kind, subject, id);
