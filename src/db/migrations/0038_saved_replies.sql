-- What people at the dashboard keep for their chats: texts to answer with, and the colours of stages.

create table saved_replies (
  id uuid primary key,
  workspace_id uuid not null references workspaces,
  title text not null check (char_length(title) between 1 and 100),
  text text not null check (char_length(text) between 1 and 4096),
  created_at timestamptz not null default domain_now(),
  updated_at timestamptz not null default domain_now()
);
create index saved_replies_workspace on saved_replies (workspace_id, title, id);

-- A name such as blue, or #3366ff. Null: none was chosen.
alter table stages add column color text check (color ~* '^(#[0-9a-f]{6}|[a-z]{1,20})$');
