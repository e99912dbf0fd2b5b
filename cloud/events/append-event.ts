import type { EventType, TEST_EVENT } from '../../protocol/model/event-types.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'

interface NewEvent {
  type: EventType | typeof TEST_EVENT
  /** The hub of the event; null if it has none, and then `ownerId` is set. */
  hubId: number | null
  /** By default the hub's owner. */
  ownerId?: number
  /** The only webhook that receives the event, for a test. */
  endpointId?: string
  /**
   * The resource exactly as the API shows it, but with the keys of images: addresses are signed for each reader. A
   * function is called at the end of the transaction, when all consequences of the change are written.
   */
  data: object | (() => Promise<object>)
}

/**
 * Appends an event in the transaction of the change that it reports, so that both are committed or neither. Events are
 * written at the end of the transaction, in the order of the calls. Returns the event's id.
 */
export function appendEvent(tx: Tx, { runtime }: CloudContext, event: NewEvent): string {
  const { type, hubId, ownerId, endpointId = null, data } = event
  const id = `evt_${uuidv7(runtime)}`
  tx.beforeCommit(id, async () => {
    const shown = typeof data === 'function' ? await (data as () => Promise<object>)() : data
    const row = { id, type, hubId, endpointId, data: JSON.stringify(shown), at: runtime.clock.now() }
    return async () => {
      if (ownerId === undefined) await insertOfHub(tx.q, row)
      else await insertOfOwner(tx.q, { ...row, ownerId })
    }
  })
  // Once for all events of the transaction.
  tx.beforeCommit('news of events', () => Promise.resolve(tx.notify({ kind: 'event' })))
  return id
}

interface Row extends Required<Pick<NewEvent, 'type' | 'hubId'>> {
  id: string
  endpointId: string | null
  data: string
  at: number
}

const insertOfOwner = statement((q, row: Row & { ownerId: number }) =>
  q.insertInto('events').values({ ...columnsOf(row), owner_id: row.ownerId }),
)
const insertOfHub = statement((q, row: Row) =>
  q.insertInto('events').values((eb) => ({
    ...columnsOf(row),
    owner_id: eb.selectFrom('hubs').select('owner_id').where('id', '=', row.hubId),
  })),
)

const columnsOf = ({ id, type, hubId, endpointId, data, at }: Row) => ({
  id,
  type,
  hub_id: hubId,
  endpoint_id: endpointId,
  data,
  created_at: at,
  position: null,
})
