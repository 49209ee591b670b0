/** The acts of people, the platform and operators, as a seed decides. */
import { createAccount } from '../../src/capabilities/accounts/accounts.ts'
import { controlCampaign } from '../../src/capabilities/campaigns/control.ts'
import { setDispatch, setGates } from '../../src/capabilities/gates/gates.ts'
import { sendMessage, wantText } from '../../src/capabilities/messages/send.ts'
import { closeOperation } from '../../src/capabilities/operations/operations.ts'
import { addSuppression } from '../../src/capabilities/suppressions/suppressions.ts'
import type { Caller } from '../../src/contract.ts'
import { sql } from '../../src/db/sql.ts'
import { enqueue } from '../../src/ledger/enqueue.ts'
import { chatIdOf } from '../../src/lib/shapes.ts'
import { behaviours } from '../../src/platform/sandbox/people.ts'
import { readMessages, writeFromPhone, writeMessage } from '../../src/platform/sandbox/person-acts.ts'
import type { Random } from '../faults/random.ts'
import { insertCampaign, type NewCampaign, type NewStep } from '../harness/campaigns.ts'
import type { Erased } from './erased.ts'
import { listUndecided } from './hands.ts'
import { importCampaign } from './imports.ts'
import type { Place } from './place.ts'

const hour = 3_600
const windows = ['mon-fri 09:00-12:00', 'mon-sun 08:00-20:00', 'tue,thu 14:00-15:30'] as const

/**
 * What an older copy does not undo: the platform keeps it, or the disks do. Whatever else an operator has done since, they have to do
 * again.
 */
const lasting: ReadonlySet<string> = new Set(['fault', 'write', 'read', 'phone', 'erase', 'sync'])

/** A message that a member or a program has sent, and may send again. */
interface Send {
  readonly key: string
  readonly by: 'a member' | 'a program'
  readonly account_id: string
  readonly person_id: number
}

export class Acts {
  readonly #place: Place
  readonly #random: Random
  readonly #note: (what: string) => void
  readonly #accounts: string[] = []
  readonly #people: number[] = []
  readonly #campaigns: string[] = []
  readonly #sends: Send[] = []
  #renamed = 0
  #written = 0
  #gateOpen = true
  #dispatches = true

  constructor(place: Place, random: Random, note: (what: string) => void) {
    this.#place = place
    this.#random = random
    this.#note = (what) => note(`  ${what}`)
  }

  async makeAccounts(): Promise<void> {
    const { app, tenant, db } = this.#place
    const random = this.#random
    for (let n = 0; n <= 1 + random.whole(2); n++) {
      const id = `acc_${String(n + 1).padStart(20, '0')}`
      await createAccount(app, 'system', {
        id,
        workspace_id: tenant.workspace_id,
        platform: 'sandbox',
        name: 'Sales',
      })
      if (random.chance(0.4)) {
        await db.run(sql`update accounts set cold_per_day = ${1 + random.whole(2)} where id = ${id}`)
      }
      this.#accounts.push(id)
    }
    const timezone = random.pick(['UTC', 'Europe/Berlin', 'America/New_York'])
    await db.run(sql`update workspaces set timezone = ${timezone} where id = ${tenant.workspace_id}`)
    if (random.chance(0.2)) await this.#window(random.pick(windows))
  }

