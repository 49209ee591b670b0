/**
 * Sends per second over Telegram's protocol through the ledger, against the lesser of two limits measured in the same run: a bare
 * loop of `messages.sendMessage` over as many of mtcute's clients, and our own rate on the sandbox. Medians of alternating rounds
 * after a warm-up round. The data centre runs in its own process. Smaller, to see that it works: `--accounts 10 --rounds 1`.
 */
import { parseArgs } from 'node:util'
import Long from 'long'
import { createAccount } from '../src/capabilities/accounts/accounts.ts'
import { sql } from '../src/db/sql.ts'
import { loops } from '../src/lists/loops.ts'
import { openLocalSandbox } from '../src/platform/sandbox/sandbox.ts'
import { assembleWorker, runWorker } from '../src/worker/worker.ts'
import { number, quantile, row, verdict, withInstance } from './harness.ts'
import { countLive, sendOne, TelegramStage } from './telegram-stage.ts'

const { values } = parseArgs({
  strict: false,
  options: {
    accounts: { type: 'string', default: '50' },
    each: { type: 'string', default: '20' },
    rounds: { type: 'string', default: '5' },
  },
})
const accounts = Number(values.accounts)
const callers = 2 * accounts
const each = Number(values.each)
const rounds = Number(values.rounds)

await withInstance(async (app, data_dir) => {
  const stage = await TelegramStage.open()
  const sandbox = await openLocalSandbox({ data_dir: null, failed: console.error })
  const person_id = await stage.addPerson('ada')
  const { caller, ids } = await stage.accounts(app, accounts, person_id)
  const inSandbox: string[] = []
  for (let n = 0; n < accounts; n++) {
    const wanted = { workspace_id: caller.workspace_id, platform: 'sandbox', name: `Account ${n}` }
    inSandbox.push((await createAccount(app, 'system', wanted)).id)
  }
  const { person_id: other_id } = sandbox.world.addPerson({ name: 'Ada' })

  const bare = await stage.bareClients(accounts)
  const peers = await Promise.all(
    bare.map(async (client, n) => {
      await stage.logInBare(client, await stage.addUser(`bare_${n}`))
      const { users } = await client.call({ _: 'contacts.resolveUsername', username: 'ada' })
      const [user] = users
      if (user?._ !== 'user') throw new Error('The data centre does not know Ada.')
      return { client, userId: user.id, accessHash: user.accessHash ?? Long.ZERO }
    }),
  )

  const platforms = new Map([
    ['telegram', stage.platform],
    ['sandbox', sandbox.platform],
  ])
  const worker = runWorker(app, await assembleWorker(app, { platforms, directory: data_dir, loops }))
  while ((await countLive(app)) < 2 * accounts) await new Promise((resolve) => setTimeout(resolve, 100))
  await app.db.run(sql`
    insert into chats (account_id, chat_id, workspace_id, kind, name)
    select id, ${other_id}, workspace_id, 'private', 'Ada' from accounts where platform = 'sandbox'`)

  let random = 0
  const ways = {
    bare: (at: number) => {
      const { client, userId, accessHash } = peers[at % peers.length] as (typeof peers)[number]
      const peer = { _: 'inputPeerUser', userId, accessHash } as const
      const randomId = Long.fromNumber(++random)
      return client.call({ _: 'messages.sendMessage', peer, message: 'A message.', randomId })
    },
    telegram: (at: number) => accepted(ids[at % ids.length] ?? '', person_id),
    sandbox: (at: number) => accepted(inSandbox[at % inSandbox.length] ?? '', other_id),
  }

  async function accepted(account_id: string, chat: number): Promise<void> {
    const ms = await sendOne(app, caller, { account_id, chat_id: `${chat}` })
    if (ms === undefined) throw new Error('A send was not accepted.')
  }

  async function rateOf(send: (at: number) => Promise<unknown>): Promise<number> {
    const startedAt = performance.now()
    await Promise.all(
      Array.from({ length: callers }, async (_, at) => {
        for (let n = 0; n < each; n++) await send(at)
      }),
    )
    return (callers * each * 1_000) / (performance.now() - startedAt)
  }

  const names = ['bare', 'sandbox', 'telegram'] as const
  for (const name of names) await rateOf(ways[name])
  const rates = { bare: [] as number[], sandbox: [] as number[], telegram: [] as number[] }
  for (let round = 0; round < rounds; round++) {
    for (const name of names) rates[name].push(await rateOf(ways[name]))
  }
  const median = (name: (typeof names)[number]) => quantile(rates[name], 0.5)
  row(`a bare messages.sendMessage over ${accounts} clients`, `${number(median('bare'))} /s`)
  row('our sends on the sandbox', `${number(median('sandbox'))} /s`)
  row("our sends over Telegram's protocol", `${number(median('telegram'))} /s`)
  const limit = Math.min(median('bare'), median('sandbox'))
  verdict('over the lesser of the two', median('telegram') / limit, { least: 0.5 })

  for (const client of bare) await client.destroy()
  await worker.stop()
  await stage.close()
  await sandbox.close()
})
