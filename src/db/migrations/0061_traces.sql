-- The trace of an event, from the outbox to its deliveries. Apart from 0054, which would lock out readers for as long as it works.

alter table events add column traceparent text;

-- That of its event. A test of an endpoint has no event: it has that of the request for the test.
alter table webhook_deliveries add column traceparent text;
