import type { EventType, TEST_EVENT } from '../../protocol/model/event-types.ts'
import { uuidv7 } from '../../protocol/model/ids.ts'
import type { CloudContext } from '../platform/context.ts'
import type { Tx } from '../platform/store/database.ts'
import { statement } from '../platform/store/statement.ts'

/** Something that has happened. */
export interface NewEvent {
  type: EventType | typeof TEST_EVENT
  /** The hub that it is about; null where none is, and then `ownerId` says whose it is. */
  hubId: number | null
  /** The hub's owner where absent. */
  ownerId?: number
  /** The one webhook that is told of it: of a test. */
  endpointId?: string
  /**
   * The resource exactly as the API shows it, but with images by their keys: addresses are signed when somebody reads. A
   * function is called at the end of the transaction, when all that follows from the change has been written.
   */
  data: object | (() => Promise<object>)
}

/**
 * Appends an event in the transaction of the change that it tells of: both are committed, or neither is. It is written at
 * the end of the transaction; events of one transaction in the order of these calls. Returns its id.
 */
export function appendEvent(tx: Tx, { runtime }: CloudContext, event: NewEvent): string {
  const { type, hubId, ownerId, endpointId = null, data } = event
  const id = `evt_${uuidv7(runtime)}`
  tx.beforeCommit(id, async () => {
    const shown = typeof data === 'function' ? await (data as () => Promise<object>)() : data
    const row = { id, type, hubId, endpointId, data: JSON.stringify(shown), at: runtime.clock.now() }
    if (ownerId === undefined) await insertOfHub(tx.q, row)
    else await insertOfOwner(tx.q, { ...row, ownerId })
    tx.tell({ kind: 'event' })
  })
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
