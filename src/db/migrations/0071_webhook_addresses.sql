-- Addresses of webhooks may hold a receiver's token, so they are sealed. `url` is empty from then on: a loop seals what is there
-- once no process of release 0.3 runs, which writes and reads `url`. A `url` that is not empty counts.

alter table webhooks
  add column url_sealed bytea,
  -- Raised with each new address: a response from an earlier one does not count.
  add column url_no int not null default 0,
  add check (url <> '' or url_sealed is not null);

create index webhooks_plain on webhooks (id) where url <> '';

create function count_webhook_address() returns trigger language plpgsql as $$
begin
  new.url_no := old.url_no + 1;
  return new;
end $$;
-- A process of release 0.3 changes an address.
create trigger webhooks_address before update of url on webhooks for each row
  when (new.url <> '' and new.url <> old.url and new.url_no = old.url_no) execute function count_webhook_address();
