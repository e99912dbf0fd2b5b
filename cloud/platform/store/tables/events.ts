import { eventTypes, TEST_EVENT } from '../../../../protocol/model/event-types.ts'
import { defineTable, flag, id, instant, int, oneOf, text } from '../table.ts'

/** What happened, for integrators (`cloud/events`). */
export const eventTables = {
  /** Written in the transaction of what happened, and never changed but for `position`, which is given once. */
  events: defineTable({
    /** The order in which rows were written. What was written by one transaction and by a later one comes in that order. */
    seq: id,
    /** `evt_<UUIDv7>` */
    id: text.unique.fixed,
    type: oneOf([...eventTypes, TEST_EVENT]).fixed,
    owner_id: int.references('owners').fixed,
    /** Null where no hub is concerned. */
    hub_id: int.references('hubs').nullable.fixed,
    /** The one webhook that is told of it: of a test, which is in no list. Null for all others. */
    endpoint_id: text.nullable.fixed,
    /** JSON: the resource as the API shows it, with images by their keys. */
    data: text.fixed,
    created_at: instant.fixed,
    /** Its place among all events, given after its commit (`events/publish.ts`); nobody is told of it before. */
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
    /** JSON arrays: `["*"]` or types; hubs, all of the owner's where it is empty. */
    event_types: text,
    hub_ids: text,
    state: oneOf(['enabled', 'disabled']),
    disabled_reason: oneOf(['gone', 'failing']).nullable,
    /**
     * `whsec_…`, as its receiver has it. It is no digest like that of an API key, which is only compared: the service signs with
     * it. Nobody is shown it after its creation.
     */
    secret: text,
    /** Former secrets that still sign (`FormerSecret`), as JSON, the latest first; null if there is none. */
    former_secrets: text.nullable,
    /** Since when no delivery has succeeded; null where the last one has. */
    failing_since: instant.nullable,
    created_at: instant.fixed,
  }).index('webhook_endpoints_by_owner', ['owner_id', 'id']),
  /** What webhooks are told of, each event once for each. It goes with its event, and with its webhook. */
  webhook_deliveries: defineTable({
    /** `dlv_…`: in the order of their events. */
    id: text.primaryKey.fixed,
    endpoint_id: text.references('webhook_endpoints', { onDelete: 'cascade' }).fixed,
    event_seq: int.references('events', { column: 'seq', onDelete: 'cascade' }).fixed,
    state: oneOf(['pending', 'delivered', 'failed']),
    /** `Attempt`s as JSON, the latest ones. */
    attempts: text,
    /** Of these, how many since it was asked for. */
    tries: int.check('>= 0'),
    next_attempt_at: instant.nullable,
  })
    .index('webhook_deliveries_by_endpoint', ['endpoint_id', 'id'])
    .index('webhook_deliveries_by_event', ['event_seq']),
  /** What was told last of a hub's own state, so that only what differs is told (`operations/hubs/hub-events.ts`). */
  hub_told: defineTable({
    hub_id: int.primaryKey.references('hubs').fixed,
    online: flag,
    /** `ToldState` as JSON. */
    state: text,
  }),
  /** One row: the last position that was given. */
  event_head: defineTable({ id: oneOf([1]).primaryKey, last: int }),
}
