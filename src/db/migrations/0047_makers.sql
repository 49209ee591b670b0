-- Who made a webhook and a set-up link is stored, and what a person made ends with them.

alter table webhooks
  -- The member who made it, took it over, or gave it its present address. Null: unknown, from before this migration.
  add column made_by uuid,
  -- Why it stopped, if that was with its maker.
  add column stop_reason text check (stop_reason in ('maker_removed', 'maker_disabled')),
  add foreign key (workspace_id, made_by) references memberships;

-- The user who made it and has seen it. Null: an operator at the terminal, or from before this migration.
alter table setup_links add column made_by uuid references users;

-- Stops what sends messages to the person's own address, and ends what would let them in again. `workspace` null: everywhere.
create function end_with_maker(maker uuid, workspace uuid, reason text) returns void language plpgsql as $$
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
end $$;

create function end_with_membership() returns trigger language plpgsql as $$
begin
  perform end_with_maker(new.user_id, new.workspace_id, 'maker_removed');
  -- Sessions that open nothing any more. A user of other workspaces, or an operator, stays signed in there.
  update sessions s set revoked_at = domain_now() from users u
  where s.user_id = new.user_id and u.id = s.user_id and s.revoked_at is null and not u.operator and not exists (
    select from memberships m where m.user_id = new.user_id and m.ended_at is null);
  return null;
end $$;
create trigger memberships_makers after update of ended_at on memberships for each row
  when (old.ended_at is null and new.ended_at is not null) execute function end_with_membership();

create function end_with_user() returns trigger language plpgsql as $$
begin
  perform end_with_maker(new.id, null, 'maker_disabled');
  -- Of every workspace and whoever issued them, as at the end of a membership.
  update keys set revoked_at = domain_now() where user_id = new.id and revoked_at is null;
  return null;
end $$;
create trigger users_makers after update of disabled_at on users for each row
  when (old.disabled_at is null and new.disabled_at is not null) execute function end_with_user();
