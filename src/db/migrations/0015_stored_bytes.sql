-- How many bytes of files each workspace has stored: one key must not be able to fill the disk.

create table stored_bytes (
  workspace_id uuid primary key,
  bytes bigint not null check (bytes >= 0)
);
insert into stored_bytes (workspace_id, bytes)
  select workspace_id, sum(octet_length(bytes)) from file_chunks group by workspace_id;

-- The row of the workspace is locked from here to the commit, so chunks that come together cannot pass the limit together.
-- Whoever stores without a limit, such as a restore, is only counted.
create function count_stored_bytes() returns trigger language plpgsql as $$
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
end $$;
create trigger file_chunks_stored after insert on file_chunks for each row execute function count_stored_bytes();

-- In the order of the workspaces, so that two that delete files of the same workspaces do not wait for each other.
create function count_deleted_bytes() returns trigger language plpgsql as $$
declare
  deleted record;
begin
  for deleted in
    select workspace_id, sum(octet_length(bytes)) as bytes from gone group by workspace_id order by workspace_id
  loop
    update stored_bytes s set bytes = s.bytes - deleted.bytes where s.workspace_id = deleted.workspace_id;
  end loop;
  return null;
end $$;
create trigger file_chunks_deleted after delete on file_chunks referencing old table as gone
  for each statement execute function count_deleted_bytes();
