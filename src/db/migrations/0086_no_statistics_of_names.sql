-- A look-up reads the names of one person, or the people of one name: a few rows, however many there are. PostgreSQL believes what it saw
-- last: when it had looked at the names of five people, it expected a fifth of all names for each, and read the whole table until it
-- looked again, after an import for up to a minute. Without statistics it takes the index.
alter table person_names alter column person_id set statistics 0;
alter table person_names alter column value set statistics 0;
-- What it saw before would stay; a column that is given its own type forgets it.
alter table person_names alter column person_id type uuid, alter column value type text;
