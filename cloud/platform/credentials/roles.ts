import { PostgresAdapter, sql, type RawBuilder, type Selectable, type SqlBool } from 'kysely'
import { roleScopes, roleNames, type RoleName, type Scope } from '../../../protocol/model/scopes.ts'
import type { Runtime } from '../../../protocol/model/runtime.ts'
import type { AuditRecord } from '../audit/audit.ts'
import type { Queries, Tx } from '../store/database.ts'
import { numbersIn } from '../store/recordset.ts'
import type { Tables } from '../store/schema.ts'
import { StoredHubs, type HubSelection } from './api-keys.ts'
import { endSessionsOf } from './sessions.ts'

/** A role of an identity on some hubs. */
export interface Role {
  id: number
  identity: string
  role: RoleName
  hubs: HubSelection
  createdAt: number
}

export async function grantRole(
  q: Queries,
  { clock }: Runtime,
  grant: { identity: string; role: RoleName; hubs: HubSelection },
): Promise<number> {
  const { id } = await q
    .insertInto('roles')
    .values({
      identity: grant.identity,
      role: grant.role,
      hubs: JSON.stringify(grant.hubs),
      created_at: clock.now(),
    })
    .returning('id')
    .executeTakeFirstOrThrow()
  return id
}

/**
 * Removes a role and returns it; undefined if there is no such role. An identity without a further role also loses
 * its sessions and passkeys.
 */
export async function revokeRole(
  tx: Tx,
  id: number,
): Promise<{ identity: string; role: string; hubs: HubSelection } | undefined> {
  const { q } = tx
  const found = await q.selectFrom('roles').select('identity').where('id', '=', id).executeTakeFirst()
  if (!found) return undefined
  const { identity } = found
  // A simultaneous second revocation waits here, and then sees that no role is left.
  await tx
    .forUpdate(q.selectFrom('roles').select('id').where('identity', '=', identity).orderBy('id'))
    .execute()
  const row = await q.deleteFrom('roles').where('id', '=', id).returning(['role', 'hubs']).executeTakeFirst()
  if (!row) return undefined
  if ((await listRoles(q, identity)).length === 0) {
    const passkeys = q.selectFrom('passkeys').select('id').where('identity', '=', identity)
    // A passkey that is being added is stored under this lock: the deletion waits for it.
    await tx.forUpdate(passkeys.orderBy('created_at')).execute()
    await q.deleteFrom('passkeys').where('identity', '=', identity).execute()
    await endSessionsOf(q, identity)
  }
  return { identity, role: row.role, hubs: StoredHubs.parse(JSON.parse(row.hubs)) }
}

/** The records of an act on a role or an invitation: one for each hub, because owners read the records of their hubs. */
export const recordsOfGrant = (
  act: Pick<AuditRecord, 'actor' | 'action' | 'object'>,
  detail: { role: string; hubs: HubSelection; [name: string]: unknown },
): AuditRecord[] =>
  (detail.hubs === '*' ? [null] : detail.hubs).map((hubId) => ({
    ...act,
    hubId,
    result: 'executed',
    detail,
  }))

export async function listRoles(q: Queries, identity?: string): Promise<Role[]> {
  let query = q.selectFrom('roles').selectAll().orderBy('id')
  if (identity !== undefined) query = query.where('identity', '=', identity)
  return rolesOf(await query.execute())
}

/** The roles that name one of some hubs. */
export const listRolesAt = async (q: Queries, hubIds: readonly number[]): Promise<Role[]> =>
  rolesOf(await q.selectFrom('roles').selectAll().where(namesOneOf(q, hubIds)).orderBy('id').execute())

export async function readRole(q: Queries, id: number): Promise<Role | undefined> {
  return rolesOf(await q.selectFrom('roles').selectAll().where('id', '=', id).execute())[0]
}

/** The number of roles that name one of some hubs. */
export async function countRolesAt(q: Queries, hubIds: readonly number[]): Promise<number> {
  const { count } = await q
    .selectFrom('roles')
    .select((eb) => eb.fn.countAll().as('count'))
    .where(namesOneOf(q, hubIds))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** Roles at all hubs name none. */
function namesOneOf(q: Queries, hubIds: readonly number[]): RawBuilder<SqlBool> {
  const list = sql`case when roles.hubs = '"*"' then '[]' else roles.hubs end`
  const named =
    q.getExecutor().adapter instanceof PostgresAdapter
      ? sql`(select cast(value as bigint) as hub from json_array_elements_text(cast(${list} as json)) as each (value))`
      : sql`(select value as hub from json_each(${list}))`
  return sql`exists (select 1 from ${named} as named where named.hub in ${numbersIn(q, hubIds)})`
}

function rolesOf(rows: readonly Selectable<Tables['roles']>[]): Role[] {
  return rows.flatMap((row) => {
    const role = roleNames.find((name) => name === row.role)
    return role
      ? [
          {
            id: row.id,
            identity: row.identity,
            role,
            hubs: StoredHubs.parse(JSON.parse(row.hubs)),
            createdAt: row.created_at,
          },
        ]
      : []
  })
}

/** The hubs on which any of the roles grants a scope; null if there are none. */
export function hubsWithScope(roles: readonly Role[], scope: Scope): HubSelection | null {
  const granting = roles.filter(({ role }) => roleScopes[role].includes(scope))
  if (granting.length === 0) return null
  const lists = granting.map(({ hubs }) => hubs)
  return lists.includes('*') ? '*' : [...new Set(lists.flatMap((hubs) => (hubs === '*' ? [] : hubs)))]
}
