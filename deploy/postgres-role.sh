#!/bin/sh
# Makes the role that Parley uses: it owns the database and everything in it, and is no superuser. The image of PostgreSQL runs this
# for a new volume. It may run any number of times; on a volume from before, by hand, and Parley may run meanwhile:
#   docker compose exec postgres sh /docker-entrypoint-initdb.d/postgres-role.sh
set -eu
psql --no-psqlrc --quiet --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname "$POSTGRES_DB" <<'END'
\getenv password DATABASE_PASSWORD
\getenv database POSTGRES_DB
set client_min_messages = warning;
-- One statement at a time, each with a short lock: no transaction holds two.
set lock_timeout = '10s';
select 'create role parley_owner' where to_regrole('parley_owner') is null \gexec
alter role parley_owner with login nosuperuser nocreatedb nocreaterole noreplication nobypassrls password :'password';
alter database :"database" owner to parley_owner;
alter schema public owner to parley_owner;
-- Indexes, constraints and sequences of columns follow their table. What belongs to an extension stays with it.
select format('alter table %s owner to parley_owner', c.oid::regclass) from pg_class c
  where c.relnamespace = 'public'::regnamespace and c.relkind in ('r', 'p', 'S', 'v', 'm')
    and not exists (
      select from pg_depend d where d.classid = 'pg_class'::regclass and d.objid = c.oid
        and (d.deptype = 'e' or c.relkind = 'S' and d.deptype in ('a', 'i')))
  order by c.oid \gexec
select format('alter routine %s owner to parley_owner', p.oid::regprocedure) from pg_proc p
  where p.pronamespace = 'public'::regnamespace
    and not exists (select from pg_depend d where d.classid = 'pg_proc'::regclass and d.objid = p.oid and d.deptype = 'e')
  order by p.oid \gexec
select format('alter type %s owner to parley_owner', t.oid::regtype) from pg_type t
  where t.typnamespace = 'public'::regnamespace and t.typtype in ('d', 'e', 'r')
    and not exists (select from pg_depend d where d.classid = 'pg_type'::regclass and d.objid = t.oid and d.deptype = 'e')
  order by t.oid \gexec
END
