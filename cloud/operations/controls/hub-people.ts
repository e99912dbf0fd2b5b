import { isSameName } from '../../../protocol/model/pin.ts'
import type { CloudContext } from '../../platform/context.ts'
import type { Tx } from '../../platform/store/database.ts'
import { setDesired } from './configuration.ts'

/** People who may use the page of a hub. They reach the hub with its configuration. */

/** Bounds the configuration that a hub receives. */
const PEOPLE_PER_HUB = 200

/** Adds a person with a PIN to a hub. Throws if the hub has a person of that name. */
export async function addHubPerson(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  person: { name: string; pin_digest: string },
): Promise<void> {
  const names = await namesAt(tx, hubId)
  if (names.some((name) => isSameName(name, person.name)))
    throw new Error(`hub ${hubId} has a person named ${person.name}: remove that person first`)
  if (names.length >= PEOPLE_PER_HUB) throw new Error(`hub ${hubId} has ${PEOPLE_PER_HUB} people already`)
  const created_at = context.runtime.clock.now()
  await tx.q
    .insertInto('hub_people')
    .values({ hub_id: hubId, ...person, created_at })
    .execute()
  await send(tx, context, hubId)
}

/** Removes a person from a hub, or all people. Returns whether there was one. */
export async function removeHubPeople(
  tx: Tx,
  context: CloudContext,
  hubId: number,
  name?: string,
): Promise<boolean> {
  const gone = (await namesAt(tx, hubId)).filter((one) => name === undefined || isSameName(one, name))
  if (gone.length === 0) return false
  await tx.q.deleteFrom('hub_people').where('hub_id', '=', hubId).where('name', 'in', gone).execute()
  await send(tx, context, hubId)
  return true
}

async function namesAt(tx: Tx, hubId: number): Promise<string[]> {
  // Two commands at once wait here for one another.
  await tx.forUpdate(tx.q.selectFrom('hubs').select('id').where('id', '=', hubId)).execute()
  const rows = await tx.q.selectFrom('hub_people').select('name').where('hub_id', '=', hubId).execute()
  return rows.map(({ name }) => name)
}

const send = (tx: Tx, context: CloudContext, hubId: number): Promise<unknown> =>
  setDesired(tx, context, { hubId, change: (before) => before })
