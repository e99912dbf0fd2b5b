import type { Selectable } from 'kysely'
import { ApiError } from '../api-error.ts'
import type { Queries } from '../store/database.ts'
import type { Tables } from '../store/schema.ts'
import { allOf, statement } from '../store/statement.ts'
import type { OwnerCredential } from './credential.ts'

type Scope = Pick<OwnerCredential, 'hubs' | 'ownerId'>

/** Whether a credential reaches a hub. A resource of a hub that it does not reach is *not found*, never *denied*. */
export function reachesHub(credential: Scope, hub: OwnedHub): boolean {
  const owned = credential.ownerId === null || credential.ownerId === hub.owner_id
  return owned && (credential.hubs === '*' || credential.hubs.includes(hub.id))
}

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
  return reached(credential, hub)
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
  readHub: (id: number) => Promise<OwnedHub | undefined>,
  credential: Scope,
  hubId: number,
): Promise<void> {
  reached(credential, await readHub(hubId))
}

function reached<H extends OwnedHub>(credential: Scope, hub: H | undefined): H {
  if (hub && reachesHub(credential, hub)) return hub
  throw new ApiError(credential.hubs === '*' ? 'hub_not_found' : 'hub_access_denied')
}
