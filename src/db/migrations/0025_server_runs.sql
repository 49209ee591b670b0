-- Guards that span accounts: what the accounts of a pool know together after the database server was started again.

-- The server's present run. A database that was put back from an older picture is always in a new one. Tests replace it.
create function server_run() returns text language sql stable parallel safe as
  'select extract(epoch from pg_postmaster_start_time())::text';

alter table instance
  -- Rises with every new run of the server and with every new generation.
  add column run_no bigint not null default 0,
  -- The generation and the server's run that `run_no` stands for.
  add column run text,
  -- The newest operation that was removed after its 30 days: a journal that knows one up to it tells nothing new.
  add column removed_id uuid;

alter table account_hosts
  -- The last run at whose beginning the account was READY: until it is confirmed, it may know of messages that the database
  -- has forgotten.
  add column ready_run bigint,
  -- The last run in which the account's worker had compared its marks while everything that the platform had to tell was
  -- stored, or in which an operator disabled the account.
  add column confirmed_run bigint;

-- The first caller in a new run records which accounts were READY then. Answers the number of the present run.
create function begin_run() returns bigint language plpgsql as $$
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
end $$;

-- An account that stops being READY in a new run was READY when the run began, whether or not a worker has noticed it yet.
create function begin_run_first() returns trigger language plpgsql as $$
begin
  perform begin_run();
  return new;
end $$;
create trigger accounts_begin_run before update of status on accounts for each row
  when (old.status = 'READY' and new.status <> 'READY') execute function begin_run_first();
