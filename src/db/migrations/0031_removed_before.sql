-- The release before removed operations after their 30 days and did not note which (0025). Journals still know them, and would
-- take them for forgotten: sending would be switched off by the first start of this release. Ids begin with their time, in
-- milliseconds. One hour more, because processes of the release before may still be removing.
update instance set removed_id = greatest(removed_id, (lpad(to_hex(
  (extract(epoch from real_now() - interval '30 days' + interval '1 hour') * 1000)::bigint), 12, '0')
  || '7fffbfffffffffffffff')::uuid);
