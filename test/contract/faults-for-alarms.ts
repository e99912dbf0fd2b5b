import { reportBackups } from '../../cloud/operations/backup/schedule.ts'
import { sql } from 'kysely'
import { ProcessorUnavailable, type CardProcessor } from '../../cloud/commerce/processors/processor.ts'
import { noteMoved } from '../../cloud/operations/ownership/next-cell.ts'
import type { Plant } from '../world/plant.ts'

/**
 * Removes a table, so that the cloud cannot apply a hub's reports of its fridges. Returns a function that
 * restores it.
 */
export async function breakFridgeStates(plant: Plant): Promise<() => Promise<void>> {
  const rename = (from: string, to: string): Promise<unknown> =>
    plant.wait(sql`alter table ${sql.table(from)} rename to ${sql.table(to)}`.execute(plant.db.kysely))
  const { context } = plant.services
  const report = context.onFault?.bind(context)
  context.onFault = () => {}
  await rename('hub_fridge_states', 'away')
  return async () => {
    await rename('away', 'hub_fridge_states')
    context.onFault = report!
  }
}

/** Makes the card processor unreachable. */
export function processorAway(plant: Plant): () => void {
  const { processor } = plant.services
  const before = { ...processor }
  const away = (): Promise<never> => Promise.reject(new ProcessorUnavailable('away'))
  const parts = ['createIntent', 'readIntent', 'cancelIntent', 'abandonIntent', 'confirmIntent'] as const
  Object.assign(processor, Object.fromEntries(parts.map((name) => [name, away])) as Partial<CardProcessor>)
  return () => void Object.assign(processor, before)
}

export const intentOf = async (plant: Plant, orderId: number): Promise<string> => {
  const row = await plant.db.kysely
    .selectFrom('payments as p')
    .innerJoin('money_operations as o', (join) =>
      join.onRef('o.subject', '=', 'p.id').on('o.kind', '=', 'payment'),
    )
    .select('o.processor_ref')
    .where('p.order_id', '=', orderId)
    .executeTakeFirstOrThrow()
  return row.processor_ref!
}

/** Kills the hub `times` times; its supervisor restarts it each time. The alarm ends with time. */
export async function crashHub(plant: Plant, times: number): Promise<() => void> {
  for (let time = 0; time < times; time += 1) {
    plant.hub.kill()
    await plant.run(20_000)
  }
  return () => {}
}

/** The hub leaves a version of the desired state. Returns a function after which another version works. */
export function leaveVersion({ hub }: Plant, version: number): Promise<() => void> {
  const set = (failed: typeof hub.failed): void => {
    hub.failed = failed
    hub.hub?.core.noteDesired()
  }
  set({ version, error: 'the cloud is not reached' })
  return Promise.resolve(() => set(null))
}

/** The newest backup is 37 hours old. Returns a function that makes one. */
export async function backupsStop(plant: Plant): Promise<() => unknown> {
  const { context } = plant.services
  const report = (ageMs: number) => plant.wait(reportBackups(context, context.runtime.clock.now() - ageMs))
  await report(37 * 3_600_000)
  return () => report(0)
}

/** The hub cannot move to the cell to which an operator has sent it. */
export async function moveInVain(plant: Plant): Promise<void> {
  const order = { cloud: 'https://shop.example/c1', next_id: 100_000_001, code: 'sealed', ordered_at: 1 }
  await plant.wait(
    plant.db.kysely
      .insertInto('hub_moves')
      .values({ hub_id: 1, ...order, error: null, moved_at: null })
      .execute(),
  )
  const answer = { order: 1, hub_id: order.next_id, error: 'the broker does not answer' }
  await plant.wait(noteMoved(plant.services.context, 1, answer))
}