  async areReady(): Promise<boolean> {
    const { ready } = await this.#place.db.one<{ ready: boolean }>(sql`
      select bool_and(a.status = 'READY' and s.phase = 'done') as ready from accounts a
      left join account_sync s on s.account_id = a.id`)
    return ready && this.#place.schedule.waiting.length === 0
  }

  /** Some of them write to an account, so that it has a chat with them. */
  async makePeople(): Promise<void> {
    const random = this.#random
    const { world } = this.#place.sandbox
    for (let n = 0; n < 3 + random.whole(4); n++) {
      const behaviour = random.weigh(behaviours.map((one) => [one, one === 'silent' ? 4 : 1] as const))
      const delay_seconds = Math.round(random.between(1, 30 * hour))
      const [username, phone] = [`person_${n}`, `4917000000${n}`]
      const { person_id } = world.addPerson({
        ...{ name: 'Ada', username, phone: `+${phone}` },
        ...(random.chance(0.4) && { phone_visible_to: [random.pick(this.#accounts)] }),
        behaviour,
        delay_seconds,
      })
      this.#people.push(person_id)
      // Some are known to several accounts, which need not see the same of them.
      for (const account_id of this.#accounts) {
        if (random.chance(0.4)) this.#write(account_id, person_id, 'Hello')
      }
    }
    this.#place.persons.note()
  }

  #write(account_id: string, person_id: number, text: string): void {
    writeMessage(this.#place.sandbox.world, { account_id, person_id, text })
  }

  /** Half of the stories begin with somebody on the list, under one of their names. */
  async makeCampaigns(): Promise<void> {
    if (this.#random.chance(0.5)) await this.#suppress(this.#random.pick(this.#people))
    for (let n = 0; n <= this.#random.whole(3); n++) await this.#create()
  }

  async #create(chosen?: readonly number[]): Promise<void> {
    const random = this.#random
    const { db, tenant, now, newId } = this.#place
    const kind = random.weigh([['scoped', 3] as const, ['contacts', 7] as const, ['broadcast', 1] as const])
    const people = chosen ?? this.#people.filter(() => random.chance(0.6))
    const given: NewCampaign = {
      ...{ kind, ...this.#sequence(kind), quota: 1 + random.whole(4), newId },
      ...(kind === 'contacts'
        ? {
            pool: this.#accounts,
            stop_on_own_message: random.chance(0.8),
            contacts: people.flatMap((person_id) => this.#nameContacts(person_id)),
          }
        : { chats: people.map((person_id) => ({ account_id: random.pick(this.#accounts), person_id })) }),
      ...(random.chance(0.25) && { scheduled_at: new Date(now.getTime() + random.whole(36 * hour) * 1000) }),
    }
    this.#note(`create ${kind} for ${people.join(' ')}`)
    if (people.length === 0) return
    const { erased } = this.#place
    if (erased && kind !== 'broadcast') return this.#import(given, erased)
    this.#campaigns.push(await insertCampaign(db, tenant, given))
  }

  /** By now only tombstones know these names. */
  async importErased(erased: Erased): Promise<void> {
    const contacts = erased.names.map((contact) => ({ contact }))
    await this.#import({ kind: 'contacts', pool: this.#accounts, contacts, quota: 30 }, erased)
  }

  async #import(given: NewCampaign, erased: Erased): Promise<void> {
    const made = await importCampaign(this.#place, given)
    this.#note(
      typeof made === 'string' ? made : `${made.taken.join(' ')}; refused: ${made.refused.join(' ')}`,
    )
    if (typeof made === 'string') return
    if (made.id !== undefined) this.#campaigns.push(made.id)
    await erased.noteImport(made)
  }

  /** Some people are listed under several names, and must get what one contact would. */
  #nameContacts(person_id: number): { contact: string }[] {
    const random = this.#random
    const names = [`platform_id:${person_id}`, ...this.#place.persons.names(person_id)]
    const given = random.chance(0.4) ? names.slice(random.whole(2)) : [random.pick(names)]
    return given.map((contact) => ({ contact }))
  }

  #sequence(kind: string): Pick<NewCampaign, 'branching' | 'steps' | 'max_followups'> {
    const random = this.#random
    const branching = kind !== 'broadcast' && random.chance(0.3)
    const branch = () => (branching ? random.pick(['seen', 'unseen'] as const) : ('no_reply' as const))
    const steps = Array.from(
      { length: kind === 'broadcast' ? 0 : kind === 'contacts' ? 1 + random.whole(3) : random.whole(4) },
      (): NewStep => {
        return { branch: branch(), wait_hours: random.pick([0.1, 2, 24]), variants: ['One', 'Two'] }
      },
    )
    return { branching, steps, max_followups: random.whole(4) }
  }

  async one(): Promise<void> {
    const random = this.#random
    const more = (await this.#listWaiting()).length > 0 ? 2.5 : 0.4
    const all = [
      ['pause', 1],
      ['resume', 3],
      ['cancel', 0.4],
      ['fault', 6],
      ['write', 1.5],
      ['read', 2],
      ['suppress', 0.8],
      ['rename', 0.8],
      ['take', 0.8],
      ['phone', more],
      ['member', more],
      ['program', 0.4],
      ['gate', this.#gateOpen ? 0.5 : 6],
      ['dispatch', this.#dispatches ? 0.3 : 6],
      ['window', 0.5],
      ['create', 0.5],
      ['erase', this.#place.erased ? 2 : 0],
      ['sync', this.#place.erased ? 0.5 : 0],
    ] as const
    const act = random.weigh(all.filter(([one]) => !this.#place.isCopied || lasting.has(one)))
    this.#note(act)
    const account_id = random.pick(this.#accounts)
    if (act === 'phone' || act === 'member' || act === 'program') return this.#byHand(act, account_id)
    const person_id = random.pick(this.#people)
    if (act === 'pause' || act === 'resume' || act === 'cancel') return this.#control(act)
    if (act === 'fault') return this.#fault(account_id)
    if (act === 'write') return this.#write(account_id, person_id, random.chance(0.2) ? 'stop' : 'Hello')
    if (act === 'read') return this.#read(account_id, person_id)
    if (act === 'window') return this.#window(random.chance(0.6) ? random.pick(windows) : null)
    if (act === 'create') return this.#create()
    if (act === 'rename' || act === 'take') return this.#change(act, person_id)
    if (act === 'suppress') return this.#suppress(person_id)
    if (act === 'erase') return this.#erase(person_id)
    if (act === 'sync') return this.#showGap(account_id, person_id)
    return this.#switch(act)
  }

  /**
   * A person gets a name that nobody had, or one of another person; then they may write, so that an account sees it. Who is on the list
   * is renamed as often as everybody else, and must get nothing under the new name.
   */
  async #change(act: 'rename' | 'take', chosen: number): Promise<void> {
    const random = this.#random
    const { persons, sandbox } = this.#place
    const listed = this.#people.filter((one) => persons.tied.has(one))
    const person_id =
      act === 'rename' && listed.length > 0 && random.chance(0.5) ? random.pick(listed) : chosen
    const kind = random.pick(['username', 'phone'] as const)
    const other = random.pick(this.#people)
    const given = sandbox.world.state.people.get(other)?.[kind] ?? null
    const fresh = kind === 'username' ? `renamed_${++this.#renamed}` : `+49170111${1_000 + ++this.#renamed}`
    const name = act === 'take' ? given : fresh
    this.#note(`${person_id} is ${kind} ${name}`)
    sandbox.world.changePerson(person_id, { [kind]: name })
    persons.note()
    const again = persons.tied.has(person_id) && random.chance(0.5)
    if (again || random.chance(0.3)) this.#write(random.pick(this.#accounts), person_id, 'Hello')
    if (again) await this.#create([person_id])
  }

  /** Whoever a message by hand would spare a follow-up. */
  async #listWaiting(): Promise<{ account_id: string; person_id: number }[]> {
    const rows = await this.#place.db.rows<{ account_id: string; chat_id: string }>(sql`
      select r.account_id, r.chat_id::text from campaign_recipients r join campaigns k on k.id = r.campaign_id
      where r.status in ('submitting', 'waiting') and k.stop_on_own_message order by r.id`)
    return rows.map(({ account_id, chat_id }) => ({ account_id, person_id: Number(chat_id) }))
  }

  async isAwaited(): Promise<boolean> {
    return (await this.#listWaiting()).length > 0
  }

  /** An act by hand while nothing else disturbs, but perhaps the send: then only an operator may know what became of it. */
  async oneByHand(): Promise<void> {
    const random = this.#random
    const act = random.weigh([['phone', 3] as const, ['member', 3] as const, ['program', 1] as const])
    const disturbed = act === 'member' && random.chance(0.5)
    for (const account_id of disturbed ? this.#accounts : []) {
      const fault = random.pick(['timeout_before', 'timeout_after'] as const)
      this.#place.sandbox.world.addFault({ on: 'send', fault, seconds: 600, times: 1, account_id })
    }
    await this.#byHand(act, random.pick(this.#accounts))
  }

  /** Mostly to somebody who waits for a follow-up. A program's message is none that was written by hand. */
  async #byHand(act: 'phone' | 'member' | 'program', any: string): Promise<void> {
    const random = this.#random
    const { hands, sandbox } = this.#place
    const among = random.chance(0.8) ? await this.#listWaiting() : []
    const waiting = among.length > 0 ? random.pick(among) : undefined
    const person_id = waiting?.person_id ?? random.pick(this.#people)
    // Another account may not have the person in a chat, and then it cannot send.
    const account_id = waiting && random.chance(0.6) ? waiting.account_id : any
    if (act === 'phone') {
      const text = `By hand ${++this.#written}`
      const message_id = writeFromPhone(sandbox.world, { account_id, person_id, text })
      this.#note(`${account_id} writes to ${person_id}`)
      hands.phoned(account_id, String(person_id), message_id)
      return
    }
    const by = act === 'member' ? 'a member' : 'a program'
    const again = random.chance(0.3) && this.#sends.length > 0
    const send = again
      ? random.pick(this.#sends)
      : { key: `key ${++this.#written}`, by: by as Send['by'], account_id, person_id }
    if (!again) this.#sends.push(send)
    await this.#send(send)
  }

  /** A repeat of a key sends only what was released. */
  async #send({ key, by, account_id, person_id }: Send): Promise<void> {
    const { app, tenant, newId } = this.#place
    const via = { id: tenant.key_id, name: 'A program', prefix: '', mcp_only: false } as const
    const caller: Caller = {
      ...tenant,
      scopes: [],
      via:
        by === 'a member'
          ? { kind: 'terminal' }
          : { kind: 'key', ...via, issued_by: 'operator', role: 'member' },
    }
    const wanted = wantText(account_id, chatIdOf(`${person_id}`), key)
    const queued = await enqueue({ ...app, sources: { ...app.sources, newId } }, caller, {
      ...{ operation: sendMessage, key, fingerprint: Buffer.alloc(32), wanted },
    })
    this.#note(`${by} sends ${key} from ${account_id} to ${person_id}: ${queued ? 'queued' : 'known'}`)
  }

