-- A dump may be loaded into a server that goes on: the database goes back in time, and the server is in the run that it was in.

-- As before (0025), and which file the table has: another one after it was loaded.
create or replace function server_run() returns text language sql stable parallel safe as
  'select extract(epoch from pg_postmaster_start_time())::text || '' '' || pg_relation_filenode(''instance'')';
