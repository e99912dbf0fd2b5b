import { z } from 'zod'
import type { ErrorCode } from '../model/error-codes.ts'
import { BinNumber, Id, Timestamp } from './fields.ts'
import { DeviceStatus } from './hub-objects.ts'
import { defineRoutes } from './route.ts'

/** O §4.6, standard response. */
const controlResult = <T extends z.ZodType>(data: T) =>
  z.object({
    status: z.literal('ok'),
    result: z.object({
      success: z.boolean(),
      /** 200: executed; 202: accepted, the hub goes on with it (contract §6). */
      status_code: z.literal([200, 202]),
      response_data: data,
    }),
  })

const Door = z.enum(['closed', 'open', 'moving', 'unknown'])
const Lift = z.enum(['up', 'down', 'moving', 'unknown'])
const LockedDoor = z.enum(['locked', 'unlocked', 'open', 'unknown'])
const doorMoved = z.object({ command_id: z.uuid(), door: Door, duration_ms: z.int() })
const liftMoved = z.object({ command_id: z.uuid(), lift: Lift, duration_ms: z.int() })
const lockMoved = z.object({ command_id: z.uuid(), door: LockedDoor, duration_ms: z.int() })
const reconnected = z.object({ command_id: z.uuid(), connected: z.literal(true), duration_ms: z.int() })
/** An integrator's payment was confirmed by opening the bin reserved for its order (contract §5). */
const confirmed = z.object({ command_id: z.uuid(), order_id: Id, processing_status: z.literal(20) })
const configured = z.object({ enabled: z.boolean() })
const intake = z.object({ accepting_orders: z.boolean() })

const bin = z.object({ bin: BinNumber, hub: Id })
const fridge = z.object({ fridge: Id, hub: Id })
const hubOnly = z.object({ hub: Id })

const COMMAND = '01990000-0000-7000-8000-000000000001'
const example = (response_data: unknown, status_code: 200 | 202 = 200) => ({
  response: { status: 'ok', result: { success: true, status_code, response_data } },
})

const control = <Q extends z.ZodObject, T extends z.ZodType, const E extends readonly ErrorCode[]>(
  name: string,
  query: Q,
  data: T,
  errors: E,
  texts: { summary: string; description: string; example: unknown },
) =>
  ({
    method: 'POST',
    path: `/owners/controls/${name}`,
    interface: 'owner',
    auth: { kind: 'api', scope: 'controls:write' },
    rate: 'standard',
    query,
    hub: 'hub',
    response: controlResult(data),
    errors,
    idempotent: true,
    tag: 'Controls',
    summary: texts.summary,
    description: texts.description,
    examples: example(texts.example),
  }) as const

const ofBin = ['bin_not_found', 'hardware_error'] as const
const ofFridge = ['fridge_not_found', 'hardware_error'] as const

const neverQueued =
  'An offline hub is answered at once with `hardware_error` (502, `details.reason` `offline`); one that stays silent with 504, `details.command_id` and outcome `unknown`. Nothing is queued.'
const desired =
  'Desired state: `status_code` is 200 where the hub has it in force, 202 where the hub is offline and gets it when it returns.'

const doorExample = (door: string) => ({ command_id: COMMAND, door, duration_ms: 1204 })
const liftExample = (lift: string) => ({ command_id: COMMAND, lift, duration_ms: 2503 })

const binMotion = <T extends z.ZodType>(name: string, data: T, summary: string, moved: unknown) =>
  control(name, bin, data, ofBin, { summary, description: neverQueued, example: moved })
const binSetting = (name: string, summary: string, enabled: boolean) =>
  control(name, bin, configured, ['bin_not_found'], { summary, description: desired, example: { enabled } })
const fridgeSetting = (name: string, summary: string, enabled: boolean, description: string) =>
  control(name, fridge, configured, ['fridge_not_found'], {
    summary,
    description: `${desired} ${description}`,
    example: { enabled },
  })
const openFridge = (side: string) =>
  control(`open_fridge_${side}`, fridge, lockMoved, ofFridge, {
    summary: `Unlock a fridge's ${side} door`,
    description: `${neverQueued} It locks again by itself. Refused with reason \`interlock\` while the cabinet behind it dispenses.`,
    example: doorExample('unlocked'),
  })

