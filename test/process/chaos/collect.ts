import type BetterSqlite3 from 'better-sqlite3'
import { openDatabase, type CloudDatabase } from '../../../cloud/platform/store/database.ts'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { sleep, type Clock } from '../../../protocol/model/runtime.ts'
import { collectCloud } from '../../invariants/collect-cloud.ts'
import { collectHub } from '../../invariants/collect-hub.ts'
import { collectRoom } from '../../invariants/collect-room.ts'
import type { CloudEvidence, Evidence } from '../../invariants/evidence.ts'
import type { Plant } from './plant.ts'
import type { Room } from './room.ts'
import { Sqlite } from '../../../edge/journal/sqlite-driver.ts'

/** Reads the books of the running programs, and writes nothing. */
export interface Auditor {
  /**
   * Orders of the hub that have not ended, pending refunds and unacknowledged entries, in words; undefined if
   * there are none.
   */
  unfinished(): Promise<string | undefined>
  evidence(): Promise<Evidence>
  close(): Promise<void>
}

/**
 * Call it when `plant` has its data and before the first sale: the rows present then do not belong to this
 * run.
 */
export async function createAuditor(plant: Plant, room: Room): Promise<Auditor> {
  const { hubId } = plant
  const db = openDatabase({ url: plant.databaseUrl })
  const past = await pastOf(db)
  /** Operations of journals that were deleted since. */
  const known: JournaledOperations = { ids: new Set(), refs: new Map(), commands: new Map() }

  function withJournal<T>(read: (journal: BetterSqlite3.Database) => T): T {
    const journal = new Sqlite(plant.places.journal, { readonly: true })
    try {
      return read(journal)
    } finally {
      journal.close()
    }
  }

  return {
    async unfinished() {
      const q = db.kysely
      const orders = await q
        .selectFrom('orders')
        .select(['id', 'processing_status'])
        .where('hub_id', '=', hubId)
        .where('processing_status', '>', OrderStatus.NEW)
        .where('processing_status', '<', OrderStatus.COMPLETED)
        .execute()
      const refunds = await q.selectFrom('refunds').select('id').where('status', '=', 'pending').execute()
      const outbox = await q.selectFrom('hub_outboxes').selectAll().where('hub_id', '=', hubId).execute()
      const hub = withJournal(collectHub)
      const left = [
        ...orders.map((order) => `order ${order.id} at ${order.processing_status}`),
        ...refunds.map((refund) => `refund ${refund.id}`),
        ...outbox.filter(({ base, last }) => last > base).map(() => 'entries of the cloud'),
        ...(hub.pending > 0 ? ['entries of the hub'] : []),
        ...(hub.open.length > 0 ? ['operations of the hub'] : []),
        ...hub.orders
          .filter(({ finished }) => !finished)
          .map(({ order_id }) => `order ${order_id} at the hub`),
      ]
      return left.length === 0 ? undefined : left.join(', ')
    },
    async evidence() {
      withJournal((journal) => note(journal, known))
      const state = await room.state()
      const motions = await room.actuations()
      return {
        world: {
          motions,
          ...collectRoom(state, plant.seed.shelves),
          refOfOperation: known.refs,
          doubleDropsRaised: false,
          unjournaled: motions.flatMap(({ operation_id: id }) =>
            id !== undefined && !known.ids.has(id) ? [id] : [],
          ),
          overran: [],
          soldUnproven: [],
        },
        hub: withJournal(collectHub),
        cloud: since(past, await collectCloud(db.kysely, hubId)),
        staleCommands: plant.tap.staleOnly(),
        commandOfOperation: known.commands,
      }
    },
    close: () => db.close(),
  }
}

/** Waits until nothing is unfinished. Returns the remaining work in words after `withinMs`, or nothing. */
export async function untilQuiet(
  auditor: Pick<Auditor, 'unfinished'>,
  clock: Clock,
  withinMs: number,
): Promise<string | undefined> {
  for (const end = clock.monotonic() + withinMs; ; await sleep(clock, 500)) {
    const left = await auditor.unfinished()
    if (left === undefined || clock.monotonic() > end) return left
  }
}

interface JournaledOperations {
  ids: Set<string>
  refs: Map<string, string>
  commands: Map<string, string>
}

function note(journal: BetterSqlite3.Database, { ids, refs, commands }: JournaledOperations): void {
  const rows = journal
    .prepare<[], { id: string; ref: string | null; command_id: string | null }>(
      'SELECT id, ref, command_id FROM operations',
    )
    .all()
  for (const { id, ref, command_id } of rows) {
    ids.add(id)
    if (ref !== null) refs.set(id, ref)
    if (command_id !== null) commands.set(id, command_id)
  }
}

interface Past {
  order: number
  intents: ReadonlySet<string>
}

async function pastOf({ kysely }: CloudDatabase): Promise<Past> {
  const last = await kysely.selectFrom('orders').select('id').orderBy('id', 'desc').executeTakeFirst()
  const intents = await kysely.selectFrom('sandbox_intents').select('id').execute()
  return { order: last?.id ?? 0, intents: new Set(intents.map(({ id }) => id)) }
}

/** Removes the two years of sales in the demo's data: no unit of them moved here. */
function since(past: Past, cloud: CloudEvidence): CloudEvidence {
  const isNew = ({ order_id }: { order_id: number }): boolean => order_id > past.order
  return {
    ...cloud,
    orders: cloud.orders.filter(({ id }) => id > past.order),
    items: cloud.items.filter(isNew),
    payments: cloud.payments.filter(isNew),
    refunds: cloud.refunds.filter(isNew),
    intents: cloud.intents.filter(({ id }) => !past.intents.has(id)),
    processorDisputes: cloud.processorDisputes.filter(({ intent_id }) => !past.intents.has(intent_id)),
    processorRefunds: cloud.processorRefunds.filter(({ intent_id }) => !past.intents.has(intent_id)),
  }
}
