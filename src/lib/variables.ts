/** Checks for environment variables. */
import { z } from 'zod'

export function address(...protocols: readonly string[]) {
  return z
    .string()
    .refine((text) => URL.canParse(text) && protocols.some((each) => text.startsWith(`${each}//`)), {
      // The value may contain a password and is never repeated.
      message: `must be an address that starts with ${protocols.map((each) => `${each}//`).join(' or ')}`,
    })
    .optional()
}

/** A host, followed by at most a path. */
const originAndPath = /^https?:\/\/[^/@?#\s\\]+(\/[^?#\s\\]*)?$/

/** The address of a service. Every link is this address plus a path, so it has no user name, query or fragment. */
export function baseAddress() {
  return (
    z
      .string()
      // guard: origin and path
      .refine((text) => URL.canParse(text) && originAndPath.test(text), {
        message: 'must be an address that starts with http:// or https://, without a user name, ? or #',
      })
      .optional()
  )
}

export function wholeNumber(least: number, most: number) {
  return z
    .string()
    .refine((text) => /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most, {
      message: `must be a whole number from ${least} to ${most}`,
    })
    .transform(Number)
}