/** O §4.6, contract §6. */
export const ownerControlRoutes = defineRoutes({
  'owner.controls.open_bin': control('open_bin', bin, z.union([confirmed, doorMoved]), ofBin, {
    summary: "Open a bin's door; for a bin reserved for an integrator's order, confirm its payment",
    description: `${neverQueued} On a bin that \`pay\` with \`external\` has reserved, the call records the payment, queues the order and answers with \`status_code\` 202; the bin opens by itself when the order is ready.`,
    example: doorExample('open'),
  }),
  'owner.controls.close_bin': binMotion('close_bin', doorMoved, "Close a bin's door", doorExample('closed')),
  'owner.controls.raise_bin': binMotion('raise_bin', liftMoved, "Raise a bin's lift", liftExample('up')),
  'owner.controls.lower_bin': binMotion('lower_bin', liftMoved, "Lower a bin's lift", liftExample('down')),
  'owner.controls.cycle_bin': control(
    'cycle_bin',
    bin.extend({ num_cycles: z.int().min(1).max(10) }),
    z.object({ cycles_completed: z.int() }),
    ofBin,
    {
      summary: "Open and close a bin's door so many times",
      description: `${neverQueued} Where it fails on the way, \`details.cycles_completed\` says how often it had closed.`,
      example: { cycles_completed: 3 },
    },
  ),
  'owner.controls.reconnect_bin': control('reconnect_bin', bin, reconnected, ofBin, {
    summary: "Close the serial line of a bin's controller and open it anew",
    description: `Answered when the controller has shaken hands again. ${neverQueued}`,
    example: { command_id: COMMAND, connected: true, duration_ms: 212 },
  }),
  'owner.controls.enable_bin': binSetting('enable_bin', 'Let a bin serve customers', true),
  'owner.controls.disable_bin': binSetting(
    'disable_bin',
    'Take a bin out of service; an order that is in it goes on',
    false,
  ),
  'owner.controls.toggle_bin': binSetting(
    'toggle_bin',
    'Enable a disabled bin, disable an enabled one',
    true,
  ),
  'owner.controls.get_bin_status': {
    method: 'GET',
    path: '/owners/controls/get_bin_status',
    interface: 'owner',
    auth: { kind: 'api', scope: 'controls:read' },
    rate: 'standard',
    query: bin,
    hub: 'hub',
    response: controlResult(
      z.object({
        bin_number: z.int(),
        enabled: z.boolean(),
        status: DeviceStatus,
        door: Door,
        lift: Lift,
        fault_code: z.string().nullable(),
        order_id: Id.nullable(),
        reported_at: Timestamp,
      }),
    ),
    errors: ofBin,
    tag: 'Controls',
    summary: "Read a bin's status",
    description: 'Of an offline hub what it last reported, with status `offline`.',
    examples: example({
      bin_number: 1,
      enabled: true,
      status: 'healthy',
      door: 'closed',
      lift: 'down',
      fault_code: null,
      order_id: null,
      reported_at: '2026-03-01T12:00:00.000Z',
    }),
  },
  'owner.controls.open_fridge_left': openFridge('left'),
  'owner.controls.open_fridge_right': openFridge('right'),
  'owner.controls.open_fridge_middle': openFridge('middle'),
  'owner.controls.close_fridge': control('close_fridge', fridge, lockMoved, ofFridge, {
    summary: "Lock all of a fridge's doors",
    description: `${neverQueued} Refused with reason \`interlock\` while one of them stands open.`,
    example: doorExample('locked'),
  }),
  'owner.controls.reconnect_fridge': control('reconnect_fridge', fridge, reconnected, ofFridge, {
    summary: "Close the serial line of a fridge's controller and open it anew",
    description: `Answered when the controller has shaken hands again. ${neverQueued}`,
    example: { command_id: COMMAND, connected: true, duration_ms: 212 },
  }),
  'owner.controls.enable_fridge': fridgeSetting(
    'enable_fridge',
    'Sell from a fridge again',
    true,
    'What stands in the cabinets behind its doors can be sold again.',
  ),
  'owner.controls.disable_fridge': fridgeSetting(
    'disable_fridge',
    'Take a fridge out of service',
    false,
    'Nothing in the cabinets behind its doors is sold or dispensed.',
  ),
  'owner.controls.stop_orders': control('stop_orders', hubOnly, intake, [], {
    summary: 'Take no new orders at a hub',
    description: `${desired} Orders that are under way go on.`,
    example: { accepting_orders: false },
  }),
  'owner.controls.resume_orders': control('resume_orders', hubOnly, intake, [], {
    summary: 'Take new orders again',
    description: desired,
    example: { accepting_orders: true },
  }),
})
