import { connect } from 'node:net'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { askDashboard, signIn } from '../../../test/harness/person.ts'
import { hangMs, until } from '../../../test/harness/process.ts'
import { openService, type Service } from '../../../test/harness/service.ts'
import { type Asking, openTeam, type Team } from '../../../test/harness/team.ts'
import { sql } from '../../db/sql.ts'
import { exportInTurn } from './list-file.ts'

let service: Service
let team: Team
let cookie: string

beforeAll(async () => {
  service = await openService()
  team = await openTeam(service)
  cookie = await signIn(service, team.user_id)
})
afterAll(() => service.close())

interface Report {
  readonly added: number
  readonly skipped_count: number
  readonly skipped: readonly { readonly line: number; readonly reason: string }[]
}

const importPath = '/suppressions/import?file_name=list.csv'
const send = (text: string, { path = importPath, headers = {} } = {}) =>
  askDashboard(service, 'POST', `/w/${team.workspace_id}${path}`, { cookie, body: text, headers })

async function importText(text: string): Promise<Report> {
  const { status, body } = await send(text)
  expect([status, body.error]).toEqual([200, undefined])
  return body as unknown as Report
}

const count = async (table = sql`suppressions`) =>
  (
    await service.app.db.one<{ rows: number }>(
      sql`select count(*)::int as rows from ${table} where workspace_id = ${team.workspace_id}`,
    )
  ).rows

/** Sends bytes as they are, and returns the answer's status and code once the connection ends. */
function sendBytes(bytes: Buffer, headers: Readonly<Record<string, string>> = {}): Promise<string> {
  const { host, port, hostname } = new URL(service.url)
  const head = {
    host,
    origin: service.url,
    cookie,
    connection: 'close',
    'content-type': 'text/csv',
    'content-length': String(bytes.length),
    ...headers,
  }
  const lines = Object.entries(head).map(([name, value]) => `${name}: ${value}\r\n`)
  const socket = connect(Number(port), hostname)
  socket.write(`POST /dashboard/api/w/${team.workspace_id}${importPath} HTTP/1.1\r\n${lines.join('')}\r\n`)
  socket.write(bytes)
  return new Promise((resolve) => {
    let answer = ''
    socket.on('data', (piece) => {
      answer += piece
      // Our side may declare more than it sends, which the service would wait for.
      if (answer.includes('"code"')) socket.destroy()
    })
    socket.on('error', () => {})
    socket.on('close', () => {
      resolve(
        `${answer.split(' ')[1]} ${/"code":"(\w+)"/.exec(answer)?.[1]} ${/"error":"([^"]*)/.exec(answer)?.[1]}`,
      )
    })
  })
}

