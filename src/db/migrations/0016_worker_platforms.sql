-- Which platforms a worker can reach, so that an account whose platform nobody reaches is told apart from one that waits.
alter table workers add column platforms text[] not null default '{}';
