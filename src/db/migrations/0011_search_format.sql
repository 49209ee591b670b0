-- Segments tell in which format they are stored, so that code with another format indexes their messages anew
-- (capabilities/search/index/reindex.ts). Those that are here have format 1.

alter table search_segments
  add column format smallint not null default 1,
  -- Nothing needs to know any more when some of a segment's messages were sent.
  drop column times;
