import { z } from 'zod'
import { DeviceStatus, DoorLock, DoorPosition, LiftPosition } from '../model/hub-health.ts'
import { namedEnum } from '../model/named-enum.ts'
import { MAX_RECORDS } from '../mqtt/diagnosis.ts'
import { DayOrTime, Id, Timestamp, HubId, Message } from './fields.ts'
import { defineRoutes } from './route.ts'

export const HubStatus = namedEnum(
  'HubStatus',
  'State of the hub: the first one that holds, in reverse order of this list.',
  {
    active: 'the hub sells.',
    paused: 'the hub takes no new orders.',
    maintenance: 'the hub is in maintenance.',
    inactive: 'the hub was never connected.',
    retired: 'the hub is out of service for good.',
  },
)
export type HubStatus = z.infer<typeof HubStatus>

const MainDoor = namedEnum('MainDoor', 'State of the main door.', {
  closed: 'the door is closed.',
  open: 'the door is open.',
  unknown: 'the hub is offline or does not know.',
})

const NetworkStatus = namedEnum('NetworkStatus', 'State of the connection between hub and cloud.', {
  connected: 'the hub is connected.',
  degraded: 'the hub is connected, and its messages arrive late.',
  disconnected: 'the hub is not connected.',
})

/** O §2. */
export const HubSummary = z
  .object({
    id: HubId,
    name: z.string().describe('Name of the hub.'),
    street_address_1: z.string().describe('Street and number.'),
    street_address_2: z.string().nullable().describe('Second line of the address; null if there is none.'),
    city: z.string().describe('City.'),
    state: z.string().describe('State or province.'),
    hub_status: HubStatus,
  })
  .meta({ id: 'HubSummary', description: 'A hub with its address and state.' })
export type HubSummary = z.infer<typeof HubSummary>

/** O §2, hub health. A hub that was never heard has no heartbeat, and no temperature is known before it is read. */
export const HubHealthReport = z
  .object({
    hub_id: HubId,
    online: z
      .boolean()
      .describe(
        'True if the hub has reported within the last 90 seconds (the operator can change this time).',
      ),
    last_heartbeat: Timestamp.nullable().describe(
      'Time of the last heartbeat (UTC); null if the hub was never connected.',
    ),
    bins: z
      .array(
        z
          .object({
            bin_number: z.int().describe('Number of the bin.'),
            enabled: z.boolean().describe('True if the bin serves customers.'),
            status: DeviceStatus,
            occupied: z
              .boolean()
              .nullable()
              .describe(
                'True if something is in the bin, or an order is on its way there; null if the hub does not know.',
              ),
            order_id: Id.nullable().describe(
              'Number of the order whose goods are in the bin, go there or were left in it; null if there is none.',
            ),
            reserved_for_order: Id.nullable().describe(
              'Number of the order that an integrator has claimed the bin for, until its goods are in the bin; null if there is none.',
            ),
          })
          .meta({ id: 'BinHealth', description: 'State of a bin.' }),
      )
      .describe('Bins of the hub.'),
    fridges: z
      .array(
        z
          .object({
            fridge_number: z.int().describe('Number of the fridge.'),
            enabled: z.boolean().describe('True if the fridge sells.'),
            temperature: z
              .number()
              .nullable()
              .describe('Temperature in degrees Celsius; null if the fridge is offline or was not read yet.'),
            status: DeviceStatus,
          })
          .meta({ id: 'FridgeHealth', description: 'State of a fridge.' }),
      )
      .describe('Fridges of the hub.'),
    door_status: MainDoor,
    network_status: NetworkStatus,
  })
  .meta({ id: 'HubHealthReport', description: 'Health of a hub: bins, fridges, main door and network.' })
export type HubHealthReport = z.infer<typeof HubHealthReport>

/** How warm a fridge was over five minutes, in degrees Celsius. */
export const TemperatureSpan = z
  .object({
    fridge: z.int().describe('Number of the fridge.'),
    at: Timestamp.describe('Start of the five minutes (UTC).'),
    min: z.number().describe('Lowest temperature in degrees Celsius.'),
    mean: z.number().describe('Mean temperature in degrees Celsius.'),
    max: z.number().describe('Highest temperature in degrees Celsius.'),
    samples: z.int().describe('Number of readings.'),
  })
  .meta({ id: 'TemperatureSpan', description: 'Temperatures of a fridge over five minutes.' })
export type TemperatureSpan = z.infer<typeof TemperatureSpan>

const BinMotion = z
  .object({
    bin_number: z.int().describe('Number of the bin.'),
    door: DoorPosition,
    lift: LiftPosition,
    fault_code: z.string().nullable().describe('Code of the fault; null if there is none.'),
    reported_at: Timestamp.nullable().describe(
      'Time of the hub’s last report (UTC); null if it never reported one.',
    ),
  })
  .meta({ id: 'BinMotion', description: 'Door and lift of a bin.' })

