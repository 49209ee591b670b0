/**
 * What a page of chats costs as an agent's tool, in CPU of Node and PostgreSQL together, against the same page of the API; and
 * how much memory twenty thousand calls leave behind.
 */
import { setGates } from '../src/capabilities/gates/gates.ts'
import { mcpPath } from '../src/contract.ts'
import { benchDirectory, openBench, requireData } from './data.ts'
import { number, row, verdict } from './harness.ts'
import { cpuOf, get, load, makeReader, rssOf, start, stop } from './load.ts'

const rounds = 30
const requests = 200
/** As for pages of the API: Node's compiler has finished by then. */
const warmup = 12_000
const calls = 20_000

const { key, account_id } = await prepare()
const service = await start('service')
try {
  await compare()
  await remember()
} finally {
  await stop(service)
}

async function prepare() {
  const app = await openBench()
  try {
    await requireData(app)
    await setGates(app, 'system', { names: ['all'], enabled: true })
    return await makeReader(app, 'Large')
  } finally {
    await app.close()
  }
}

function call(revision: '2025' | '2026', count: number): Promise<number[]> {
  const version = '2026-07-28'
  const newer = revision === '2026'
  const name = 'service_list_chats'
  const _meta = {
    'io.modelcontextprotocol/protocolVersion': version,
    'io.modelcontextprotocol/clientInfo': { name: 'bench', version: '1' },
    'io.modelcontextprotocol/clientCapabilities': {},
  }
  const params = { name, arguments: { account_id, limit: 50 }, ...(newer && { _meta }) }
  return load(`${service.address}${mcpPath}`, key, count, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      accept: 'application/json, text/event-stream',
      ...(newer && { 'mcp-protocol-version': version, 'mcp-method': 'tools/call', 'mcp-name': name }),
    },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tools/call', params }),
  })
}

/** All in turn, several times, so that a busy moment of the machine affects each of them. */
async function compare(): Promise<void> {
  const url = `${service.address}/api/v1/chats?limit=50&account_id=${account_id}`
  const { body } = await get(url, key)
  const cpu = { rest: 0, newer: 0, older: 0 }
  for (let round = 0; round <= rounds; round++) {
    const count = round === 0 ? warmup : requests
    const rest = await spent(() => load(url, key, count))
    const newer = await spent(() => call('2026', count))
    const older = await spent(() => call('2025', count))
    if (round === 0) continue
    cpu.rest += rest
    cpu.newer += newer
    cpu.older += older
  }
  const each = (ms: number) => `${number((ms / rounds / requests) * 1000)} µs`
  row('bytes of a page', number(Buffer.byteLength(body)))
  row('CPU of GET /chats', each(cpu.rest))
  row('CPU of service_list_chats, revision of 2026', each(cpu.newer))
  row('CPU of service_list_chats, revision of 2025', each(cpu.older))
  verdict('service_list_chats over GET /chats, revision of 2026', cpu.newer / cpu.rest, { most: 2 })
  verdict('service_list_chats over GET /chats, revision of 2025', cpu.older / cpu.rest, { most: 2 })
}

function spent(work: () => Promise<unknown>): Promise<number> {
  return cpuOf({ processes: [service], data_dir: benchDirectory }, work)
}

async function remember(): Promise<void> {
  const before = rssOf(service)
  await call('2026', calls / 2)
  await call('2025', calls / 2)
  verdict(`growth after ${number(calls)} calls, MB`, (rssOf(service) - before) / 1_048_576, { most: 20 })
}
