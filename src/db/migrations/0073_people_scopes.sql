-- Scopes of keys that read everything stored about a person, and may export or erase it.

alter table keys
  drop constraint keys_scopes_check,
  add constraint keys_scopes_check check (
    scopes <@ array['read', 'write', 'send', 'campaigns', 'people', 'people_export', 'people_erase']
    and cardinality(scopes) > 0);
