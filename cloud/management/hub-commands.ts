import type { Runtime } from '../../protocol/model/runtime.ts'
import { appendAudit } from '../audit/audit.ts'
import { managementKeyOf } from '../config.ts'
import { required, requireHubs, UsageError, type CommandLine } from '../credentials/command-line.ts'
import type { Queries } from '../store/database.ts'
import { clearAddress, parseHostKey, writeAddress } from './addresses.ts'
import { keptClientKey } from './client-key.ts'

const act = { actor: 'command line', result: 'executed' }
const DEFAULT_PORT = '8083'

const usage = `Usage:
  npm run hubs -- list
  npm run hubs -- set-management HUB --host HOST [--port ${DEFAULT_PORT}] --host-key KEY
  npm run hubs -- clear-management HUB
  npm run hubs -- key

Where the hubs' management services are (SSH), and by which host key each is known. --host-key takes the public key, or its
fingerprint (SHA256:…), as \`npm run management -- --host-key\` prints them on the hub: a hub that shows another key is
refused. key prints the cloud's own public key, for the file AUTHORIZED_KEYS of each hub; it is made where there is none.`

/** Contract §6: pinned host keys. */
export const hubCommands = (runtime: Runtime): CommandLine => ({
  usage,
  subcommands: {
    list: {
      options: [],
      run: (q) =>
        q
          .selectFrom('hubs')
          .leftJoin('hub_management', 'hub_management.hub_id', 'hubs.id')
          .select(['hubs.id as hub_id', 'name', 'hub_status', 'host', 'port', 'host_key'])
          .orderBy('hubs.id')
          .execute(),
    },
    'set-management': {
      options: ['hub', 'host', 'port', 'host-key'],
      positionals: ['hub'],
      async run(q, options, settings) {
        const hubId = await hubOf(q, required(options, 'hub'))
        const host = required(options, 'host')
        const port = parsePort(options['port'] ?? DEFAULT_PORT)
        const hostKey = parseHostKey(required(options, 'host-key'))
        if (hostKey === undefined)
          throw new UsageError('--host-key is neither a public key nor a fingerprint (SHA256:…)')
        await writeAddress(q, hubId, { host, port, hostKey })
        const detail = { host, port, host_key: hostKey }
        await appendAudit(q, runtime, {
          ...act,
          action: 'hubs.set_management',
          hubId,
          object: `hub-${hubId}`,
          detail,
        })
        const { publicKey } = keptClientKey(managementKeyOf(settings))
        return { hub_id: hubId, ...detail, cloud_key: publicKey }
      },
    },
    'clear-management': {
      options: ['hub'],
      positionals: ['hub'],
      async run(q, options) {
        const hubId = await hubOf(q, required(options, 'hub'))
        if (!(await clearAddress(q, hubId))) throw new UsageError(`hub ${hubId} has no management service`)
        await appendAudit(q, runtime, {
          ...act,
          action: 'hubs.clear_management',
          hubId,
          object: `hub-${hubId}`,
        })
        return { hub_id: hubId, cleared: true }
      },
    },
    key: {
      options: [],
      run: (_q, _options, settings) =>
        Promise.resolve({ cloud_key: keptClientKey(managementKeyOf(settings)).publicKey }),
    },
  },
})

async function hubOf(q: Queries, text: string): Promise<number> {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new UsageError(`not a hub's id: ${text}`)
  const hubId = Number(text)
  await requireHubs(q, [hubId])
  return hubId
}

function parsePort(text: string): number {
  const port = Number(text)
  if (!/^\d{1,5}$/.test(text) || port < 1 || port > 65_535) throw new UsageError(`not a port: ${text}`)
  return port
}
