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

/** The list of hosts that libpq knows: in the authority, after the credentials, or as a parameter. */
const severalHosts = /^[a-z]+:\/\/(?:[^/?#]*@)?[^/?#@]*,|[?&]host=[^&#]*(?:,|%2c)/i

/** A PostgreSQL server. The driver connects to one host. */
export function databaseAddress() {
  const hostsRule =
    'must name one host: the address that leads to the primary server, also after a failover. Parley does not choose among several'
  return z
    .string()
    .refine((text) => !severalHosts.test(text), { message: hostsRule, abort: true }) // guard: one host
    .pipe(address('postgres:', 'postgresql:').unwrap())
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
