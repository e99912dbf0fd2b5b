import { isScope, scopes } from '../../protocol/model/scopes.ts'
import type { Runtime } from '../../protocol/model/runtime.ts'
import { appendAudit } from '../audit/audit.ts'
import type { Queries } from '../store/database.ts'
import { issueApiKey, listApiKeys, revokeApiKey, type ApiKey } from './api-keys.ts'
import { isoOrNull, parseHubs, required, requireHubs, UsageError, type CommandLine } from './command-line.ts'

const act = { actor: 'command line', hubId: null, result: 'executed' }

const usage = `Usage:
  npm run keys -- create --owner NAME --name NAME --scopes a,b --hubs 1,2|* [--expires TIME]
  npm run keys -- list
  npm run keys -- revoke PREFIX

API keys of the owner's interface. create prints the key: it is stored nowhere and never shown again.
--owner takes an owner's name or id. --hubs takes hub ids, or "*" for all hubs of the owner.
--expires takes an ISO 8601 time. Scopes: ${scopes.join(', ')}.`

/** Contract §3, §14. */
export const keyCommands = (runtime: Runtime): CommandLine => ({
  usage,
  subcommands: {
    create: {
      options: ['owner', 'name', 'scopes', 'hubs', 'expires'],
      async run(q, options) {
        const owner = await findOwner(q, required(options, 'owner'))
        const hubs = parseHubs(required(options, 'hubs'))
        await requireHubs(q, hubs, owner.id)
        const request = {
          name: required(options, 'name'),
          ownerId: owner.id,
          scopes: parseScopes(required(options, 'scopes')),
          hubs,
          expiresAt: parseTime(options['expires']),
        }
        const { key, prefix } = await issueApiKey(q, runtime, request)
        await appendAudit(q, runtime, { ...act, action: 'keys.create', object: `key-${prefix}` })
        const [issued] = (await listApiKeys(q)).filter((known) => known.prefix === prefix)
        return { api_key: key, ...view(issued!, owner.name) }
      },
    },
    list: {
      options: [],
      async run(q) {
        const owners = new Map(
          (await q.selectFrom('owners').selectAll().execute()).map(({ id, name }) => [id, name]),
        )
        return (await listApiKeys(q)).map((key) => view(key, owners.get(key.ownerId)!))
      },
    },
    revoke: {
      options: ['prefix'],
      positionals: ['prefix'],
      async run(q, options) {
        // What was pasted may be the whole key.
        const given = required(options, 'prefix')
        const prefix = /^lk_([0-9A-Za-z]{8})(_|$)/.exec(given)?.[1] ?? given
        if (!(await revokeApiKey(q, runtime, prefix))) throw new UsageError(`no key has the prefix ${prefix}`)
        await appendAudit(q, runtime, { ...act, action: 'keys.revoke', object: `key-${prefix}` })
        return { prefix, revoked: true }
      },
    },
  },
})

async function findOwner(q: Queries, given: string): Promise<{ id: number; name: string }> {
  const owners = await q.selectFrom('owners').selectAll().orderBy('id').execute()
  const owner = owners.find(({ id, name }) => name === given || String(id) === given)
  if (owner) return owner
  throw new UsageError(
    `no owner ${JSON.stringify(given)}; there ${owners.length === 1 ? 'is' : 'are'}: ${owners.map(({ id, name }) => `${id} ${JSON.stringify(name)}`).join(', ') || 'none'}`,
  )
}

function parseScopes(text: string) {
  const given = text.split(',').map((scope) => scope.trim())
  const unknown = given.filter((scope) => !isScope(scope))
  if (unknown.length > 0)
    throw new UsageError(`no such scope: ${unknown.join(', ')}. There are: ${scopes.join(', ')}`)
  return scopes.filter((scope) => given.includes(scope))
}

function parseTime(text: string | undefined): number | null {
  if (text === undefined) return null
  const at = Date.parse(text)
  if (Number.isNaN(at)) throw new UsageError(`--expires is not a time: ${text}`)
  return at
}

const view = (key: ApiKey, owner: string) => ({
  prefix: key.prefix,
  name: key.name,
  owner_id: key.ownerId,
  owner,
  scopes: key.scopes,
  hubs: key.hubs,
  created_at: isoOrNull(key.createdAt),
  expires_at: isoOrNull(key.expiresAt),
  revoked_at: isoOrNull(key.revokedAt),
  last_used_at: isoOrNull(key.lastUsedAt),
})
