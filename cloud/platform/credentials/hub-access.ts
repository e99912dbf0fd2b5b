import { sql, type RawBuilder, type Selectable, type SqlBool } from 'kysely'
import { ApiError } from '../api-error.ts'
import type { Queries, Tx } from '../store/database.ts'
import { numbersIn } from '../store/recordset.ts'
import type { Tables } from '../store/schema.ts'
import { allOf, statement } from '../store/statement.ts'
import type { OwnerCredential } from './credential.ts'

type Scope = Pick<OwnerCredential, 'hubs' | 'ownerId'>

/** Whether a credential reaches a hub. A resource of an unreachable hub gets *not found*, never *denied*. */
export function reachesHub(credential: Scope, hub: OwnedHub): boolean {
  const owned = credential.ownerId === null || credential.ownerId === hub.owner_id
  return owned && selects(credential, hub.id)
}

const selects = ({ hubs }: Scope, hubId: number): boolean => hubs === '*' || hubs.includes(hubId)

/**
 * Returns a function that decides whether a credential reaches a record of a hub and an owner: an order, event, webhook or
 * report. A moved hub has records of several owners. A credential without an owner reaches the records of the present
 * owner; a credential for every hub reaches all records.
 */
export async function readBookReach(
  q: Queries,
  { hubs, ownerId }: Scope,
  hubIds: readonly (number | null)[],
): Promise<(hubId: number | null, owner: number) => boolean> {
  if (hubs === '*') return (_hubId, owner) => ownerId === null || ownerId === owner
  const reached = [...new Set(hubIds)].filter((id) => id !== null && hubs.includes(id)) as number[]
  const ownerOfBook =
    ownerId === null ? await presentOwners(q, reached) : new Map(reached.map((id) => [id, ownerId]))
  return (hubId, owner) => hubId !== null && ownerOfBook.get(hubId) === owner
}

async function presentOwners(q: Queries, hubIds: readonly number[]): Promise<Map<number, number>> {
  if (hubIds.length === 0) return new Map()
  const hubs = q.selectFrom('hubs').select(['id', 'owner_id']).where('id', 'in', numbersIn(q, hubIds))
  return new Map((await hubs.execute()).map(({ id, owner_id }) => [id, owner_id]))
}

/** The same for a record of one hub, which may have several owners. */
export async function reachesBook(
  q: Queries,
  credential: Scope,
  { hubId, owners }: { hubId: number; owners: readonly number[] },
): Promise<boolean> {
  const reaches = await readBookReach(q, credential, [hubId])
  return owners.some((owner) => reaches(hubId, owner))
}

/** The same as a condition on rows of a table with `hub_id` and `owner_id`. */
export function ofReachedBooks(q: Queries, { hubs, ownerId }: Scope, table: string): RawBuilder<SqlBool> {
  const [hub, owner] = [sql.ref(`${table}.hub_id`), sql.ref(`${table}.owner_id`)]
  if (hubs === '*') return ownerId === null ? sql`1 = 1` : sql`${owner} = ${ownerId}`
  const ofHubs = sql`${hub} in ${numbersIn(q, hubs)}`
  return ownerId === null
    ? sql`(${ofHubs} and ${owner} = ${presentOwnerOf(hub)})`
    : sql`(${owner} = ${ownerId} and ${ofHubs})`
}

/** The present owner of the hub in a column. */
const presentOwnerOf = (hub: RawBuilder<unknown>): RawBuilder<number> =>
  sql`(select present.owner_id from hubs as present where present.id = ${hub})`

/** A hub, and the time of its last message. */
export type HubWithContact = Selectable<Tables['hubs']> & { last_heard_at: number | null }

export const hubsWithContact = (q: Queries) =>
  q
    .selectFrom('hubs')
    .leftJoin('hub_sessions', 'hub_sessions.hub_id', 'hubs.id')
    .select(allOf('hubs').map((column) => `hubs.${column}` as const))
    .select('hub_sessions.last_heard_at')

/** The hubs that a credential reaches, sorted by id. */
export async function reachableHubs(q: Queries, { hubs, ownerId }: Scope): Promise<HubWithContact[]> {
  let query = hubsWithContact(q).orderBy('hubs.id')
  if (ownerId !== null) query = query.where('hubs.owner_id', '=', ownerId)
  if (hubs !== '*') query = query.where('hubs.id', 'in', numbersIn(q, hubs))
  return query.execute()
}

const ownerOf = statement((q, hub: { id: number }) =>
  q.selectFrom('hubs').select(['id', 'owner_id']).where('id', '=', hub.id),
)
const hubById = statement((q, hub: { id: number }) => hubsWithContact(q).where('hubs.id', '=', hub.id))

/**
 * The hub that a request names. A credential with a list of hubs gets `hub_access_denied` for every other id, whether
 * that hub exists or not. A credential with all hubs of its owner gets `hub_not_found`.
 */
export async function requireHub(q: Queries, credential: Scope, hubId: number): Promise<HubWithContact> {
  const [hub] = await hubById(q, { id: hubId })
  return reached(q, credential, hub)
}

/** Hubs are not moved to another owner before the transaction ends. */
export async function lockHubs(tx: Tx, hubIds: readonly number[]): Promise<void> {
  const hubs = tx.q
    .selectFrom('hubs')
    .select('id')
    .where('id', 'in', [0, ...hubIds])
    .orderBy('id')
  await tx.forUpdate(hubs).execute()
}

