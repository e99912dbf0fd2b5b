import type { Key, Person } from '../../../protocol/contract/owner-people.ts'
import { roleScopes, type Scope } from '../../../protocol/model/scopes.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit, appendAudits } from '../../platform/audit/audit.ts'
import { timestamp, timestampOrNull } from '../../platform/calendar/days.ts'
import type { CloudContext } from '../../platform/context.ts'
import {
  issueApiKey,
  countValidKeys,
  listApiKeys,
  readApiKey,
  revokeApiKey,
  type ApiKey,
  type HubSelection,
} from '../../platform/credentials/api-keys.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import {
  lockHubs,
  lockOwners,
  reachableHubs,
  requireHub,
  type OwnedHub,
} from '../../platform/credentials/hub-access.ts'
import {
  grantRole,
  countRolesAt,
  listRoles,
  listRolesAt,
  readRole,
  recordsOfGrant,
  revokeRole,
  type Role,
} from '../../platform/credentials/roles.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import type { Queries, Tx } from '../../platform/store/database.ts'
import { numbersIn, textsIn } from '../../platform/store/recordset.ts'

/** The hubs of a credential, and their owners. */
export async function readReach(q: Queries, credential: OwnerCredential) {
  const hubs = await reachableHubs(q, credential)
  const ids = new Set(hubs.map(({ id }) => id))
  const owners = new Set(hubs.map(({ owner_id }) => owner_id))
  const owned = await q
    .selectFrom('hubs')
    .select(['id', 'owner_id'])
    .where('owner_id', 'in', numbersIn(q, [...owners]))
    .execute()
  const reachesAllOf = (owner: number): boolean =>
    owned.every(({ id, owner_id }) => owner_id !== owner || ids.has(id))
  const includes = (selection: HubSelection, isWhole: boolean): boolean =>
    selection === '*' ? isWhole : selection.every((id) => ids.has(id))
  return {
    /** Owners with all of their hubs. */
    wholeOwners: [...owners].filter(reachesAllOf),
    hubs,
    owners: [...owners],
    selection: (selection: HubSelection) => includes(selection, false),
    // A role at all hubs holds for hubs of every owner.
    role: ({ hubs: selection }: Role) =>
      includes(selection, credential.ownerId === null && credential.hubs === '*'),
    key: ({ ownerId, hubs: selection }: ApiKey) =>
      owners.has(ownerId) && includes(selection, reachesAllOf(ownerId)),
  }
}

export type Reach = Awaited<ReturnType<typeof readReach>>

const person = ({ id, identity, role, hubs, createdAt }: Role, name: string | null): Person => ({
  id,
  identity,
  name,
  role,
  hubs: hubs === '*' ? hubs : [...hubs],
  created_at: timestamp(createdAt),
})

/** Names of people with a passkey, by their identity. */
async function namesOf(q: Queries, people: readonly Pick<Role, 'identity'>[]): Promise<Map<string, string>> {
  const rows = await q
    .selectFrom('passkeys')
    .select(['identity', 'name'])
    .where(
      'identity',
      'in',
      textsIn(
        q,
        people.map(({ identity }) => identity),
      ),
    )
    .execute()
  return new Map(rows.map(({ identity, name }) => [identity, name]))
}

const keyView = ({ prefix, name, scopes, hubs, ...times }: ApiKey): Key => ({
  prefix,
  name,
  scopes: [...scopes],
  hubs: hubs === '*' ? hubs : [...hubs],
  created_at: timestamp(times.createdAt),
  expires_at: timestampOrNull(times.expiresAt),
  revoked_at: timestampOrNull(times.revokedAt),
  last_used_at: timestampOrNull(times.lastUsedAt),
})

/** A person can give only rights that this person has. Throws `scope_missing`. */
export function requireScopes({ scopes }: OwnerCredential, given: readonly Scope[]): void {
  const required_scope = given.find((scope) => !scopes.includes(scope))
  if (required_scope !== undefined)
    throw new ApiError(
      'scope_missing',
      `You cannot give ${required_scope}, because your credential lacks it.`,
      {
        required_scope,
      },
    )
}

const recordRole = (
  q: Queries,
  { runtime }: CloudContext,
  act: { actor: string; action: string },
  { id, name, identity, role, hubs }: Omit<Role, 'createdAt'> & { name: string | null },
): Promise<void> => {
  const detail = { identity, ...(name !== null && { name }), role, hubs }
  return appendAudits(q, runtime, recordsOfGrant({ ...act, object: `role-${id}` }, detail))
}

/** Throws 422 if one of the owners of some hubs has the maximum number of roles. */
export async function requireRoleRoom(
  tx: Tx,
  { settings }: CloudContext,
  hubs: readonly OwnedHub[],
): Promise<void> {
  const owners = [...new Set(hubs.map(({ owner_id }) => owner_id))]
  await lockOwners(tx, owners)
  for (const owner of owners) {
    const owned = await tx.q.selectFrom('hubs').select('id').where('owner_id', '=', owner).execute()
    const count = await countRolesAt(
      tx.q,
      owned.map(({ id }) => id),
    )
    requireRoom(count, settings.rolesPerOwner, 'roles')
  }
}

/** Throws 422 if an owner has the maximum number of API keys. */
async function requireKeyRoom(tx: Tx, { settings, runtime }: CloudContext, ownerId: number): Promise<void> {
  await lockOwners(tx, [ownerId])
  requireRoom(await countValidKeys(tx.q, runtime, ownerId), settings.keysPerOwner, 'API keys')
}

