import { counted } from '../../protocol/model/counted.ts'
import { isScope, scopes } from '../../protocol/model/scopes.ts'
import { timestamp, timestampOrNull } from '../platform/calendar/days.ts'
import {
  issueApiKey,
  listApiKeys,
  revokeApiKey,
  rotateApiKey,
  type ApiKey,
} from '../platform/credentials/api-keys.ts'
import { UsageError } from '../platform/settings/usage-error.ts'
import type { Queries } from '../platform/store/database.ts'
import { recordAct, type CommandLine } from './command-line.ts'
import { findOwner, hubsOf, required, requireHubs, timeOf, nameOf } from './options.ts'

const usage = `Usage:
  larder keys create --owner NAME --name NAME --scopes a,b --hubs 1,2|* [--expires TIME]
  larder keys list
  larder keys rotate PREFIX [--overlap HOURS] [--expires TIME]
  larder keys revoke PREFIX

API keys of the owner's interface. create prints the key: it is stored nowhere and never shown again. list has a \`warning\`
for a key that expires within CERTIFICATE_WARN_MS (14 days).
rotate issues a successor with the same rights; the key itself expires after the overlap (24 hours by default; 0: at once).
--owner takes an owner's name, or the id if no owner has that name; \`larder hubs create --new-owner\` makes an owner.
--hubs takes hub ids, or "*" for all hubs of the owner.
--expires takes an ISO 8601 time. Scopes: ${scopes.join(', ')}.`

export const keyCommands: CommandLine = {
  usage,
  subcommands: {
    create: {
      options: ['owner', 'name', 'scopes', 'hubs', 'expires'],
      async run({ q, db, options, runtime }) {
        const owner = await findOwner(q, required(options, 'owner'))
        const hubs = hubsOf(options)
        await requireHubs(q, hubs, owner.id)
        const request = {
          name: nameOf(options, 'name'),
          ownerId: owner.id,
          scopes: parseScopes(required(options, 'scopes')),
          hubs,
          expiresAt: timeOf(options, 'expires') ?? null,
        }
        const { key, prefix } = await db.transact(async (tx) => {
          const issued = await issueApiKey(tx.q, runtime, request)
          await recordAct(tx.q, runtime, { action: 'keys.create', object: `key-${issued.prefix}` })
          return issued
        })
        return { api_key: key, ...view(await keyOf(q, prefix), owner.name) }
      },
    },
    list: {
      options: [],
      async run({ q, settings, runtime }) {
        const owners = new Map(
          (await q.selectFrom('owners').selectAll().execute()).map(({ id, name }) => [id, name]),
        )
        return (await listApiKeys(q)).map((key) => ({
          ...view(key, owners.get(key.ownerId)!),
          ...warningOf(key, runtime.clock.now(), settings.limits.rules.certificateWarnMs),
        }))
      },
    },
    rotate: {
      options: ['prefix', 'overlap', 'expires'],
      positionals: ['prefix'],
      async run({ q, db, options, runtime }) {
        const prefix = prefixGiven(required(options, 'prefix'))
        const endsAt = runtime.clock.now() + parseHours(options['overlap'] ?? '24')
        const expiresAt = timeOf(options, 'expires') ?? null
        const old = await keyOf(q, prefix)
        const { key, prefix: successor } = await db.transact(async (tx) => {
          const issued = await rotateApiKey(tx.q, runtime, old, { endsAt, expiresAt })
          if (!issued) throw new UsageError(`the key ${prefix} has ended: create one`)
          await recordAct(tx.q, runtime, {
            action: 'keys.rotate',
            object: `key-${prefix}`,
            detail: { successor: issued.prefix },
          })
          return issued
        })
        const { name: owner } = await q
          .selectFrom('owners')
          .select('name')
          .where('id', '=', old.ownerId)
          .executeTakeFirstOrThrow()
        return {
          api_key: key,
          ...view(await keyOf(q, successor), owner),
          replaces: view(await keyOf(q, prefix), owner),
        }
      },
    },
    revoke: {
      options: ['prefix'],
      positionals: ['prefix'],
      async run({ db, options, runtime }) {
        const prefix = prefixGiven(required(options, 'prefix'))
        await db.transact(async (tx) => {
          if (!(await revokeApiKey(tx.q, runtime, prefix))) throw new Error(`no key has the prefix ${prefix}`)
          await recordAct(tx.q, runtime, { action: 'keys.revoke', object: `key-${prefix}` })
        })
        return { prefix, revoked: true }
      },
    },
  },
}

/** Operators may paste the whole key in place of its prefix. */
const prefixGiven = (given: string): string =>
  /^lk(?:[1-9]\d?)?_([0-9A-Za-z]{8})(_|$)/.exec(given)?.[1] ?? given

async function keyOf(q: Queries, prefix: string): Promise<ApiKey> {
  const key = (await listApiKeys(q)).find((known) => known.prefix === prefix)
  if (!key) throw new Error(`no key has the prefix ${prefix}`)
  return key
}

function parseHours(text: string): number {
  if (!/^\d{1,5}(\.\d{1,3})?$/.test(text)) throw new UsageError(`--overlap is not a number of hours: ${text}`)
  return Math.round(Number(text) * 3_600_000)
}

function parseScopes(text: string) {
  const given = text.split(',').map((scope) => scope.trim())
  const unknown = given.filter((scope) => !isScope(scope))
  if (unknown.length > 0)
    throw new UsageError(`no such scope: ${unknown.join(', ')}. There are: ${scopes.join(', ')}`)
  return scopes.filter((scope) => given.includes(scope))
}

/** Whether a key that is in use expires soon. Milliseconds. */
function warningOf({ expiresAt, revokedAt }: ApiKey, now: number, withinMs: number): { warning?: string } {
  if (expiresAt === null || revokedAt !== null || expiresAt <= now || expiresAt >= now + withinMs) return {}
  const days = Math.ceil((expiresAt - now) / 86_400_000)
  return { warning: `expires in ${counted(days, 'day')}: rotate it before` }
}

const view = (key: ApiKey, owner: string) => ({
  prefix: key.prefix,
  name: key.name,
  owner_id: key.ownerId,
  owner,
  scopes: key.scopes,
  hubs: key.hubs,
  created_at: timestamp(key.createdAt),
  expires_at: timestampOrNull(key.expiresAt),
  revoked_at: timestampOrNull(key.revokedAt),
  last_used_at: timestampOrNull(key.lastUsedAt),
})
