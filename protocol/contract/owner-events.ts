import { z } from 'zod'
import { eventTypes } from '../model/event-types.ts'
import { eventData } from './event-data.ts'
import { Id, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** `order.timed_out` → `OrderTimedOutEvent`. */
const nameOf = (type: string): string =>
  `${type.replaceAll(/(?:^|[._])([a-z])/g, (_, letter: string) => letter.toUpperCase())}Event`

const [first, ...others] = eventTypes.map((type) =>
  z
    .object({
      id: z.string(),
      type: z.literal(type),
      created_at: Timestamp,
      /** Null where no hub is concerned. */
      hub_id: Id.nullable(),
      /** The resource, as the interface shows it elsewhere, when this had happened. */
      data: eventData[type],
    })
    .meta({ id: nameOf(type) }),
)

/** Something that happened. */
export const Event = z.discriminatedUnion('type', [first!, ...others]).meta({ id: 'Event' })
export type Event = z.infer<typeof Event>

/** Which events of those that the credential reaches; all where absent. */
const filters = {
  hub_id: Id.optional().describe('Only this hub. If it is left out: every hub that the credential reaches.'),
  /** Repeated. */
  types: z.array(z.enum(eventTypes)).max(50).optional(),
}

/** What happens to an owner's hubs, orders and stock. */
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
        /** The id of the last event that is known. */
        after: z.string().max(64).optional(),
        limit: z.int().min(1).max(100).default(20),
      }),
      hub: 'hub_id',
      response: z.object({
        data: z.array(Event),
        /** The last id given: a poller goes on from it. Null where there has been none. */
        next_cursor: z.string().nullable(),
        has_more: z.boolean(),
      }),
      errors: ['invalid_cursor'],
      summary: 'What happened, oldest first',
      description:
        'Events are kept for 30 days. `data` is the resource as its own endpoint shows it: an order as its customer sees it, a bin or fridge as in the hub health, the health of a hub, a product of the inventory with its `hub_id`, a redemption with its `deal_id`. With `after`, what came after that event; where it is unknown, or no longer kept, the answer is `invalid_cursor`. A credential that is limited to hubs sees what concerns those.',
    },
    'owner.events.stream': {
      at: 'GET /owners/events/stream',
      query: z.object(filters),
      hub: 'hub_id',
      response: z.instanceof(ReadableStream<Uint8Array>),
      message: Event,
      produces: 'text/event-stream',
      summary: 'What happens, as server-sent events',
      description:
        "Each message is an event as the list has it; its id is the event's. `Last-Event-ID` goes on after that event and misses none; where it is no longer kept, the stream begins with the oldest that is, after a comment that says so. Without it the stream begins now. A comment every 15 s keeps the connection alive. A reader that takes nothing for long is cut off, and every stream is ended after a while: go on with `Last-Event-ID`, as browsers do.",
    },
  },
)
