import { bareHost } from '../../protocol/model/address.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { clearAddress, parseHostKey, writeAddress } from '../operations/ssh/addresses.ts'
import { endRotation, ensureClientKey, rotateClientKey } from '../operations/ssh/remote.ts'
import { managementKeyOf } from '../platform/settings/config.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import { recordAct, type CommandLine } from './command-line.ts'
import { hubOf, required } from './options.ts'
import { lockInService } from './hub-record.ts'

export const DEFAULT_PORT = '8083'

/** Addresses of the hubs' management services (SSH), and their host keys. */
export const managementCommands: CommandLine['subcommands'] = {
  'set-management': {
    options: ['hub', 'host', 'port', 'host-key'],
    positionals: ['hub'],
    async run({ q, db, options, settings, runtime }) {
      const hubId = await hubOf({ q, options })
      const host = bareHost(required(options, 'host'))
      const port = portOf(options['port'] ?? DEFAULT_PORT)
      const hostKey = parseHostKey(required(options, 'host-key'))
      if (hostKey === undefined)
        throw new UsageError('--host-key is neither a public key nor a fingerprint (SHA256:…)')
      const detail = { host, port, host_key: hostKey }
      await db.transact(async (tx) => {
        await lockInService(tx, hubId)
        await writeAddress(tx.q, hubId, { host, port, hostKey })
        await record(tx.q, runtime, 'hubs.set_management', hubId, detail)
      })
      const { publicKey } = ensureClientKey(managementKeyOf(settings), say)
      return { hub_id: hubId, ...detail, cloud_key: publicKey }
    },
  },
  'clear-management': {
    options: ['hub'],
    positionals: ['hub'],
    async run({ q, db, options, runtime }) {
      const hubId = await hubOf({ q, options })
      await db.transact(async (tx) => {
        await lockInService(tx, hubId)
        if (!(await clearAddress(tx.q, hubId))) throw new UsageError(`hub ${hubId} has no management service`)
        await record(tx.q, runtime, 'hubs.clear_management', hubId)
      })
      return { hub_id: hubId, cleared: true }
    },
  },
  key: {
    store: 'none',
    options: [],
    run: ({ settings }) =>
      Promise.resolve({ cloud_key: ensureClientKey(managementKeyOf(settings), say).publicKey }),
  },
  'rotate-key': {
    options: [],
    async run({ q, settings, runtime }) {
      const { key, former } = rotateClientKey(managementKeyOf(settings), say)
      await recordAct(q, runtime, { action: 'hubs.rotate_key', object: 'management-key' })
      return { cloud_key: key.publicKey, former_key: former.publicKey }
    },
  },
  'end-key-rotation': {
    options: [],
    async run({ q, settings, runtime }) {
      const path = managementKeyOf(settings)
      if (!endRotation(path)) throw new UsageError('there is no rotation to end')
      await recordAct(q, runtime, { action: 'hubs.end_key_rotation', object: 'management-key' })
      return { cloud_key: ensureClientKey(path, say).publicKey }
    },
  },
}

/** Prints for people on stderr: stdout is for the output. */
export const say = (sentence: string): void => void process.stderr.write(`${sentence}\n`)

/** Records an operator's action on a hub in the audit log. */
export const record = (
  q: Queries,
  runtime: Runtime,
  action: string,
  hubId: number,
  detail?: Readonly<Record<string, unknown>>,
): Promise<void> =>
  recordAct(q, runtime, { action, hubId, object: `hub-${hubId}`, ...(detail && { detail }) })

function portOf(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) throw new UsageError(`not a port: ${text}`)
  return port
}