function requireRoom(count: number, limit: number, what: string): void {
  if (count >= limit)
    throw ApiError.invalid({
      loc: ['body'],
      msg: `Value error, an owner has at most ${limit} ${what}: revoke one`,
      type: 'value_error',
    })
}

type PeopleRoute = 'owner.staff.list' | 'owner.staff.grant' | 'owner.staff.revoke'
type KeyRoute = 'owner.api_keys.list' | 'owner.api_keys.create' | 'owner.api_keys.revoke'

/** People with a role at an owner's hubs, and the owner's API keys. Changes are audited. */
export const staffHandlers = (context: CloudContext): Handlers<PeopleRoute | KeyRoute> => ({
  ...peopleHandlers(context),
  ...keyHandlers(context),
})

function peopleHandlers(context: CloudContext): Handlers<PeopleRoute> {
  const { db, runtime } = context
  return {
    async 'owner.staff.list'({ credential }) {
      const reach = await readReach(db.kysely, credential)
      const isOperator = credential.ownerId === null && credential.hubs === '*'
      const all = isOperator
        ? await listRoles(db.kysely)
        : await listRolesAt(
            db.kysely,
            reach.hubs.map(({ id }) => id),
          )
      const roles = all.filter(reach.role)
      const names = await namesOf(db.kysely, roles)
      return { data: roles.map((role) => person(role, names.get(role.identity) ?? null)) }
    },
    async 'owner.staff.grant'({ body: { identity, role, hub_ids }, credential }) {
      requireScopes(credential, roleScopes[role])
      const hubs = [...new Set(hub_ids)].toSorted((one, other) => one - other)
      return db.transact(async (tx) => {
        await lockHubs(tx, hubs)
        const owned: OwnedHub[] = []
        for (const id of hubs) owned.push(await requireHub(tx.q, credential, id))
        const name = (await namesOf(tx.q, [{ identity }])).get(identity) ?? null
        const isSame = (known: Role): boolean =>
          known.role === role && JSON.stringify(known.hubs) === JSON.stringify(hubs)
        const known = (await listRoles(tx.q, identity)).find(isSame)
        if (known) return person(known, name)
        await requireRoleRoom(tx, context, owned)
        const id = await grantRole(tx.q, runtime, { identity, role, hubs })
        const { actor } = credential
        await recordRole(tx.q, context, { actor, action: 'roles.grant' }, { id, name, identity, role, hubs })
        return person({ id, identity, role, hubs, createdAt: runtime.clock.now() }, name)
      })
    },
    async 'owner.staff.revoke'({ params, credential }) {
      const reach = await readReach(db.kysely, credential)
      await db.transact(async (tx) => {
        const known = await readRole(tx.q, params.role_id)
        if (!known || !reach.role(known)) throw new ApiError('not_found')
        const name = (await namesOf(tx.q, [known])).get(known.identity) ?? null
        await revokeRole(tx, known.id)
        const { actor } = credential
        await recordRole(tx.q, context, { actor, action: 'roles.revoke' }, { ...known, name })
      })
      return undefined
    },
  }
}

function keyHandlers(context: CloudContext): Handlers<KeyRoute> {
  const { db, runtime } = context
  const record = (q: Queries, { actor }: OwnerCredential, action: string, object: string) =>
    appendAudit(q, runtime, { actor, action, hubId: null, object, result: 'executed' })
  return {
    async 'owner.api_keys.list'({ credential }) {
      const reach = await readReach(db.kysely, credential)
      return { data: (await listApiKeys(db.kysely, reach.owners)).filter(reach.key).map(keyView) }
    },
    async 'owner.api_keys.create'({ body: { name, scopes, hub_ids, expires_at }, credential }) {
      requireScopes(credential, scopes)
      const { owner_id: ownerId } = await requireHub(db.kysely, credential, hub_ids[0]!)
      for (const id of hub_ids)
        if ((await requireHub(db.kysely, credential, id)).owner_id !== ownerId)
          throw new ApiError('hub_not_found')
      const expiresAt = expires_at === undefined ? null : Date.parse(expires_at)
      const request = { name, ownerId, scopes: [...new Set(scopes)], hubs: [...new Set(hub_ids)], expiresAt }
      const { key, prefix } = await db.transact(async (tx) => {
        await requireKeyRoom(tx, context, ownerId)
        const issued = await issueApiKey(tx.q, runtime, request)
        await record(tx.q, credential, 'keys.create', `key-${issued.prefix}`)
        return issued
      })
      const createdAt = runtime.clock.now()
      return {
        api_key: key,
        ...keyView({ ...request, prefix, createdAt, revokedAt: null, lastUsedAt: null }),
      }
    },
    async 'owner.api_keys.revoke'({ params, credential }) {
      const reach = await readReach(db.kysely, credential)
      await db.transact(async (tx) => {
        const known = await readApiKey(tx.q, params.prefix)
        if (!known || !reach.key(known)) throw new ApiError('not_found')
        if (known.revokedAt !== null) return
        await revokeApiKey(tx.q, runtime, known.prefix)
        await record(tx.q, credential, 'keys.revoke', `key-${known.prefix}`)
      })
      return undefined
    },
  }
}
