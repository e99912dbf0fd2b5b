import type { Selectable } from 'kysely'
import { randomHex } from '../../protocol/model/ids.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'
import { numbersIn, textsIn } from '../platform/store/in-list.ts'
import type { Tables } from '../platform/store/schema.ts'
import { allOf, statement } from '../platform/store/statement.ts'
import { schedule } from '../platform/work/queue.ts'

export type EndpointRow = Selectable<Tables['webhook_endpoints']>
type Published = Pick<
  Selectable<Tables['events']>,
  'seq' | 'type' | 'owner_id' | 'hub_id' | 'endpoint_id'
> & {
  position: number
}

/** The due work of one webhook. Each has its own kind, so that a webhook that hangs delays no other. */
export const workOf = (endpointId: string): string => `webhook/${endpointId}`

/**
 * Schedules the deliveries of events to webhooks, in the transaction that publishes the events: each event once for
 * each webhook.
 */
export async function planDeliveries(
  tx: Tx,
  { runtime }: CloudContext,
  events: readonly Published[],
): Promise<void> {
  // A test is sent to a disabled webhook too.
  const tested = events.flatMap(({ endpoint_id }) => endpoint_id ?? [])
  // A webhook that its owner deletes at this moment must not block these events for others.
  const owners = new Set(events.map(({ owner_id }) => owner_id))
  const endpoints = await endpointsFor(tx.q, { tested, owners: [...owners] })
  const now = runtime.clock.now()
  for (const endpoint of endpoints) {
    const isWanted = wantedBy(endpoint)
    const deliveries = events.filter(isWanted).map(({ seq, position }) => ({
      id: `dlv_${position.toString(16).padStart(12, '0')}${randomHex(runtime.random, 4)}`,
      endpoint_id: endpoint.id,
      event_seq: seq,
      state: 'pending' as const,
      attempts: '[]',
      tries: 0,
      next_attempt_at: now,
    }))
    if (deliveries.length === 0) continue
    await tx.q.insertInto('webhook_deliveries').values(deliveries).execute()
    await schedule(
      tx,
      workOf(endpoint.id),
      deliveries.map(({ id }) => id),
      now,
    )
  }
}

const endpointsFor = statement(
  (q, { tested, owners }: { tested: readonly string[]; owners: readonly number[] }, locks) =>
    locks.forKeyShare(
      q
        .selectFrom('webhook_endpoints')
        .select(allOf('webhook_endpoints'))
        .where((eb) => eb.or([eb('state', '=', 'enabled'), eb('id', 'in', textsIn(q, tested))]))
        .where('owner_id', 'in', numbersIn(q, owners))
        .orderBy('id'),
    ),
)

export const listOf = <T>(json: string): T[] => JSON.parse(json) as T[]

/** The events that a webhook subscribes to. */
function wantedBy({ id, owner_id, event_types, hub_ids, state }: EndpointRow): (event: Published) => boolean {
  const types = new Set(listOf<string>(event_types))
  const hubs = new Set(listOf<number>(hub_ids))
  return (event) => {
    if (event.owner_id !== owner_id) return false
    if (event.endpoint_id !== null) return event.endpoint_id === id
    if (state === 'disabled') return false
    if (!types.has('*') && !types.has(event.type)) return false
    return hubs.size === 0 || (event.hub_id !== null && hubs.has(event.hub_id))
  }
}
