-- How long a workspace keeps texts, files and names. Without a row, and where a number is null, everything is kept.

create table retention (
  workspace_id uuid primary key references workspaces (id),
  messages_days int check (messages_days between 1 and 3650),
  operations_days int check (operations_days between 1 and 3650),
  -- A report is read for a while after its campaign.
  recipients_days int check (recipients_days between 30 and 3650),
  notes_days int check (notes_days between 1 and 3650)
);

-- Messages from before are stored without their content: the platform still shows what was cleared here.
create function kept_since(workspace uuid) returns timestamptz language sql stable as $$
  select coalesce((
    select domain_now() - make_interval(days => r.messages_days) from retention r where r.workspace_id = workspace),
    '-infinity')
$$;
