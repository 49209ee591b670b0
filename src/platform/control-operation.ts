/** What a call of a platform's control address is. */
import type { z } from 'zod'
import { parse } from '../lib/parse.ts'

interface Statement {
  readonly name: string
  readonly method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** Below `/<platform>/v1`. A name in braces is one of `params`. */
  readonly path: string
  readonly summary: string
  readonly description: string
  readonly params?: z.ZodType
  readonly body: z.ZodType | null
  readonly query: z.ZodType | null
  readonly response: z.ZodType
  readonly example: { readonly params?: unknown; readonly request: unknown; readonly response: unknown }
}

/** An operation on a subject that is given later. */
export interface ControlOperation<S> extends Statement {
  /** Checks the input and runs the operation. Throws an `ApiError` if the input is wrong. */
  handle(subject: S, input: ControlInput): Promise<unknown>
}

/** An operation together with what it acts on. */
export interface ControlCall extends Statement {
  handle(input: ControlInput): Promise<unknown>
}

export function bind<S>(operations: readonly ControlOperation<S>[], subject: S): ControlCall[] {
  return operations.map((each) => ({ ...each, handle: (input) => each.handle(subject, input) }))
}

interface ControlInput {
  readonly params?: unknown
  readonly body?: unknown
  readonly query?: unknown
}

type Parsed<S extends z.ZodType | null> = S extends z.ZodType ? z.infer<S> : null

interface Definition<
  S,
  B extends z.ZodType | null,
  Q extends z.ZodType | null,
  R extends z.ZodType,
  P extends z.ZodType,
> extends Omit<Statement, 'params' | 'body' | 'query' | 'response'> {
  readonly params?: P
  readonly body: B
  readonly query: Q
  readonly response: R
  handle(
    subject: S,
    input: { params: z.infer<P>; body: Parsed<B>; query: Parsed<Q> },
  ): z.infer<R> | Promise<z.infer<R>>
}

/** States an operation with the types of its own schemas, and gives it the one check that all of them share. */
export function operation<
  S,
  B extends z.ZodType | null,
  Q extends z.ZodType | null,
  R extends z.ZodType,
  P extends z.ZodType = z.ZodNull,
>(definition: Definition<S, B, Q, R, P>): ControlOperation<S> {
  return {
    ...definition,
    handle: async (subject, input) =>
      definition.handle(subject, {
        params: parseAs(definition.params ?? null, input.params ?? {}) as z.infer<P>,
        body: parseAs(definition.body, input.body ?? {}),
        query: parseAs(definition.query, input.query ?? {}),
      }),
  }
}

function parseAs<S extends z.ZodType | null>(schema: S, value: unknown): Parsed<S> {
  return (schema === null ? null : parse(schema, value)) as Parsed<S>
}