  /** Closes what keeps it open who wrote, as it was: the platform knows. */
  async closeUndecided(): Promise<void> {
    const { app, db, hands, sandbox } = this.#place
    const sent = new Set(sandbox.world.state.journal.map(({ random_id }) => random_id))
    const undecided = await listUndecided(db, hands)
    for (const [id, random_id] of new Map(undecided.map((one) => [one.id, one.random_id]))) {
      const closed_as = sent.has(random_id) ? 'sent' : 'not_sent'
      this.#note(`closed as ${closed_as}`)
      await closeOperation(app, 'system', { id, closed_as })
    }
  }

  /** Whether no worker has anything to put back into an older copy. */
  async areReplayed(): Promise<boolean> {
    return (await this.#place.db.maybe(sql`select 1 from workers where owes`)) === undefined
  }

  #read(account_id: string, person_id: number): void {
    const { world } = this.#place.sandbox
    if (world.state.accounts.get(account_id)?.boxes.has(person_id))
      readMessages(world, { account_id, person_id })
  }

  async #suppress(person_id: number): Promise<void> {
    const { app, tenant, persons } = this.#place
    const { workspace_id } = tenant
    const name = this.#random.pick([`platform_id:${person_id}`, ...persons.names(person_id)])
    this.#note(name)
    const [kind = '', value = ''] = name.split(':')
    await addSuppression(app, 'system', { workspace_id, [kind]: kind === 'phone' ? `+${value}` : value })
  }

  async #erase(person_id: number): Promise<void> {
    const random = this.#random
    const became = await this.#place.erased?.erase(this.#place, person_id, random.chance(0.2))
    this.#note(`${person_id} ${became}`)
    if (became !== 'is erased') return
    // What would bring them back.
    if (random.chance(0.5)) this.#showGap(random.pick(this.#accounts), person_id)
    if (random.chance(0.5) && !this.#place.isCopied) await this.#create([person_id])
  }

  /** The account lists all its dialogs again: its next batch says that updates are missing. Another person's message brings one. */
  #showGap(account_id: string, person_id: number): void {
    this.#place.gaps.add(account_id)
    const others = this.#people.filter((one) => one !== person_id)
    this.#write(account_id, this.#random.pick(others), 'Hello')
  }

  async #switch(act: 'gate' | 'dispatch'): Promise<void> {
    const { app } = this.#place
    if (act === 'dispatch') {
      this.#dispatches = !this.#dispatches
      await setDispatch(app, 'system', this.#dispatches)
      return
    }
    this.#gateOpen = !this.#gateOpen
    await setGates(app, 'system', { names: ['campaigns'], enabled: this.#gateOpen })
  }

  #fault(account_id: string): void {
    const random = this.#random
    const { world } = this.#place.sandbox
    const on = random.weigh([
      ['send', 6],
      ['updates', 1],
      ['connect', 0.5],
      ['history', 0.5],
    ] as const)
    const kinds = {
      send: ['refuse', 'flood_wait', 'unavailable', 'drop_after', 'timeout_before', 'timeout_after'],
      updates: ['late', 'twice', 'drop_after'],
      connect: ['unavailable', 'timeout_before'],
      history: ['unavailable', 'timeout_before'],
    } as const
    const fault = random.pick<(typeof kinds)[typeof on][number]>(kinds[on])
    this.#note(`${on} ${fault}`)
    const seconds = fault === 'late' ? 120 : 600
    world.addFault({ on, fault, seconds, times: 1 + random.whole(2), account_id })
  }

  async #control(control: 'pause' | 'resume' | 'cancel', id?: string): Promise<void> {
    if (this.#campaigns.length === 0) return
    const chosen = id ?? this.#random.pick(this.#campaigns)
    const { db } = this.#place
    const changed = await db
      .transaction((tx) => controlCampaign(tx, {}, { id: chosen, control }))
      .then(
        (done) => done.changed,
        () => false,
      )
    this.#note(`${control} ${changed}`)
  }

  async #window(window: string | null): Promise<void> {
    this.#note(`window ${window}`)
    const { db, tenant } = this.#place
    await db.run(sql`update workspaces set sending_window = ${window} where id = ${tenant.workspace_id}`)
  }

  /** Removes every fault, closed gate and pause. */
  async letGo(): Promise<void> {
    const { app, sandbox } = this.#place
    sandbox.world.clearFaults()
    await setGates(app, 'system', { names: ['campaigns'], enabled: true })
    await setDispatch(app, 'system', true)
    for (const id of this.#campaigns) await this.#control('resume', id)
  }
}
