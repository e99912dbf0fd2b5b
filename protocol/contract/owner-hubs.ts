import { z } from 'zod'
import { DeviceStatus } from '../mqtt/session.ts'
import { Id, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** `inactive`: never heard of. `paused`: it takes no orders. */
export const HubStatus = z.enum(['active', 'paused', 'maintenance', 'inactive']).meta({ id: 'HubStatus' })
export type HubStatus = z.infer<typeof HubStatus>

/** O §2. */
export const HubSummary = z
  .object({
    id: Id,
    name: z.string(),
    street_address_1: z.string(),
    street_address_2: z.string().nullable(),
    city: z.string(),
    state: z.string(),
    hub_status: HubStatus,
  })
  .meta({ id: 'HubSummary' })
export type HubSummary = z.infer<typeof HubSummary>

/** O §2, hub health. A hub that was never heard has no heartbeat, and no temperature is known before it is read. */
export const HubHealthReport = z
  .object({
    hub_id: Id,
    online: z.boolean(),
    last_heartbeat: Timestamp.nullable(),
    bins: z.array(
      z
        .object({
          bin_number: z.int(),
          enabled: z.boolean(),
          status: DeviceStatus,
          /** Whether something is in the bin, or an order goes there; null if the hub does not know. */
          occupied: z.boolean().nullable(),
          /** The order whose goods are in the bin or go there, or were left in it; null if there is none. */
          order_id: Id.nullable(),
          /** The order for which an integrator's claim reserves the bin, until its goods are in the bin; else null. */
          reserved_for_order: Id.nullable(),
        })
        .meta({ id: 'BinHealth' }),
    ),
    fridges: z.array(
      z
        .object({
          fridge_number: z.int(),
          enabled: z.boolean(),
          temperature: z.number().nullable(),
          status: DeviceStatus,
        })
        .meta({ id: 'FridgeHealth' }),
    ),
    door_status: z.enum(['closed', 'open', 'unknown']),
    network_status: z.enum(['connected', 'degraded', 'disconnected']),
  })
  .meta({ id: 'HubHealthReport' })
export type HubHealthReport = z.infer<typeof HubHealthReport>

/** How warm a fridge was over five minutes, in degrees Celsius. */
export const TemperatureSpan = z
  .object({
    fridge: z.int(),
    /** When the five minutes began. */
    at: Timestamp,
    min: z.number(),
    mean: z.number(),
    max: z.number(),
    samples: z.int(),
  })
  .meta({ id: 'TemperatureSpan' })
export type TemperatureSpan = z.infer<typeof TemperatureSpan>

/** O §2, hub info. */
export const HubInfo = HubSummary.extend({
  success: z.literal(true),
  postal_code: z.string(),
  /** GeoJSON: longitude, latitude. */
  geojson_location: z.object({ type: z.literal('Point'), coordinates: z.tuple([z.number(), z.number()]) }),
  /** IANA zone name. */
  timezone: z.string(),
}).meta({ id: 'HubInfo' })

const ofHub = { query: z.object({ hub_id: Id }), hub: 'hub_id' } as const

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
    },
    'owner.hubs.ids': {
      at: 'GET /owners/hub_ids',
      validated: 'private',
      response: z.array(Id),
      summary: 'List the ids of the hubs to which the credential has access',
      examples: { response: [1, 2] },
    },
    'owner.hubs.info': {
      at: 'GET /owners/hubs/get_hub_info/',
      validated: 'private',
      ...ofHub,
      response: HubInfo,
      summary: 'A hub with its place and its time zone',
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
        layout: z.record(
          z.string(),
          z.object({ shelves: z.array(z.object({ shelf_number: z.int(), total_rows: z.int() })) }),
        ),
      }),
      summary: "The shelves of a hub's cabinets, and their rows; by cabinet number",
      examples: { response: { layout: { 1: { shelves: [{ shelf_number: 1, total_rows: 6 }] } } } },
    },
    'owner.hubs.door_status': {
      at: 'GET /owners/get_door_status/',
      ...ofHub,
      response: z.object({
        door_status: z.array(
          z.object({ door: z.string(), status: z.enum(['locked', 'unlocked', 'open', 'unknown']) }),
        ),
        order_status: z.object({ has_pending_orders: z.boolean() }),
      }),
      summary: 'The main door and the doors of the fridges, and whether an order is in progress',
      description:
        'Doors are `main` and `fridge_<n>_left`, `_middle`, `_right`. Of an offline hub they are `unknown`.',
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
      response: z.object({ success: z.literal(true), data: z.null(), message: z.string() }),
      errors: ['order_in_progress', 'hardware_error'],
      idempotent: true,
      summary: "Unlock a hub's main door",
      description:
        'It locks again by itself. An offline hub is answered at once with `hardware_error` (502, `details.reason` `offline`); one that stays silent with 504, `details.command_id` and outcome `unknown`. Nothing is queued.',
      examples: {
        response: {
          success: true,
          data: null,
          message: 'The main door is unlocked. It locks again by itself.',
        },
      },
    },
    'owner.hubs.fridge_map': {
      at: 'GET /owners/fridge_door_cabinet_map/',
      validated: 'private',
      ...ofHub,
      response: z.object({
        data: z.record(z.string(), z.object({ left: z.int(), middle: z.int(), right: z.int() })),
      }),
      summary: "The cabinets on which the doors of a hub's fridges give; by fridge number",
      examples: { response: { data: { 1: { left: 1, middle: 2, right: 3 } } } },
    },
    'owner.hubs.temperatures': {
      at: 'GET /owners/hubs/temperatures',
      query: z.object({
        hub_id: Id,
        fridge: z.int().min(1).optional(),
        from: Timestamp.optional(),
        to: Timestamp.optional(),
      }),
      hub: 'hub_id',
      errors: ['fridge_not_found'],
      response: z.array(TemperatureSpan),
      alsoProduces: 'text/csv',
      summary: "How warm a hub's fridges were, five minutes by five minutes",
      description:
        'The last day where `from` and `to` do not say otherwise, at most 31 days, oldest first; the running five minutes are among them. `Accept: text/csv` gives a table. Kept for a year.',
      examples: {
        response: [{ fridge: 1, at: '2026-11-20T14:30:00.000Z', min: 3.8, mean: 3.94, max: 4.1, samples: 5 }],
      },
    },
    'owner.hubs.health': {
      at: 'GET /owners/hubs/get_hub_health/',
      ...ofHub,
      response: HubHealthReport,
      summary: "A hub's health: bins, fridges, main door, network",
      description:
        '`online` means that the hub was heard of within 90 s. What it is made of is shown before it has ever connected. Of an offline hub the devices are `offline`, and what is offline has no temperature.',
    },
  },
)