const HubLogRecord = z
  .object({
    at: Timestamp.describe('Time of the record by the clock of the hub (UTC).'),
    level: namedEnum('HubLogLevel', 'Level of a log record.', {
      info: 'an ordinary step.',
      warn: 'the hub continues, but a person may want to know.',
      error: 'something failed.',
    }),
    message: z.string().describe('Sentence for people.'),
    fields: z.record(z.string(), z.unknown()).describe('Further fields of the record.'),
  })
  .meta({ id: 'HubLogRecord', description: 'A record of the log of a hub.' })
export type HubLogRecord = z.infer<typeof HubLogRecord>

/** O §2, hub info. */
export const HubInfo = HubSummary.extend({
  success: z.literal(true).describe('Always true.'),
  postal_code: z.string().describe('Postal code.'),
  geojson_location: z
    .object({
      type: z.literal('Point').describe('Always `Point`.'),
      coordinates: z.tuple([z.number(), z.number()]).describe('Longitude, then latitude, in degrees.'),
    })
    .describe('Position of the hub as a GeoJSON point.'),
  timezone: z.string().describe('IANA name of the time zone, such as `America/Chicago`.'),
}).meta({ id: 'HubInfo', description: 'A hub with its address, position and time zone.' })

const ofHub = { query: z.object({ hub_id: HubId }), hub: 'hub_id' } as const

