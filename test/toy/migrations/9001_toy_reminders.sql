-- The reminders of the toy slice: which user wants to be reminded of which chat, and when.

create table toy_reminders (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  note text not null check (char_length(note) <= 200),
  due_at timestamptz not null,
  told_at timestamptz
);
create index toy_reminders_due on toy_reminders (due_at) where told_at is null;
