-- An operator can disable a workspace: its keys and members are refused, no worker drives its accounts.
alter table workspaces add column disabled_at timestamptz;
