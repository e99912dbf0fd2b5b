import { eventTypes, TEST_EVENT } from '../../../../protocol/model/event-types.ts'
import { defineTable, flag, growing, id, instant, int, oneOf, text } from '../table.ts'

/** Events for integrators (`cloud/events`). */
export const eventTables = {
  /** Inserted in the transaction of the change. Only `position` changes later, once. */
  events: defineTable({
    /** Insertion order. The rows of a transaction precede those of any later transaction. */
    seq: id,
    /** `evt_<UUIDv7>` */
    id: text.unique.fixed,
    type: growing([...eventTypes, TEST_EVENT]).fixed,
    owner_id: int.references('owners').fixed,
    /** Null if the event concerns no hub. */
    hub_id: int.references('hubs').nullable.fixed,
    /** The only webhook that receives it: a test, which no list contains. Null for all others. */
    endpoint_id: text.nullable.fixed,
    /** JSON: the resource as in the API, with image keys instead of addresses. */
    data: text.fixed,
    created_at: instant.fixed,
    /**
     * Its position among all events, assigned after its commit (`events/publish.ts`). It is delivered only after that.
     */
    position: int.unique.nullable,
  })
    .index('events_by_owner', ['owner_id', 'position'], 'position is not null')
    .index('events_unpublished', ['seq'], 'position is null')
    .index('events_by_age', ['created_at']),
  webhook_endpoints: defineTable({
    /** `we_<UUIDv7>` */
    id: text.primaryKey.fixed,
    owner_id: int.references('owners').fixed,
    url: text,
    description: text.nullable,
    /** JSON arrays: `["*"]` or types; hubs. An empty list of hubs: all of the owner's. */
    event_types: text,
    hub_ids: text,
    state: oneOf(['enabled', 'disabled']),
    disabled_reason: oneOf(['gone', 'failing']).nullable,
    /**
     * `whsec_…`, as its receiver has it. It is no digest, because the service signs with it. API keys are only
     * compared. The API shows it only at creation.
     */
    secret: text,
    /** Former secrets that still sign (`FormerSecret`), as JSON, the latest first; null if there is none. */
    former_secrets: text.nullable,
    /** Since when every delivery has failed. Null after a success. */
    failing_since: instant.nullable,
    created_at: instant.fixed,
  }).index('webhook_endpoints_by_owner', ['owner_id', 'id']),
  /** Deliveries, one per event and webhook. Deleted with the event or the webhook. */
  webhook_deliveries: defineTable({
    /** `dlv_…`, sorted like their events. */
    id: text.primaryKey.fixed,
    endpoint_id: text.references('webhook_endpoints', { onDelete: 'cascade' }).fixed,
    event_seq: int.references('events', { column: 'seq', onDelete: 'cascade' }).fixed,
    state: oneOf(['pending', 'delivered', 'failed']),
    /** JSON: the latest `Attempt`s. */
    attempts: text,
    /** Attempts since the delivery was requested. */
    tries: int.check('>= 0'),
    next_attempt_at: instant.nullable,
  })
    .index('webhook_deliveries_by_endpoint', ['endpoint_id', 'id'])
    .index('webhook_deliveries_by_event', ['event_seq']),
  /** The last published state of a hub. Only differences are published (`operations/hubs/hub-events.ts`). */
  hub_told: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    online: flag,
    /** `PublishedState` as JSON. */
    state: text,
  }),
  /** One row: the last assigned position. */
  event_head: defineTable({ id: oneOf([1]).primaryKey, last: int }),
}
