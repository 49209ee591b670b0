-- How many of those who replied to a campaign asked to stop, counted as replies are.

alter table campaign_counts add column opted_out bigint not null default 0;

-- Replies from before are counted where they were heard.
insert into campaign_counts as c (workspace_id, at, campaign_id, account_id, opted_out)
select workspace_id, case when grouping(quarter) = 0 then quarter else '-infinity' end, campaign_id, account_id, count(*)
from (
  select workspace_id, campaign_id, account_id, date_bin('15 minutes', replied_at, '2000-01-01 00:00Z') as quarter
  from campaign_recipients
  where status = 'replied' and opted_out and replied_at is not null and account_id is not null) r
group by grouping sets ((workspace_id, campaign_id, account_id), (workspace_id, campaign_id, account_id, quarter))
on conflict (workspace_id, at, campaign_id, account_id) do update set opted_out = excluded.opted_out;
