/** Fails a test that dialled an address outside this machine, whichever error the code under test made of it. */
import { afterAll, afterEach } from 'vitest'
import { dialled } from './loopback-only.ts'

function check(): void {
  const addresses = dialled.splice(0)
  if (addresses.length > 0)
    throw new Error(`Tests reach loopback only: this one dialled ${addresses.join(', ')}.`)
}

afterEach(check)
afterAll(check)
