/** The user verbs: who may sign in, how, and which workspaces they belong to. */
import { type Command, Option } from 'commander'
import {
  createUser,
  endMembership,
  listUsers,
  makeSetupLink,
  setRole,
  setUserEnabled,
  updateUser,
} from '../capabilities/users/users.ts'
import { type Role, roles } from '../contract.ts'
import { Refusal } from '../lib/errors.ts'
import { hashPassword, requireNewPassword } from '../lib/passwords.ts'
import { dataDirOption } from './data-dir.ts'
import { workspaceHelp } from './help.ts'
import { Noted, noteLink } from './output.ts'
import { typedName } from './typed-name.ts'
import { type Shared, verb } from './verbs.ts'

const linkNote =
  'Anyone who opens the link can choose how this user signs in. It is shown only now and works once, within 7 days.'

export function addUsers(user: Command): void {
  addCreate(user)
  verb(user, 'list', 'list all users', (app) => listUsers(app.db))
  verb(
    user,
    'link <id>',
    'create a link with which the user sets a password',
    async (app, actor, _, id = '') => {
      return new Noted(await makeSetupLink(app, actor, id), noteLink(linkNote, app.config))
    },
  )
  addUpdate(user)
  verb(
    user,
    'disable <id>',
    'disable a user: ends their keys, sessions, links and logins, and stops their webhooks',
    (app, actor, _, id = '') => setUserEnabled(app, actor, { id, enabled: false }),
  )
  verb(
    user,
    'enable <id>',
    'enable a user: they can sign in again; their keys stay revoked',
    (app, actor, _, id = '') => setUserEnabled(app, actor, { id, enabled: true }),
  )
  verb<{ workspace: string }>(
    user,
    'remove <id>',
    'remove a user from a workspace: revokes their keys there and stops their webhooks',
    async (app, actor, { workspace }, id = '') => {
      const { webhooks, campaigns } = await endMembership(app, actor, {
        workspace_id: workspace,
        user_id: id,
      })
      const removed = {
        user_id: id,
        workspace_id: workspace,
        removed: true,
        webhooks_stopped: webhooks.stopped,
        campaigns_going_on: campaigns.going_on,
      }
      if (campaigns.going_on.length === 0) return removed
      return new Noted(
        removed,
        'Campaigns of this user go on: `parley campaign pause ID` or `parley campaign cancel ID` stops one.',
      )
    },
  ).requiredOption('--workspace <id>', workspaceHelp)
}

function addCreate(user: Command): void {
  verb<Shared & { workspace: string; role: Role; operator?: true; passwordStdin?: true }>(
    user,
    'create <email>',
    'create a user, or add one to another workspace',
    async (app, actor, { workspace, role, operator, passwordStdin, dataDir }, email = '') => {
      const password_hash =
        passwordStdin &&
        (await hashPassword(requireNewPassword(await readInput()), { lane: 'setup', source: 'terminal' }))
      const made = await createUser(app, actor, {
        email,
        workspace_id: workspace,
        role,
        operator,
        password_hash,
      })
      const link = `${typedName} user link ${made.id}${dataDirOption(dataDir)}`
      return made.has_password ? made : new Noted(made, `\`${link}\` creates a link to sign in with.`)
    },
  )
    .requiredOption('--workspace <id>', workspaceHelp)
    .addOption(new Option('--role <role>', 'role in the workspace').choices(roles).default('owner'))
    .option('--operator', 'make the user an operator of the instance')
    .option('--password-stdin', 'read a password of 12 to 256 characters from standard input')
}

interface Changes {
  readonly name?: string
  readonly email?: string
  readonly timeZone?: string
  readonly operator?: boolean
  readonly role?: Role
  readonly workspace?: string
}

function addUpdate(user: Command): void {
  verb<Changes>(
    user,
    'update <id>',
    'change the name, address, time zone or role of a user',
    async (app, actor, { name, email, timeZone, operator, role, workspace }, id = '') => {
      if ((role === undefined) !== (workspace === undefined)) {
        throw new Refusal('A role belongs to a workspace: give --role and --workspace together.')
      }
      const time_zone = timeZone === 'none' ? null : timeZone
      const updated = await updateUser(app, actor, { id, name, email, time_zone, operator })
      if (role === undefined || workspace === undefined) return updated
      return setRole(app, actor, { workspace_id: workspace, user_id: id, role })
    },
  )
    .option('--name <name>', 'name of the user')
    .option('--email <address>', 'new e-mail address for signing in')
    .option('--time-zone <zone>', 'time zone such as Europe/Berlin; none for that of the browser')
    .option('--operator', 'make the user an operator of the instance')
    .option('--no-operator', 'no longer an operator of the instance')
    .addOption(new Option('--role <role>', 'role in --workspace').choices(roles))
    .option('--workspace <id>', workspaceHelp)
}

/** More than the longest allowed password. */
const inputBytesMax = 4_096

/** Reads one line: the newline that a shell appends is not part of the password. */
async function readInput(): Promise<string> {
  if (process.stdin.isTTY) {
    throw new Refusal(
      'Pass the password on standard input, so that it stays hidden: parley user create … --password-stdin < FILE',
    )
  }
  const chunks: Buffer[] = []
  for await (const chunk of process.stdin) {
    chunks.push(chunk)
    if (Buffer.concat(chunks).length > inputBytesMax) throw new Refusal('The password is too long.')
  }
  return Buffer.concat(chunks)
    .toString('utf8')
    .replace(/\r?\n$/, '')
}
