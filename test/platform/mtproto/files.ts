/** How a client fetches the parts of a file, and exports its login to another data centre. */
import { randomBytes } from 'node:crypto'
import type { tl } from '@mtcute/core'
import Long from 'long'
import type { WorldFile } from '../../../src/platform/sandbox/entries.ts'
import { hasBytes, readFile } from '../../../src/platform/sandbox/file-bytes.ts'
import { type Account, indexOfPost } from '../../../src/platform/sandbox/state.ts'
import { type Call, type Handlers, refuse } from './connection.ts'
import type { Devices } from './devices.ts'
import { fileIdOf, wholeSize } from './file-views.ts'
import type { CentreParts } from './parts.ts'
import { viewUser } from './views.ts'

const mib = 1024 * 1024

/** Logins on their way to another data centre; the oldest is dropped. */
const exportsMax = 1000

interface ExportedLogin {
  readonly bytes: string
  readonly account_id: string
  readonly dc: number
}

export function fileHandlers({ world, store, ports }: CentreParts, devices: Devices): Handlers {
  const exported = new Map<string, ExportedLogin>()

  /** Rejects, cuts the connection or never resolves, if a fault says so. */
  async function strike(
    on: 'download' | 'export',
    { connection }: Call,
    { account_id }: Account,
  ): Promise<void> {
    const fault = world.takeFault({ on, account_id })
    switch (fault?.fault) {
      case undefined:
        return
      case 'refuse':
        return refuse(fault.error ?? 'LOCATION_INVALID')
      case 'flood_wait':
        return refuse(`420 FLOOD_WAIT_${fault.seconds}`)
      case 'drop_after':
        connection.end()
        return new Promise(() => {})
      case 'timeout_before':
      case 'timeout_after':
        return new Promise(() => {})
      case 'slow':
        return new Promise((resolve) => setTimeout(resolve, fault.seconds * 1000).unref())
      default:
        return refuse('500 INTERNAL')
    }
  }

  return {
    'upload.getFile': async ({ location, offset, limit }, call) => {
      const account = devices.accountOf(call)
      await strike('download', call, account)
      const file = findFile(account, location)
      if (!file) return refuse('LOCATION_INVALID')
      const { dc = call.connection.dc } = file
      if (dc !== call.connection.dc) return refuse(`303 FILE_MIGRATE_${dc}`)
      if (offset < 0 || offset % 4096 !== 0) return refuse('OFFSET_INVALID')
      const crosses = Math.floor(offset / mib) !== Math.floor((offset + limit - 1) / mib)
      if (limit <= 0 || limit % 4096 !== 0 || mib % limit !== 0 || crosses) return refuse('LIMIT_INVALID')
      return {
        _: 'upload.file',
        type: { _: 'storage.filePartial' },
        mtime: 0,
        bytes: readFile(file, offset, limit),
      }
    },
    'auth.exportAuthorization': async ({ dcId }, call) => {
      const account = devices.accountOf(call)
      await strike('export', call, account)
      if (dcId === call.connection.dc || !ports.has(dcId)) return refuse('DC_ID_INVALID')
      const id = Long.fromBytesLE([...randomBytes(8)])
      const bytes = randomBytes(64)
      exported.set(id.toString(), { bytes: bytes.toString('hex'), account_id: account.account_id, dc: dcId })
      const [oldest] = exported.keys()
      if (exported.size > exportsMax && oldest !== undefined) exported.delete(oldest)
      return { _: 'auth.exportedAuthorization', id, bytes }
    },
    'auth.importAuthorization': ({ id, bytes }, { connection }) => {
      const login = exported.get(id.toString())
      exported.delete(id.toString())
      const isRight = login?.dc === connection.dc && login.bytes === Buffer.from(bytes).toString('hex')
      if (!login || !isRight) return refuse('AUTH_BYTES_INVALID')
      const account = world.requireAccount(login.account_id)
      store.commit({ ...connection.key, account_id: login.account_id })
      return { _: 'auth.authorization', user: viewUser(world.state, account, account.person_id) }
    },
  }
}

function findFile(account: Account, location: tl.TypeInputFileLocation): WorldFile | undefined {
  const isPhoto = location._ === 'inputPhotoFileLocation'
  if (!isPhoto && location._ !== 'inputDocumentFileLocation') return undefined
  const message_id = location.id.getLowBits()
  const box = account.boxes.get(account.chat_of_message.get(message_id) ?? 0)
  const post = box?.posts[indexOfPost(box, message_id)]
  const file = post?.message_id === message_id ? post.attachments[0] : undefined
  if (!post || !file || !hasBytes(file) || fileIdOf(post, file).neq(location.id)) return undefined
  if ((file.kind === 'photo') !== isPhoto || location.thumbSize !== (isPhoto ? wholeSize : ''))
    return undefined
  return file
}
