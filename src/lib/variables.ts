/** What variables of the environment are checked with. */
import { z } from 'zod'

export function address(...protocols: readonly string[]) {
  return z
    .string()
    .refine((text) => URL.canParse(text) && protocols.some((each) => text.startsWith(`${each}//`)), {
      // The value itself may hold a password and is never repeated.
      message: `must be an address that starts with ${protocols.map((each) => `${each}//`).join(' or ')}`,
    })
    .optional()
}

export function wholeNumber(least: number, most: number) {
  return z
    .string()
    .refine((text) => /^\d{1,9}$/.test(text) && Number(text) >= least && Number(text) <= most, {
      message: `must be a whole number from ${least} to ${most}`,
    })
    .transform(Number)
}
