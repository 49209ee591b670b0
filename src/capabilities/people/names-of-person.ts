/** The names of one person, as parts of statements: now, over time, and as the suppression list asks about them. */
import { given } from '../../db/given.ts'
import { type Sql, sql } from '../../db/sql.ts'

/** What a person is called in a chat or a contact of the workspace: where they wrote last; null if neither has a name. */
export function calledOf(person: { workspace_id: Sql; platform: Sql; number: Sql }): Sql {
  return sql`(
    select known.name from accounts a
    cross join lateral (
      select c.name, c.last_message_at as at from chats c
      where c.account_id = a.id and c.chat_id = ${person.number} and c.kind = 'private'
      union all
      select o.name, null from contacts o where o.account_id = a.id and o.provider_id = ${person.number}) known
    where a.workspace_id = ${person.workspace_id} -- guard: what own accounts call a person
      and a.platform = ${person.platform} and btrim(known.name) <> ''
    order by known.at desc nulls last, a.created_at, a.id limit 1)`
}

/** Selects every name by which an entry of the suppression list can stop a person, with when it passed on. */
export function namesOfPerson({ id, number }: { id: Sql; number: Sql }): Sql {
  return sql`
    select 'platform_id' as kind, ${number}::text as value, null::timestamptz as until
    union all
    select n.kind, n.value, n.until from person_names n where n.person_id = ${id}`
}

/** Whether an entry of the list stops the person, as `is_listed` says. */
export function isPersonListed({
  workspace_id,
  ...person
}: {
  workspace_id: Sql
  id: Sql
  number: Sql
}): Sql {
  return sql`exists (
    select from (${namesOfPerson(person)}) named
    cross join lateral (
      select from suppressions s
      where s.workspace_id = ${workspace_id} and s.kind = named.kind and s.value = named.value
        and (named.until is null or named.until >= s.created_at) -- guard: a name of a person while it was listed
      limit 1) listed)`
}

/** Those that the person has now, as an array: `kind:value` in the list's form. */
export function currentNamesOf(id: Sql, limit: number): Sql {
  return sql`array(
    select distinct n.kind || ':' || n.value from person_names n where n.person_id = ${id} and n.until is null
    order by 1 limit ${limit})`
}

/** Selects every name with the account that saw it, since when, when last, and until when. */
export function namesOverTime(id: string): Sql {
  return sql`
    select n.kind, n.value, n.account_id, n.first_seen_at as since, n.last_seen_at as seen_at, n.until
    from person_names n where n.person_id = ${id}`
}

interface Name {
  readonly kind: 'username' | 'phone'
  /** In the list's form. */
  readonly value: string
}

/** Selects the platform and number of everybody who has or had one of the names, and an account that saw it. */
export function peopleNamed(workspace_id: string, names: readonly Name[]): Sql {
  return sql`
    select n.platform, p.number, n.account_id
    from ${given(names, { kind: 'text', value: 'text' })} as asked
    cross join lateral (
      select * from person_names n
      where n.workspace_id = ${workspace_id} -- guard: names of own people
        and n.kind = asked.kind and n.value = asked.value offset 0) n
    cross join lateral (select * from people p where p.id = n.person_id limit 1) p`
}
