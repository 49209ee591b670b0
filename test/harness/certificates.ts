/** Certificates for servers of a test, made by openssl where it is installed. */
import { execFileSync } from 'node:child_process'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { isIP } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

export interface Certificate {
  readonly key: Buffer
  readonly cert: Buffer
}

export const hasOpenssl = (() => {
  try {
    return execFileSync('openssl', ['version']).length > 0
  } catch {
    return false
  }
})()

export class Certificates {
  readonly #directory = mkdtempSync(join(tmpdir(), 'parley-certificates-'))

  /** A key and a certificate for a name or an address, signed by `by`, or by itself. */
  make(name: string, { by, days }: { by?: string; days: number }): Certificate {
    const file = (kind: string, of = name) => join(this.#directory, `${of}.${kind}`)
    const run = (...args: string[]) => execFileSync('openssl', args, { stdio: 'pipe' })
    const key = [
      '-newkey',
      'ec',
      '-pkeyopt',
      'ec_paramgen_curve:prime256v1',
      '-nodes',
      '-keyout',
      file('key'),
    ]
    const kind = isIP(name) === 0 ? 'DNS' : 'IP'
    const names = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${kind}:${name}`]
    if (by) {
      const issuer = ['-CA', file('crt', by), '-CAkey', file('key', by), '-copy_extensions', 'copy']
      run('req', ...key, '-out', file('csr'), ...names)
      run('x509', '-req', '-in', file('csr'), '-out', file('crt'), ...issuer, '-days', String(days))
    } else {
      run('req', '-x509', ...key, '-out', file('crt'), ...names, '-days', String(days))
    }
    return { key: readFileSync(file('key')), cert: readFileSync(file('crt')) }
  }

  remove(): void {
    rmSync(this.#directory, { recursive: true, force: true })
  }
}
