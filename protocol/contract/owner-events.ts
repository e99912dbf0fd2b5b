import { z } from 'zod'
import { eventTypes } from '../model/event-types.ts'
import { eventData, eventMeanings, EventTypeName } from './event-data.ts'
import { Timestamp, HubIdOrNull, Limit, HasMore, HubFilter } from './fields.ts'
import { defineRoutes } from './route.ts'

/** `order.timed_out` → `OrderTimedOutEvent`. */
const nameOf = (type: string): string =>
  `${type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`

const [first, ...others] = eventTypes.map((type) =>
  z
    .object({
      id: z.string().describe('Id of the event: `evt_` and a UUIDv7.'),
      type: z.literal(type).describe('Type of the event.'),
      created_at: Timestamp.describe('Time of the event (UTC).'),
      hub_id: HubIdOrNull,
      data: eventData[type].describe('Resource as its own endpoint shows it, at the time of the event.'),
    })
    .meta({ id: nameOf(type), description: `Event \`${type}\`: ${eventMeanings[type]}` }),
)

/** One change of a hub, an order or the stock. */
export const Event = z
  .discriminatedUnion('type', [first!, ...others])
  .meta({ id: 'Event', description: 'An event; `type` decides the schema of `data`.' })
export type Event = z.infer<typeof Event>

/** Filters of events; without them every event that the credential reaches. */
const filters = {
  hub_id: HubFilter,
  types: z
    .array(EventTypeName)
    .max(50)
    .optional()
    .describe('Only events of these types. Repeat the parameter for several. If it is left out: all types.'),
}

/** Changes of an owner's hubs, orders and stock. */
export const ownerEventRoutes = defineRoutes(
  {
    interface: 'owner',
    auth: { kind: 'api', scope: 'events:read' },
    rate: 'standard',
    tag: 'Events',
  },
  {
    'owner.events.list': {
      at: 'GET /owners/events',
      query: z.object({
        ...filters,
        after: z
          .string()
          .max(64)
          .optional()
          .describe(
            'Id of the last event that the caller has. If it is left out: from the oldest event that is kept.',
          ),
        limit: Limit,
      }),
      hub: 'hub_id',
      formerOwners: true,
      response: z.object({
        data: z.array(Event).describe('Events, oldest first.'),
        next_cursor: z
          .string()
          .nullable()
          .describe(
            'Id of the last event of the answer, for `after` of the next call; null if there was no event yet.',
          ),
        has_more: HasMore,
      }),
      errors: ['invalid_cursor'],
      summary: 'List events, oldest first',
      description:
        'Events are kept for 30 days. `data` is the resource as its own endpoint shows it: an order as its customer sees it, a bin or fridge as in the hub health, a product of the inventory with its `hub_id`, a redemption with its `deal_id`. An unknown or expired `after` is 400 `invalid_cursor`. A credential that is limited to hubs sees the events of these hubs.',
    },
    'owner.events.stream': {
      at: 'GET /owners/events/stream',
      query: z.object(filters),
      hub: 'hub_id',
      formerOwners: true,
      response: z.instanceof(ReadableStream<Uint8Array>),
      message: Event,
      produces: 'text/event-stream',
      summary: 'Follow events live, as server-sent events',
      description:
        'Each message is an event as the list shows it; its id is the event’s id. `Last-Event-ID` continues after that event without a gap. If that event is no longer kept, the stream starts with the oldest one after a comment. Without `Last-Event-ID` the stream starts with the next event. A comment every 15 s keeps the connection alive. The service closes the stream of a reader that reads nothing for long, and every stream after a while: connect again with `Last-Event-ID`, as browsers do.',
    },
  },
)
