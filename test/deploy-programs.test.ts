/** The programs that read deploy/ check it themselves, where they are installed. Those that are not are skipped by name. */
import { spawnSync } from 'node:child_process'
import { closeSync, mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Certificates, hasOpenssl } from './harness/certificates.ts'
import { deploy, textOf } from './harness/deploy.ts'

const root = join(import.meta.dirname, '..')

describe('programs that check their own configuration', () => {
  let scratch: string
  let certificates: Certificates
  beforeAll(() => {
    scratch = mkdtempSync(join(tmpdir(), 'parley-deploy-'))
    certificates = new Certificates()
  })
  afterAll(() => {
    rmSync(scratch, { recursive: true })
    certificates.remove()
  })

  /** The file with a certificate that exists, in a directory that does. */
  function placed(file: string): string {
    const { key, cert } = certificates.make('localhost', { days: 2 })
    const [keyFile, certFile, both] = ['key.pem', 'cert.pem', 'both.pem'].map((name) =>
      join(scratch, name),
    ) as [string, string, string]
    writeFileSync(keyFile, key)
    writeFileSync(certFile, cert)
    writeFileSync(both, Buffer.concat([cert, key]))
    const copy = join(scratch, basename(file))
    writeFileSync(
      copy,
      textOf(file)
        .replace('/etc/ssl/parley/fullchain.pem', certFile)
        .replace('/etc/ssl/parley/privkey.pem', keyFile)
        .replace('/etc/haproxy/certs/parley.pem', both)
        .replace('/var/log/nginx', scratch)
        .replace('/opt/parley/node_modules/.bin/node', process.execPath)
        .replaceAll('/opt/parley', root),
    )
    return copy
  }

  const programs: readonly (readonly [program: string, file: string, args: (copy: string) => string[]])[] = [
    ['promtool', 'prometheus/alerts.yml', () => ['check', 'rules', join(deploy, 'prometheus', 'alerts.yml')]],
    [
      'promtool',
      'prometheus/alerts.test.yml',
      () => ['test', 'rules', join(deploy, 'prometheus', 'alerts.test.yml')],
    ],
    [
      'nginx',
      'nginx.conf',
      (copy) => ['-t', '-p', scratch, '-g', `pid ${join(scratch, 'pid')};`, '-c', copy],
    ],
    ['haproxy', 'haproxy.cfg', (copy) => ['-c', '-f', copy]],
    ['caddy', 'Caddyfile', (copy) => ['validate', '--adapter', 'caddyfile', '--config', copy]],
    ['docker-compose', 'compose.yml', () => ['--file', join(deploy, 'compose.yml'), 'config', '--quiet']],
    ['systemd-analyze', 'parley@.service', (copy) => ['verify', copy]],
  ]
  // Debian keeps some of them where only root looks.
  const PATH = `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin`
  const isInstalled = (program: string) =>
    spawnSync('sh', ['-c', `command -v ${program}`], { env: { PATH } }).status === 0

  test.for(programs)('%s accepts %s', ([program, file, args], { skip }) => {
    if (!isInstalled(program)) skip(`${program} is not installed.`)
    if (!hasOpenssl) skip('openssl, which makes the certificates, is not installed.')
    const env = { PATH, HOME: scratch, DOMAIN: 'localhost', PARLEY_SECRET: 'x', POSTGRES_PASSWORD: 'x' }
    // A file, because nginx cannot open the sockets that Node passes for pipes.
    const output = openSync(join(scratch, 'output'), 'w+')
    const { status } = spawnSync(program, args(placed(file)), { env, stdio: ['ignore', output, output] })
    const said = readFileSync(join(scratch, 'output'), 'utf8')
    closeSync(output)
    expect([status, said]).toEqual([0, expect.anything()])
    // It exits with 0 whatever it finds.
    if (program === 'systemd-analyze') expect(said).not.toContain('parley')
  })
})