describe('POST /suppressions/import', () => {
  test('200 adds the rows, and names each skipped line with its reason', async () => {
    const report = await importText(
      '\uFEFFname,phone,username\r\nAda,+49 170 5550101,ada_l\r\n=1+1,,"=HYPERLINK(""x"")"\r\nBö,12,\r\n\r\nCyd,,ADA_L\r\n',
    )
    expect(report).toEqual({
      added: 2,
      skipped_count: 3,
      skipped: [
        { line: 3, reason: expect.stringContaining('is not a username') },
        { line: 4, reason: expect.stringContaining('"12" is not a phone number') },
        { line: 6, reason: 'Duplicate of line 2.' },
      ],
    })
    const { body } = await team.ask('GET', '/suppressions?search=ada_l')
    expect(body.suppressions).toMatchObject([{ source: 'import', evidence: { file: 'list.csv', line: 2 } }])
    const row = await service.app.db.one(sql`
      select actor, action, detail::jsonb as detail from audit where workspace_id = ${team.workspace_id} order by seq desc limit 1`)
    expect(row).toEqual({
      actor: `user:${team.user_id}`,
      action: 'suppression.imported',
      detail: { added: 2, skipped: 3 },
    })
  })

  test('200 names the first skipped lines of a file, whatever they were skipped for', async () => {
    const known = Array.from({ length: 1_000 }, (_, at) => `known_before_${at}`)
    await importText(['username', ...known].join('\n'))
    const invalid = Array.from({ length: 10_000 }, () => '=')
    const { skipped, skipped_count } = await importText(['username', ...known, ...invalid].join('\n'))
    expect([skipped_count, skipped.length]).toEqual([11_000, 10_000])
    expect([skipped[0], skipped[999]?.line, skipped[1_000]?.line, skipped.at(-1)?.line]).toEqual([
      { line: 2, reason: 'Already on the list.' },
      1_001,
      1_002,
      10_001,
    ])
  })

  test('400 imports nothing, and says at which line the file cannot be read', async () => {
    const before = await count()
    const cases: [RegExp, Buffer | string][] = [
      [
        /^400 invalid_request Line 3 is not UTF-8/,
        Buffer.from('username\r\nfine_one\r\nb\xf6se\r\nx', 'latin1'),
      ],
      [
        /^400 invalid_request Line 20002 is not UTF-8/,
        `username\n${'long_enough_to_fill\n'.repeat(20_000)}\xf6`,
      ],
      [/^400 invalid_request Line 2 is not UTF-8/, 'username\ncut_\xc3'],
      [/^400 invalid_request The first line must name the columns/, 'ada_one\nbob_two\n'],
      [/^400 invalid_request The quote that begins on line 3 is never closed/, 'username\nfine_two\n"open\n'],
      [/^400 invalid_request A text\/csv body is required/, ''],
    ]
    for (const [answer, bytes] of cases) {
      expect(await sendBytes(Buffer.from(bytes as string, 'latin1'))).toMatch(answer)
    }
    expect(await count()).toBe(before)
    expect(await count(sql`file_chunks`)).toBe(0)
  })

  test('413 for a file beyond 64 MiB, at once if it says so, otherwise when it exceeds that', async () => {
    const declared = { 'content-length': String(64 * 1_048_576 + 1) }
    expect(await sendBytes(Buffer.alloc(64 * 1_048_576 + 1, 'x'), declared)).toMatch(/^413 payload_too_large/)
    expect(await count(sql`file_chunks`)).toBe(0)
    const response = await fetch(`${service.url}/dashboard/api/w/${team.workspace_id}${importPath}`, {
      method: 'POST',
      headers: { origin: service.url, cookie, 'content-type': 'text/csv' },
      duplex: 'half',
      body: new ReadableStream({
        start: (controller) => controller.enqueue(Buffer.alloc(64 * 1_048_576 + 1, 'x\n')),
        pull: (controller) => controller.close(),
      }),
    } as RequestInit)
    expect([response.status, await response.json()]).toMatchObject([413, { code: 'payload_too_large' }])
    expect(await count(sql`file_chunks`)).toBe(0)
  })

  test('415 for anything but plain CSV in UTF-8', async () => {
    for (const headers of [
      { 'content-type': 'application/json' },
      { 'content-type': 'text/csv; charset=latin1' },
      { 'content-encoding': 'gzip' },
    ]) {
      const { status, body } = await send('username\nfine_three\n', { headers })
      expect([status, body.code], JSON.stringify(headers)).toEqual([415, 'unsupported_media_type'])
    }
  })

  test('a file that breaks off imports nothing and leaves nothing stored', async () => {
    const before = await count()
    const text = Buffer.from(`username\n${'never_imported_one\n'.repeat(40_000)}`)
    const { port, hostname, host } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.write(
      `POST /dashboard/api/w/${team.workspace_id}${importPath} HTTP/1.1\r\nhost: ${host}\r\norigin: ${service.url}\r\n` +
        `cookie: ${cookie}\r\ncontent-type: text/csv\r\ncontent-length: ${text.length}\r\n\r\n`,
    )
    socket.write(text.subarray(0, 600_000))
    await until('a part is stored', hangMs, async () => (await count(sql`file_chunks`)) > 0)
    socket.destroy()
    await until('it is deleted', hangMs, async () => (await count(sql`file_chunks`)) === 0)
    expect(await count()).toBe(before)
  })

  test('429 for a third import at once, so that other requests find connections', async () => {
    const others = await Promise.all([1, 2, 3].map(() => openTeam(service, 'One of three')))
    const { db } = service.app
    // What the imports wait for at their commits.
    const answers = await db.transaction(async (tx) => {
      for (const { workspace_id } of others) {
        await tx.run(sql`select pg_advisory_xact_lock(suppressions_lock(${workspace_id}))`)
      }
      const asked = others.map(({ ask }) => ask('POST', importPath, 'username\none_of_three\n'))
      const first = await Promise.race(asked)
      return { first, asked }
    })
    expect([answers.first.status, answers.first.body.code]).toEqual([429, 'rate_limited'])
    const all = (await Promise.all(answers.asked)).map(({ status }) => status).toSorted()
    expect(all).toEqual([200, 200, 429])
  })

  test('429 for a second file of the same workspace, which neither takes nor frees a place', async () => {
    const teams = await Promise.all([1, 2, 3].map(() => openTeam(service, 'One of three')))
    const [mine, ...others] = teams as [Team, ...Team[]]
    const { db } = service.app
    const statuses: number[] = []
    const ask = async (each: Asking) => {
      statuses.push((await each('POST', importPath, 'username\none_of_three\n')).status)
    }
    const users = [mine, await mine.join('admin'), await mine.join('admin')]
    const asked = await db.transaction(async (tx) => {
      for (const { workspace_id } of teams) {
        await tx.run(sql`select pg_advisory_xact_lock(suppressions_lock(${workspace_id}))`)
      }
      const own = users.map((user) => ask(user.ask))
      await until('two are refused', hangMs, () => statuses.length === 2)
      const all = [...own, ...others.map((other) => ask(other.ask))]
      await until('one more is refused', hangMs, () => statuses.length === 3)
      return all
    })
    await Promise.all(asked)
    expect(statuses.toSorted()).toEqual([200, 200, 429, 429, 429])
  })

  test('429 for a second file of the same user, into the list of another workspace', async () => {
    const [mine, other] = [await openTeam(service, 'Mine'), await openTeam(service, 'Other')]
    const { db } = service.app
    await db.run(sql`
      insert into memberships (workspace_id, user_id, role) values (${other.workspace_id}, ${mine.user_id}, 'admin')`)
    const own = { cookie: await signIn(service, mine.user_id), body: 'username\nof_one_user\n' }
    const answers = await db.transaction(async (tx) => {
      await tx.run(sql`select pg_advisory_xact_lock(suppressions_lock(${mine.workspace_id}))`)
      const first = askDashboard(service, 'POST', `/w/${mine.workspace_id}${importPath}`, own)
      await until('it waits for its commit', hangMs, () =>
        tx.maybe(sql`select 1 from pg_locks where locktype = 'advisory' and not granted`),
      )
      const second = await askDashboard(service, 'POST', `/w/${other.workspace_id}${importPath}`, own)
      return { first, second }
    })
    expect([answers.second.status, answers.second.body.code]).toEqual([429, 'rate_limited'])
    expect((await answers.first).status).toBe(200)
    expect((await askDashboard(service, 'POST', `/w/${other.workspace_id}${importPath}`, own)).status).toBe(
      200,
    )
  })

  test('400 before the file is read if its name is missing', async () => {
    const { host, port, hostname } = new URL(service.url)
    const socket = connect(Number(port), hostname)
    socket.write(
      `POST /dashboard/api/w/${team.workspace_id}/suppressions/import HTTP/1.1\r\nhost: ${host}\r\n` +
        `origin: ${service.url}\r\ncookie: ${cookie}\r\ncontent-type: text/csv\r\ncontent-length: 60000000\r\n\r\n`,
    )
    const answer = await new Promise<string>(
      (resolve) => void socket.once('data', (text) => resolve(String(text))),
    )
    socket.destroy()
    expect(answer).toMatch(/^HTTP\/1.1 400 [\s\S]*"file_name is required/)
  })

  test('other requests are served while a file is parsed', async () => {
    let done = false
    const sending = send(`username\n${'=\n'.repeat(900_000)}`).then((answer) => {
      done = true
      return answer
    })
    await until('the file has arrived', hangMs, async () => (await count(sql`file_chunks`)) > 0)
    let served = 0
    while (!done) {
      expect((await team.ask('GET', '/suppressions?limit=1')).status).toBe(200)
      served++
      // A session that asks more often is refused.
      await new Promise((resolve) => setTimeout(resolve, 200))
    }
    expect(served).toBeGreaterThan(0)
    expect((await sending).body).toMatchObject({ added: 0, skipped_count: 900_000 })
  })

  test('429 while another file is being imported into the same list, not into others', async () => {
    const { db } = service.app
    const lock = (workspace_id: string) => sql`
      select pg_advisory_xact_lock(hashtextextended('suppression import ' || ${workspace_id}, 0))`
    const other = await openTeam(service, 'Other')
    await db.transaction(async (tx) => {
      await tx.run(lock(other.workspace_id))
      expect((await send('username\nwhile_other\n')).status).toBe(200)
      await tx.run(lock(team.workspace_id))
      const { status, body, headers } = await send('username\nwhile_own\n')
      expect([status, body.code, headers.get('retry-after')]).toEqual([429, 'rate_limited', '10'])
    })
  })
})

describe('GET /suppressions/export', () => {
  test('200 as a file that a spreadsheet opens safely and an import reads back', async () => {
    const { status, headers, body } = await team.ask('GET', '/suppressions/export')
    expect(status).toBe(200)
    expect(headers.get('content-type')).toBe('text/csv; charset=utf-8')
    expect(headers.get('content-disposition')).toBe('attachment; filename="suppressions.csv"')
    const text = body.text as string
    expect(text.split('\r\n')[0]).toBe('kind,value,source,created_at,evidence')
    expect(await importText(text)).toMatchObject({ added: 0, skipped_count: await count() })
  })
})

/** A list that is longer than what the kernel holds for a client that does not read. */
async function longList(): Promise<Team> {
  const long = await openTeam(service, 'Long list')
  await service.app.db.run(sql`
    insert into suppressions (workspace_id, kind, value, source, evidence)
    select ${long.workspace_id}, 'phone', (490000000000 + n)::text, 'import', '{"file": "a-long-name-of-a-list.csv"}'
    from generate_series(1, 200000) n`)
  return long
}

test('GET /suppressions/export 429 for a second one of a workspace while the first is not read, and 200 once that has left', async () => {
  const long = await longList()
  const { host, port, hostname } = new URL(service.url)
  const socket = connect(Number(port), hostname)
  const owner = await signIn(service, long.user_id)
  socket.write(
    `GET /dashboard/api/w/${long.workspace_id}/suppressions/export HTTP/1.1\r\nhost: ${host}\r\ncookie: ${owner}\r\n\r\n`,
  )
  await new Promise((resolve) => void socket.once('readable', resolve))
  const refused = await long.ask('GET', '/suppressions/export')
  expect([refused.status, refused.body.code, refused.headers.get('retry-after')]).toEqual([
    429,
    'rate_limited',
    '10',
  ])
  expect((await team.ask('GET', '/suppressions/export')).status).toBe(200)
  socket.destroy()
  const text = await until('its place is free', hangMs, async () => {
    const { status, body } = await long.ask('GET', '/suppressions/export')
    return status === 200 ? (body.text as string) : undefined
  })
  expect(text.split('\r\n')).toHaveLength(200_002)
})

test('a caller who waits for a turn of an export and leaves waits no longer', async () => {
  const teams = await Promise.all(['One', 'Two'].map((name) => openTeam(service, name)))
  const leaving = new AbortController()
  const waiting = exportInTurn(service.app, team.workspace_id, leaving.signal)
  const running = teams.map(({ workspace_id }) => exportInTurn(service.app, workspace_id, undefined))
  // The header line needs no database.
  for (const each of [waiting, ...running]) await each.next()
  await service.app.db.transaction(async (tx) => {
    await tx.run(sql`lock table suppressions in access exclusive mode`)
    // They have both turns, and wait for the lock.
    const pieces = running.map((each) => each.next())
    const piece = waiting.next()
    leaving.abort(new Error('The caller has left.'))
    await expect(piece).rejects.toThrow('The caller has left.')
    return { pieces }
  })
  for (const each of running) for await (const text of each) expect(text).toBeDefined()
})

test('POST /suppressions/import 503 when the service stops: nothing is imported, and nothing keeps it from stopping', async () => {
  const stopping = await openService()
  const own = await openTeam(stopping, 'Stopping')
  const { db } = stopping.app
  const stored = () => db.one<{ n: number }>(sql`select count(*)::int as n from file_chunks`)
  // Several batches: the import waits with the second until the first is stored.
  const text = `username\n${Array.from({ length: 6_000 }, (_, n) => `person_number_${n}`).join('\n')}`
  const { host, port, hostname } = new URL(stopping.url)
  const socket = connect(Number(port), hostname)
  let heard = ''
  socket.on('data', (text) => {
    heard += text
  })
  const arriving = await openTeam(stopping, 'Arriving')
  const owner = await signIn(stopping, arriving.user_id)
  socket.write(
    `POST /dashboard/api/w/${arriving.workspace_id}${importPath} HTTP/1.1\r\nhost: ${host}\r\norigin: ${stopping.url}\r\n` +
      `cookie: ${owner}\r\ncontent-type: text/csv\r\ncontent-length: 50000000\r\n\r\n`,
  )
  socket.write('x'.repeat(600_000))
  await until('a part is stored', hangMs, () =>
    db.maybe(sql`select 1 from file_chunks where workspace_id = ${arriving.workspace_id}`),
  )
  const { importing } = await db.transaction(async (tx) => {
    await tx.run(sql`
      insert into suppressions (workspace_id, kind, value, source)
      values (${own.workspace_id}, 'username', 'person_number_0', 'operator')`)
    const { pid } = await tx.one<{ pid: number }>(sql`select pg_backend_pid() as pid`)
    const importing = own.ask('POST', importPath, text)
    // Not in this transaction, which sees the connections that were there when it first looked.
    await until('it waits for that row', hangMs, () =>
      db.maybe(sql`
        select 1 from pg_stat_activity
        where datname = current_database() and ${pid} = any(pg_blocking_pids(pid))`),
    )
    stopping.app.beginStop()
    await tx.run(sql`delete from suppressions`)
    return { importing }
  })
  await until('the upload has ended', hangMs, () => heard.includes('"store_unavailable"'))
  socket.destroy()
  const answer = await importing
  expect([answer.status, answer.body.code]).toEqual([503, 'store_unavailable'])
  expect(answer.body.error).toContain('Parley is stopping')
  expect(await db.one(sql`select count(*)::int as n from suppressions`)).toEqual({ n: 0 })
  await until('nothing is stored', hangMs, async () => (await stored()).n === 0)
  const late = await own.ask('POST', importPath, 'username\nlate_person\n')
  expect([late.status, late.body.code]).toEqual([503, 'store_unavailable'])
  await stopping.close()
})