/** Two transactions with this lock do not both take the last place of what an owner may have. */
export async function lockOwners(tx: Tx, ids: readonly number[]): Promise<void> {
  const owners = tx.q.selectFrom('owners').select('id').where('id', 'in', numbersIn(tx.q, ids)).orderBy('id')
  await tx.forUpdate(owners).execute()
}

/**
 * Throws `hub_not_accepting_orders` with the reason `retired` for a retired hub: its books remain, but it accepts no
 * change.
 */
export function refuseRetired({ id, retired_at }: { id: number; retired_at: number | null }): void {
  if (retired_at !== null)
    throw new ApiError('hub_not_accepting_orders', `hub ${id} is retired: nothing of it changes any more`, {
      reason: 'retired',
    })
}

const retirementOf = statement((q, hub: { id: number }) =>
  q.selectFrom('hubs').select(['id', 'retired_at']).where('id', '=', hub.id),
)

/** The same check for a caller without the hub's row. It ignores an unknown hub. */
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

/** The same for a route of books, which a former owner of the hub may also read. */
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

/** Whether a credential reaches a hub, or its owner has owned the hub before. */
export async function mayReadBooks(q: Queries, credential: Scope, hub: OwnedHub): Promise<boolean> {
  if (reachesHub(credential, hub)) return true
  const { ownerId } = credential
  if (ownerId === null || !selects(credential, hub.id)) return false
  return (await tenures(q, hub.id, ownerId)).length > 0
}

/** Whether an id is a place in a list of hubs: that of a hub which the credential reaches or reached before. */
export async function isPlaceOfHub(q: Queries, credential: Scope, hubId: number): Promise<boolean> {
  const hub = await readOwner(q, hubId)
  return hub !== undefined && mayReadBooks(q, credential, hub)
}

/** A hub under an owner whose records of that time a credential may read. */
export interface HubBook {
  hubId: number
  ownerId: number
  name: string
  timezone: string
  /** Whether the owner still has the hub. */
  isCurrent: boolean
}

/** The books that a credential may read, sorted by hub. A caller without an owner reads those of the present owner. */
export async function readableBooks(
  q: Queries,
  { hubs, ownerId }: Scope,
  hubId?: number,
): Promise<HubBook[]> {
  const selected = hubId === undefined ? hubs : hubs === '*' || hubs.includes(hubId) ? [hubId] : []
  let query = q.selectFrom('hubs').select(['id', 'owner_id', 'name', 'timezone']).orderBy('id')
  if (selected !== '*') query = query.where('id', 'in', numbersIn(q, selected))
  if (ownerId !== null)
    query = query.where(
      sql<boolean>`(hubs.owner_id = ${ownerId} or exists (
        select 1 from former_owners as f where f.hub_id = hubs.id and f.owner_id = ${ownerId}))`,
    )
  const rows = await query.execute()
  return rows.map(({ id, owner_id, name, timezone }) => ({
    hubId: id,
    ownerId: ownerId ?? owner_id,
    // The new owner's name for the hub is private to this owner.
    name: ownerId === null || ownerId === owner_id ? name : `Hub ${id}`,
    timezone,
    isCurrent: ownerId === null || ownerId === owner_id,
  }))
}

/**
 * Restricts rows with `hub_id` and `owner_id` to the books of one owner, or to books of several owners who all still have
 * their hubs.
 */
export function inBooks(
  q: Queries,
  books: readonly Pick<HubBook, 'hubId' | 'ownerId'>[],
): RawBuilder<SqlBool> {
  const [owner, another] = new Set(books.map(({ ownerId }) => ownerId))
  if (owner === undefined) return sql`1 = 0`
  const hubs = books.map(({ hubId }) => hubId)
  const owners = another === undefined ? sql`${owner}` : presentOwnerOf(sql.ref('hub_id'))
  return sql`(owner_id = ${owners} and hub_id in ${numbersIn(q, hubs)})`
}

/** A period of ownership: `since` inclusive, `until` exclusive. Null: it lasts. */
export interface Tenure {
  since: number
  until: number | null
}

/** When a hub belonged to an owner. A caller without an owner reads the same as the present owner. */
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

/** The owner of a hub at a time. */
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

/** Restricts rows to an owner's periods, by the column with the row's time. */
export const within = (column: string, spans: readonly Tenure[]): RawBuilder<SqlBool> => {
  const at = sql.ref(column)
  const parts = spans.map(({ since, until }) =>
    until === null ? sql`${at} >= ${since}` : sql`(${at} >= ${since} and ${at} < ${until})`,
  )
  return parts.length === 0 ? sql`1 = 0` : sql`(${sql.join(parts, sql` or `)})`
}

async function reached<H extends OwnedHub>(q: Queries, credential: Scope, hub: H | undefined): Promise<H> {
  if (hub && reachesHub(credential, hub)) return hub
  // A hub that was moved away is unknown both to a key that names it and to a key with all hubs.
  const isUnknown = credential.hubs === '*' || (hub && (await mayReadBooks(q, credential, hub)))
  throw new ApiError(isUnknown ? 'hub_not_found' : 'hub_access_denied')
}