/** O §4.1. */
export const ownerHubRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'hubs:read' }, rate: 'standard', tag: 'Hubs' },
  {
    'owner.hubs.list': {
      at: 'GET /owners/hubs',
      validated: 'private',
      rate: 'low',
      response: z.array(HubSummary),
      summary: 'List the hubs to which the credential has access',
      description:
        'In the order of their numbers. `get_hub_info` has the position and the time zone of one hub.',
    },
    'owner.hubs.ids': {
      at: 'GET /owners/hub_ids',
      validated: 'private',
      response: z.array(Id),
      summary: 'List the ids of the hubs to which the credential has access',
      description: 'The same hubs as in `GET /api/v1/owners/hubs`.',
      examples: { response: [1, 2] },
    },
    'owner.hubs.info': {
      at: 'GET /owners/hubs/get_hub_info/',
      validated: 'private',
      ...ofHub,
      response: HubInfo,
      summary: 'Read a hub with its address, position and time zone',
      description:
        'The answer carries an `ETag`: a repeated call with `If-None-Match` is 304 while nothing has changed.',
      examples: {
        response: {
          success: true,
          id: 1,
          name: 'Central Station',
          street_address_1: '1 Station Square',
          street_address_2: null,
          city: 'Springfield',
          state: 'IL',
          hub_status: 'active',
          postal_code: '62701',
          geojson_location: { type: 'Point', coordinates: [-89.6501, 39.7817] },
          timezone: 'America/Chicago',
        },
      },
    },
    'owner.hubs.layout': {
      at: 'GET /owners/hubs/hub_layout/',
      validated: 'private',
      ...ofHub,
      response: z.object({
        layout: z
          .record(
            z.string(),
            z.object({
              shelves: z
                .array(
                  z.object({
                    shelf_number: z.int().describe('Number of the shelf in its cabinet.'),
                    total_rows: z.int().describe('Number of rows on the shelf.'),
                  }),
                )
                .describe('Shelves of the cabinet, from the first.'),
            }),
          )
          .describe('Cabinets by their numbers.'),
      }),
      summary: 'Read the shelves and rows of a hub’s cabinets',
      description: 'A place is written as cabinet, shelf and row: `2/1/4`.',
      examples: { response: { layout: { 1: { shelves: [{ shelf_number: 1, total_rows: 6 }] } } } },
    },
    'owner.hubs.door_status': {
      at: 'GET /owners/get_door_status/',
      ...ofHub,
      response: z.object({
        door_status: z
          .array(
            z.object({
              door: z
                .string()
                .describe('Name of the door: `main`, or `fridge_<n>_left`, `_middle`, `_right`.'),
              status: DoorLock,
            }),
          )
          .describe('Doors of the hub.'),
        order_status: z
          .object({
            has_pending_orders: z
              .boolean()
              .describe('True if an order is in progress (QUEUED to COLLECTING).'),
          })
          .describe('Orders of the hub.'),
      }),
      summary: 'Read the state of the main door and of the fridges’ doors',
      description:
        'Doors are `main` and `fridge_<n>_left`, `_middle`, `_right`. The doors of an offline hub are `unknown`. The answer also reports whether an order is in progress.',
      examples: {
        response: {
          door_status: [
            { door: 'main', status: 'locked' },
            { door: 'fridge_1_left', status: 'locked' },
          ],
          order_status: { has_pending_orders: false },
        },
      },
    },
    'owner.hubs.request_door_open': {
      at: 'POST /owners/request_door_open/',
      ...ofHub,
      auth: { kind: 'api', scope: 'hubs:write' },
      response: z.object({
        success: z.literal(true).describe('Always true.'),
        data: z.null().describe('Always null.'),
        message: Message,
      }),
      errors: ['order_in_progress', 'hardware_error'],
      idempotent: true,
      summary: 'Unlock a hub’s main door',
      description:
        'The door locks again automatically. If the hub is offline, the answer is `hardware_error` at once (502, `details.reason` `offline`). If the hub does not answer in time, it is 504 with `details.command_id`, and the outcome is unknown. Nothing is queued.',
      examples: {
        response: {
          success: true,
          data: null,
          message: 'The main door is unlocked. It locks again automatically.',
        },
      },
    },
    'owner.hubs.fridge_map': {
      at: 'GET /owners/fridge_door_cabinet_map/',
      validated: 'private',
      ...ofHub,
      response: z.object({
        data: z
          .record(
            z.string(),
            z.object({
              left: z.int().describe('Number of the cabinet behind the left door.'),
              middle: z.int().describe('Number of the cabinet behind the middle door.'),
              right: z.int().describe('Number of the cabinet behind the right door.'),
            }),
          )
          .describe('Fridges by their numbers.'),
      }),
      summary: 'Read which cabinets are behind the doors of a hub’s fridges',
      description: 'A disabled or warm fridge stops the sale from these cabinets.',
      examples: { response: { data: { 1: { left: 1, middle: 2, right: 3 } } } },
    },
    'owner.hubs.temperatures': {
      at: 'GET /owners/hubs/temperatures',
      query: z.object({
        hub_id: HubId,
        fridge: z
          .int()
          .min(1)
          .optional()
          .describe('Only this fridge. If it is left out: all fridges of the hub.'),
        from: DayOrTime.describe(
          'First day in the hub’s time zone, or time (inclusive). If it is left out: one day before `to`.',
        ),
        to: DayOrTime.describe(
          'Last day in the hub’s time zone, or time (exclusive). If it is left out: now.',
        ),
      }),
      hub: 'hub_id',
      formerOwners: true,
      errors: ['fridge_not_found'],
      response: z.array(TemperatureSpan),
      alsoProduces: 'text/csv',
      summary: 'Read the temperatures of a hub’s fridges in steps of five minutes',
      description:
        'The default is the last day; at most 31 days, oldest first, the running five minutes included. `Accept: text/csv` returns a table. Temperatures are kept for a year.',
      examples: {
        response: [{ fridge: 1, at: '2026-11-20T14:30:00.000Z', min: 3.8, mean: 3.94, max: 4.1, samples: 5 }],
      },
    },
    'owner.hubs.bins': {
      at: 'GET /owners/hubs/bins',
      ...ofHub,
      response: z.array(BinMotion),
      summary: 'Read the doors and lifts of a hub’s bins, as the hub reported them last',
      description:
        'The service does not ask the hub: `get_bin_status` does. `reported_at` is the time of the report. The doors of an offline hub are `unknown`.',
      examples: {
        response: [
          {
            bin_number: 1,
            door: 'closed',
            lift: 'down',
            fault_code: null,
            reported_at: '2026-11-20T14:30:00.000Z',
          },
        ],
      },
    },
    'owner.hubs.logs': {
      at: 'GET /owners/hubs/logs',
      query: z.object({
        hub_id: HubId,
        minutes: z.int().min(1).max(10_080).default(60).describe('Age of the oldest record in minutes.'),
        limit: z.int().min(1).max(MAX_RECORDS).default(1000).describe('Maximum number of records.'),
      }),
      hub: 'hub_id',
      rate: 'payment',
      response: z.object({
        data: z.array(HubLogRecord).describe('The newest records, oldest first.'),
      }),
      errors: ['hardware_error'],
      summary: 'Read the newest records of a hub’s log',
      description:
        'The service asks the hub, as `larder hubs logs` does. The answer has at most 1 MiB, no debug records and no secrets. The hub keeps some hours. An owner reads no record from before the hub was moved to that owner. An offline hub is `hardware_error` at once (502, `details.reason` `offline`); a hub that has not sent its log within 40 seconds is 504. An answer that cannot be read is 502 with `details.reason` `fault`. Each call has an audit record.',
      examples: {
        response: {
          data: [
            {
              at: '2026-11-20T14:30:00.000Z',
              level: 'info',
              message: 'order 17 is ready',
              fields: { order_id: 17 },
            },
          ],
        },
      },
    },
    'owner.hubs.health': {
      at: 'GET /owners/hubs/get_hub_health/',
      ...ofHub,
      response: HubHealthReport,
      summary: 'Read the health of a hub: bins, fridges, main door, network',
      description:
        '`online` is true if the hub has reported within 90 seconds. A new hub shows its configured bins and fridges. The devices of an offline hub are `offline`, and their temperature is null.',
    },
  },
)
