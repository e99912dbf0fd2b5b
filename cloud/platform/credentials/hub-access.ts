import { sql, type RawBuilder, type Selectable, type SqlBool } from 'kysely'
import { ApiError } from '../api-error.ts'
import type { Queries } from '../store/database.ts'
import type { Tables } from '../store/schema.ts'
import { allOf, statement } from '../store/statement.ts'
import type { OwnerCredential } from './credential.ts'

type Scope = Pick<OwnerCredential, 'hubs' | 'ownerId'>

/** Whether a credential reaches a hub. A resource of a hub that it does not reach is *not found*, never *denied*. */
export function reachesHub(credential: Scope, hub: OwnedHub): boolean {
  const owned = credential.ownerId === null || credential.ownerId === hub.owner_id
  return owned && selects(credential, hub.id)
}

const selects = ({ hubs }: Scope, hubId: number): boolean => hubs === '*' || hubs.includes(hubId)

/** A hub, and when it was last heard of. */
export type HeardHub = Selectable<Tables['hubs']> & { last_heard_at: number | null }

export const heardHubs = (q: Queries) =>
  q
    .selectFrom('hubs')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
    .select(allOf('hubs').map((column) => `hubs.${column}` as const))
    .select('hub_sessions.last_heard_at')

/** The hubs that a credential reaches, by id. */
export async function reachableHubs(q: Queries, { hubs, ownerId }: Scope): Promise<HeardHub[]> {
  let query = heardHubs(q).orderBy('hubs.id')
  if (ownerId !== null) query = query.where('hubs.owner_id', '=', ownerId)
  if (hubs !== '*') query = query.where('hubs.id', 'in', hubs.length > 0 ? hubs : [0])
  return query.execute()
}

const ownerOf = statement((q, hub: { id: number }) =>
  q.selectFrom('hubs').select(['id', 'owner_id']).where('id', '=', hub.id),
)
const hubById = statement((q, hub: { id: number }) => heardHubs(q).where('hubs.id', '=', hub.id))

/**
 * The hub that a request names. A credential that is limited to certain hubs gets `hub_access_denied` for every other id,
 * whether that hub exists or not; one with all hubs of its owner gets `hub_not_found`.
 */
export async function requireHub(q: Queries, credential: Scope, hubId: number): Promise<HeardHub> {
  const [hub] = await hubById(q, { id: hubId })
  return reached(q, credential, hub)
}

/** A retired hub keeps its books and takes no change any more. Throws `hub_not_accepting_orders`, with `retired` as its reason. */
export function refuseRetired({ id, retired_at }: { id: number; retired_at: number | null }): void {
  if (retired_at !== null)
    throw new ApiError('hub_not_accepting_orders', `hub ${id} is retired: nothing of it changes any more`, {
      reason: 'retired',
    })
}

const retirementOf = statement((q, hub: { id: number }) =>
  q.selectFrom('hubs').select(['id', 'retired_at']).where('id', '=', hub.id),
)

/** The same for a caller that does not have the hub. An unknown hub is not its matter. */
export async function requireInService(q: Queries, hubId: number): Promise<void> {
  for (const hub of await retirementOf(q, { id: hubId })) refuseRetired(hub)
}

export interface OwnedHub {
  id: number
  owner_id: number
}

export async function readOwner(q: Queries, id: number): Promise<OwnedHub | undefined> {
  const [hub] = await ownerOf(q, { id })
  return hub
}

/** The same check for a caller that does not need the hub itself. */
export async function requireReach(
  q: Queries,
  readHub: (id: number) => Promise<OwnedHub | undefined>,
  credential: Scope,
  hubId: number,
): Promise<void> {
  await reached(q, credential, await readHub(hubId))
}

/** The same for a route of books: a former owner of the hub reads them too. */
export async function requireBooks(
  q: Queries,
  readHub: (id: number) => Promise<OwnedHub | undefined>,
  credential: Scope,
  hubId: number,
): Promise<void> {
  const hub = await readHub(hubId)
  if (hub && (await mayReadBooks(q, credential, hub))) return
  await reached(q, credential, hub)
}

/** Whether a credential reaches a hub, or belongs to an owner who had it. */
export async function mayReadBooks(q: Queries, credential: Scope, hub: OwnedHub): Promise<boolean> {
  if (reachesHub(credential, hub)) return true
  const { ownerId } = credential
  if (ownerId === null || !selects(credential, hub.id)) return false
  return (await tenures(q, hub.id, ownerId)).length > 0
}

/** A time in which a hub was an owner's: `since` inclusive, `until` exclusive, null: it lasts. */
export interface Tenure {
  since: number
  until: number | null
}

/** When a hub was an owner's. A caller without an owner reads what the present owner reads. */
export async function readTenures(q: Queries, { ownerId }: Scope, hubId: number): Promise<Tenure[]> {
  const hub = await q
    .selectFrom('hubs')
    .select(['owner_id', 'owned_since'])
    .where('id', '=', hubId)
    .executeTakeFirst()
  if (!hub) return []
  const former = await tenures(q, hubId, ownerId ?? hub.owner_id)
  const isCurrent = ownerId === null || ownerId === hub.owner_id
  return isCurrent ? [...former, { since: hub.owned_since, until: null }] : former
}

const tenures = (q: Queries, hubId: number, ownerId: number) =>
  q
    .selectFrom('former_owners')
    .select(['since', 'until'])
    .where('hub_id', '=', hubId)
    .where('owner_id', '=', ownerId)
    .orderBy('until')
    .execute()

/** Whose a hub was at a time. */
export async function ownerAt(q: Queries, hubId: number, at: number): Promise<number | undefined> {
  const former = await q
    .selectFrom('former_owners')
    .select('owner_id')
    .where('hub_id', '=', hubId)
    .where('until', '>', at)
    .orderBy('until')
    .limit(1)
    .executeTakeFirst()
  return (former ?? (await readOwner(q, hubId)))?.owner_id
}

/** Restricts rows to an owner's time, by the column with their time. */
export const within = (column: string, spans: readonly Tenure[]): RawBuilder<SqlBool> => {
  const at = sql.ref(column)
  const parts = spans.map(({ since, until }) =>
    until === null ? sql`${at} >= ${since}` : sql`(${at} >= ${since} and ${at} < ${until})`,
  )
  return parts.length === 0 ? sql`1 = 0` : sql`(${sql.join(parts, sql` or `)})`
}

async function reached<H extends OwnedHub>(q: Queries, credential: Scope, hub: H | undefined): Promise<H> {
  if (hub && reachesHub(credential, hub)) return hub
  // A hub that was moved away is as unknown to a key that names it as to one with all hubs.
  const isUnknown = credential.hubs === '*' || (hub && (await mayReadBooks(q, credential, hub)))
  throw new ApiError(isUnknown ? 'hub_not_found' : 'hub_access_denied')
}
