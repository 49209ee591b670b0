/**
 * Edits of functions and triggers in the database. Released migrations never change, and a later one may define a function again, so
 * an edit names the function and a text of its present definition, and applies to a migrated database instead of a migration's file.
 */
import type pg from 'pg'

export interface SqlPatch {
  /** The name of a function or of a trigger, of which there is one. */
  readonly function: string
  /** Occurs once in its definition. */
  readonly text: string
  readonly replace: string
}

/** The definition with the edit; throws if it does not fit. */
export function patchDefinition(definition: string, { function: name, text, replace }: SqlPatch): string {
  const parts = definition.split(text)
  if (parts.length !== 2) {
    throw new Error(
      `The patch does not fit: the function ${name} has ${JSON.stringify(text)} ${parts.length - 1} times.`,
    )
  }
  return parts.join(replace)
}

/** The definitions of a schema file (`src/db/schema.sql`), by the name of the function or trigger. */
export function listDefinitions(schema: string): Map<string, string[]> {
  const functions = schema.matchAll(
    /^CREATE OR REPLACE FUNCTION public\.(\w+)\((?:(?!\nCREATE ).)*?\$function\$;$/gms,
  )
  const triggers = schema.matchAll(/^CREATE TRIGGER (\w+) [^\n]*;$/gm)
  const found = [...functions, ...triggers]
  const named = Map.groupBy(found, ([, name = '']) => name)
  return new Map([...named].map(([name, matches]) => [name, matches.map(([text]) => text)]))
}

/** Defines the functions again, with the edits. */
export async function patchFunctions(client: pg.Client, patches: readonly SqlPatch[]): Promise<void> {
  for (const patch of patches) {
    const { rows } = await client.query<{ definition: string }>(
      `select pg_get_functiondef(p.oid) as definition from pg_proc p
       where p.proname = $1 and p.pronamespace = 'public'::regnamespace
       union all
       select replace(pg_get_triggerdef(t.oid), 'CREATE TRIGGER', 'CREATE OR REPLACE TRIGGER') from pg_trigger t
       where t.tgname = $1 and not t.tgisinternal`,
      [patch.function],
    )
    const [only, ...others] = rows
    if (!only || others.length > 0)
      throw new Error(
        `The patch does not fit: ${rows.length} functions or triggers are called ${patch.function}.`,
      )
    await client.query(patchDefinition(only.definition, patch))
  }
}
