-- Somebody who holds the books against the platform asks the session of an account what a chat has: question and answer are a
-- row. Unlogged, because an answer is of use only to whoever waits for it; and no other table is referred to, so that a restore,
-- which leaves such tables out, can empty the others.
create unlogged table history_questions (
  id uuid primary key,
  account_id text not null,
  chat_id bigint not null,
  workspace_id uuid not null,
  -- How far back is asked for.
  since timestamptz not null,
  asked_at timestamptz not null default clock_timestamp(),
  answered_at timestamptz,
  -- The account's own messages, each with `id` and `random_id`; null in an answer: the platform did not tell.
  shown jsonb,
  check (shown is null or answered_at is not null)
);
create index history_questions_open on history_questions (account_id, id) where answered_at is null;
