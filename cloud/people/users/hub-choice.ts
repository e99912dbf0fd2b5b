import type { CurrentHub } from '../../../protocol/contract/consumer-profile.ts'
import type { HubSummary } from '../../../protocol/contract/owner-hubs.ts'
import type { CloudContext } from '../../platform/context.ts'
import { summarizeHub } from '../../operations/hubs/hub-view.ts'
import type { Queries } from '../../platform/store/database.ts'
import { requireHubExists } from './bootstrap.ts'
import type { UserRow } from './profile.ts'

type Context = Pick<CloudContext, 'db' | 'runtime'>

/** The hub that a user has selected, else the default one. */
export async function currentHub(q: Queries, user: UserRow): Promise<HubSummary | null> {
  const hubId = user.selected_hub_id ?? user.default_hub_id
  if (hubId === null) return null
  const hub = await q.selectFrom('hubs').selectAll().where('id', '=', hubId).executeTakeFirstOrThrow()
  return summarizeHub(hub)
}

/** Sets one of a user's two hubs, or clears it. Throws `hub_not_found`. */
export async function chooseHub(
  { db, runtime }: Context,
  userId: number,
  choice: { selected_hub_id: number } | { default_hub_id: number | null },
): Promise<CurrentHub> {
  const q = db.kysely
  const [hubId] = Object.values(choice)
  if (hubId !== null) await requireHubExists(q, hubId!)
  const user = await q
    .updateTable('users')
    .set({ ...choice, updated_at: runtime.clock.now() })
    .where('id', '=', userId)
    .returningAll()
    .executeTakeFirstOrThrow()
  return viewChoice(q, user)
}

/** Clears the selection where it is this hub. Throws `hub_not_found`. */
export async function unselectHub({ db, runtime }: Context, userId: number, hubId: number): Promise<void> {
  await requireHubExists(db.kysely, hubId)
  await db.kysely
    .updateTable('users')
    .set({ selected_hub_id: null, updated_at: runtime.clock.now() })
    .where('id', '=', userId)
    .where('selected_hub_id', '=', hubId)
    .execute()
}

const viewChoice = async (q: Queries, user: UserRow): Promise<CurrentHub> => ({
  user_id: user.id,
  current_hub: await currentHub(q, user),
  default_hub_id: user.default_hub_id,
})
