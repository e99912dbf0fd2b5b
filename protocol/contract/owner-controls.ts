import { z } from 'zod'
import { ServiceAction } from '../management/command.ts'
import type { ErrorCode } from '../model/error-codes.ts'
import { DeviceStatus } from '../mqtt/session.ts'
import { BinNumber, Id, Timestamp } from './fields.ts'
import { defineRoutes, type RouteEntry } from './route.ts'

/** O §4.6, standard response. */
const controlResult = <T extends z.ZodType>(data: T) =>
  z.object({
    status: z.literal('ok'),
    result: z.object({
      success: z.boolean(),
      /** 200: executed; 202: accepted, the hub goes on with it. */
      status_code: z.literal([200, 202]),
      response_data: data,
    }),
  })

const Door = z.enum(['closed', 'open', 'moving', 'unknown'])
const Lift = z.enum(['up', 'down', 'moving', 'unknown'])
const LockedDoor = z.enum(['locked', 'unlocked', 'open', 'unknown']).meta({ id: 'DoorLock' })
const doorMoved = z.object({ command_id: z.uuid(), door: Door, duration_ms: z.int() })
const liftMoved = z.object({ command_id: z.uuid(), lift: Lift, duration_ms: z.int() })
const lockMoved = z.object({ command_id: z.uuid(), door: LockedDoor, duration_ms: z.int() })
const reconnected = z.object({ command_id: z.uuid(), connected: z.literal(true), duration_ms: z.int() })
/** An integrator's payment was confirmed by opening the bin reserved for its order. */
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
    at: `POST /owners/controls/${name}`,
    query,
    response: controlResult(data),
    errors,
    idempotent: true,
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

/** O §4.6: the range of the bin is not stated; a bin that the hub does not have is a `validation_error`. */
const anyBin = z.object({ bin: z.int().min(0), hub: Id })

const Done = z
  .object({
    status: z.literal('ok'),
    result: z.object({
      success: z.literal(true),
      hub_id: z.int(),
      bin_number: z.int(),
      /** The bin that the command was for; whether it is enabled now, `disabled_bins` says. */
      enabled_bin: z.int(),
      /** Every bin that the hub's stored configuration disables now. */
      disabled_bins: z.array(z.int()),
      stop_result: ServiceAction.nullable(),
      start_result: ServiceAction.nullable(),
    }),
  })
  .meta({ id: 'SshSetting' })

const Failed = z
  .object({
    status: z.literal('error'),
    result: z.object({
      success: z.literal(false),
      error: z.string(),
      error_type: z.enum([
        'validation_error',
        'connection_error',
        'authentication_error',
        'timeout',
        'command_failed',
      ]),
      /** As sent; null where it was missing or no integer. */
      hub_id: z.int().nullable(),
      bin_number: z.int().nullable(),
    }),
  })
  .meta({ id: 'SshFailure' })
export type SshFailure = z.infer<typeof Failed>

export const sshFailure = (
  error_type: SshFailure['result']['error_type'],
  error: string,
  place: { hub_id: number | null; bin_number: number | null },
): SshFailure => ({ status: 'error', result: { success: false, error, error_type, ...place } })

const integerOf = (text: string | undefined): number | null => {
  const value = /^\d+$/.test(text ?? '') ? Number(text) : NaN
  return Number.isSafeInteger(value) ? value : null
}

const overSsh = (name: 'enable_bin_ssh' | 'disable_bin_ssh', summary: string, enabled: boolean) =>
  ({
    at: `POST /owners/controls/${name}`,
    query: anyBin,
    response: z.discriminatedUnion('status', [Done, Failed]),
    /** O §4.6: 200 in both outcomes. */
    invalidBody: (given, message) =>
      sshFailure('validation_error', message, {
        hub_id: integerOf(given['hub']),
        bin_number: integerOf(given['bin']),
      }),
    idempotent: true,
    summary,
    description:
      "Works while the hub's service hangs or its MQTT is cut: the management service on the hub, reached by SSH, stores the change and restarts the hub's service, by force where it does not end by itself. Takes as long as that does (seconds). Status 200 in both outcomes: `status` says which. `error_type`: `validation_error` (no such bin at the hub, or invalid parameters), `connection_error`, `authentication_error` (the hub refuses the cloud's key, or its host key is not the pinned one), `timeout` (nobody knows yet whether it was done), `command_failed`. `enabled_bin` is the bin that the command was for; `disabled_bins` says whether it is enabled now.",
    examples: {
      response: {
        status: 'ok',
        result: {
          success: true,
          hub_id: 1,
          bin_number: 2,
          enabled_bin: 2,
          disabled_bins: enabled ? [] : [2],
          stop_result: { exit_code: 0, duration_ms: 140, output: 'the edge ended' },
          start_result: { exit_code: 0, duration_ms: 820, output: 'the edge runs as process 4711' },
        },
      },
    },
  }) as const satisfies RouteEntry

/** Both ways to a hub's bins, over MQTT and over SSH. */
const shared = {
  interface: 'owner',
  auth: { kind: 'api', scope: 'controls:write' },
  rate: 'standard',
  hub: 'hub',
  tag: 'Controls',
} as const

/** O §4.6. */
export const ownerControlRoutes = defineRoutes(shared, {
  'owner.controls.open_bin': control(
    'open_bin',
    bin.extend({
      /** The order that the caller believes the bin is reserved for; any other is `order_state_conflict`. */
      order_id: Id.optional(),
      /** `false` opens the door and confirms no payment. */
      confirm: z.boolean().default(true),
    }),
    z.union([confirmed, doorMoved]),
    [...ofBin, 'order_state_conflict'],
    {
      summary: "Open a bin's door; for a bin reserved for an integrator's order, confirm its payment",
      description: `${neverQueued} If \`pay\` with \`external\` has reserved the bin (\`reserved_for_order\`) and an API key calls, the call confirms the payment: it records the payment with the key, queues the order and answers with \`status_code\` 202. The bin opens by itself when the order is ready. With a Bearer token, with \`confirm=false\` or on any other bin the call only opens the door. If \`order_id\` is given and the bin is not reserved for that order, the answer is 409 \`order_state_conflict\` and nothing happens.`,
      example: doorExample('open'),
    },
  ),
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
    at: 'GET /owners/controls/get_bin_status',
    auth: { kind: 'api', scope: 'controls:read' },
    query: bin,
    response: controlResult(
      z.object({
        bin_number: z.int(),
        enabled: z.boolean(),
        status: DeviceStatus,
        door: Door,
        lift: Lift,
        fault_code: z.string().nullable(),
        order_id: Id.nullable(),
        /** The order for which an integrator's claim reserves the bin, until its goods are in the bin; else null. */
        reserved_for_order: Id.nullable(),
        /** Null where the hub has never said anything of it. */
        reported_at: Timestamp.nullable(),
      }),
    ),
    errors: ofBin,
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
      reserved_for_order: null,
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
  'owner.controls.enable_bin_ssh': overSsh('enable_bin_ssh', 'Enable a bin over SSH', true),
  'owner.controls.disable_bin_ssh': overSsh('disable_bin_ssh', 'Disable a bin over SSH (maintenance)', false),
})
