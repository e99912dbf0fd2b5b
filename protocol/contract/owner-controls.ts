import { z } from 'zod'
import { ServiceAction } from '../management/command.ts'
import type { FridgeSide } from '../model/hardware.ts'
import { hubCommands } from '../model/hub-commands.ts'
import { DeviceStatus, DoorPosition, LiftPosition } from '../model/hub-health.ts'
import { namedEnum } from '../model/named-enum.ts'
import {
  commandAnswer,
  commandErrors,
  commandExample,
  commandQuery,
  commandRoutes,
  commandTexts,
  control,
  controlExample,
  controlResult,
  neverQueued,
} from './command-route.ts'
import { CommandId, HubId, Id, OrderId, ProcessingStatus, Timestamp } from './fields.ts'
import { defineRoutes, type RouteEntry } from './route.ts'

const SshErrorType = namedEnum('SshErrorType', 'Cause of the failure.', {
  validation_error: 'the hub has no such bin, or the parameters are invalid.',
  connection_error: 'the hub’s management service cannot be reached.',
  authentication_error: 'the hub refuses the cloud’s key, or its host key is not the pinned one.',
  timeout: 'no answer in time; whether the change was made is unknown.',
  command_failed: 'the command failed at the hub.',
})
/** An integrator's payment was confirmed by opening the bin reserved for its order. */
const confirmed = z
  .object({
    command_id: CommandId,
    order_id: OrderId,
    processing_status: ProcessingStatus.describe('State of the order: 20 (QUEUED).'),
  })
  .meta({ id: 'PaymentConfirmed', description: 'A confirmed external payment.' })
const configured = z
  .object({ enabled: z.boolean().describe('True if the device serves customers now.') })
  .meta({ id: 'DeviceConfigured', description: 'Setting of a bin or fridge after the command.' })
const intake = z
  .object({ accepting_orders: z.boolean().describe('True if the hub takes new orders now.') })
  .meta({ id: 'OrderIntake', description: 'Intake of orders after the command.' })

const bin = commandQuery('open_bin')
const fridge = commandQuery('close_fridge')
const hubOnly = z.object({ hub: HubId })

const desired =
  'Desired state: `status_code` is 200 if the hub has applied it, 202 if the hub is offline and gets it when it reconnects.'

const binSetting = (name: string, summary: string, enabled: boolean) =>
  control(name, bin, configured, ['bin_not_found'], { summary, description: desired, example: { enabled } })
const fridgeSetting = (name: string, summary: string, enabled: boolean, description: string) =>
  control(name, fridge, configured, ['fridge_not_found'], {
    summary,
    description: `${desired} ${description}`,
    example: { enabled },
  })
const openFridge = <const Side extends FridgeSide>(side: Side) =>
  control(`open_fridge_${side}`, fridge, commandAnswer('open_fridge'), commandErrors('open_fridge'), {
    ...commandTexts(
      'open_fridge',
      'The door locks again automatically. While the cabinet behind it dispenses, the answer is `hardware_error` with reason `interlock`. Then nothing is sold behind this door for at most 45 s, so that the next call unlocks it.',
    ),
    summary: `Unlock a fridge's ${side} door`,
  })

/** O §4.6: the range of the bin is not stated; a bin that the hub does not have is a `validation_error`. */
const anyBin = z.object({
  bin: z
    .int()
    .min(0)
    .describe('Number of the bin. A bin that the hub does not have is a `validation_error` in the answer.'),
  hub: HubId,
})

const Done = z
  .object({
    status: z.literal('ok').describe('`ok`: the hub stored the change and restarted its service.'),
    result: z
      .object({
        success: z.literal(true).describe('Always true.'),
        hub_id: HubId,
        bin_number: z.int().describe('Number of the bin.'),
        enabled_bin: z
          .int()
          .describe(
            'Number of the bin that the command was for. `disabled_bins` shows whether it is enabled now.',
          ),
        disabled_bins: z
          .array(z.int())
          .describe('Numbers of all bins that the hub’s stored configuration disables now.'),
        stop_result: ServiceAction.nullable().describe(
          'Result of stopping the hub’s service; null if it was not stopped.',
        ),
        start_result: ServiceAction.nullable().describe(
          'Result of starting the hub’s service; null if it was not started.',
        ),
      })
      .describe('Result of the command.'),
  })
  .meta({ id: 'SshSetting', description: 'Success of a command over SSH.' })

const Failed = z
  .object({
    status: z.literal('error').describe('`error`: the command failed.'),
    result: z
      .object({
        success: z.literal(false).describe('Always false.'),
        error: z.string().describe('Reason as a sentence for people.'),
        error_type: SshErrorType,
        hub_id: z
          .int()
          .nullable()
          .describe('Number of the hub as it was sent; null if it was missing or no integer.'),
        bin_number: z
          .int()
          .nullable()
          .describe('Number of the bin as it was sent; null if it was missing or no integer.'),
      })
      .describe('Reason of the failure.'),
  })
  .meta({ id: 'SshFailure', description: 'Failure of a command over SSH.' })
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
      'Works while the hub’s service hangs or its MQTT connection is cut. The cloud reaches the management service on the hub over SSH. That service stores the change and restarts the hub’s service, by force if it does not stop; this takes seconds. The HTTP status is 200 in both outcomes: `status` is `ok` or `error`, `error_type` is the cause. After `timeout` the outcome is unknown.',
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
  ...commandRoutes,
  'owner.controls.open_bin': control(
    'open_bin',
    bin.extend({
      order_id: Id.optional().describe(
        'Number of the order that the caller expects the bin to be reserved for. If the bin is not reserved for it, the answer is 409 `order_state_conflict` and nothing happens. If it is left out: no check.',
      ),
      confirm: z.boolean().default(true).describe('False opens the door only and confirms no payment.'),
    }),
    z.union([confirmed, commandAnswer('open_bin')]),
    [...commandErrors('open_bin'), 'order_state_conflict'],
    {
      summary: "Open a bin's door; for a bin reserved for an integrator's order, confirm its payment",
      description: `${neverQueued} If \`pay\` with \`external\` has reserved the bin (\`reserved_for_order\`) and an API key calls, the call confirms the payment: it records the payment with the key, queues the order and answers with \`status_code\` 202. The bin opens by itself when the order is ready. With a Bearer token, with \`confirm=false\` or on any other bin the call only opens the door. If \`order_id\` is given and the bin is not reserved for that order, the answer is 409 \`order_state_conflict\` and nothing happens.`,
      example: commandExample('open_bin'),
    },
  ),
  'owner.controls.cycle_bin': control(
    'cycle_bin',
    bin.extend({ num_cycles: hubCommands.cycle_bin.parameters.cycles }),
    z.object({ cycles_completed: hubCommands.cycle_bin.result.shape.cycles_completed }),
    commandErrors('cycle_bin'),
    {
      ...commandTexts(
        'cycle_bin',
        'If it fails, `details.cycles_completed` is the number of completed cycles.',
      ),
      example: { cycles_completed: 3 },
    },
  ),
  'owner.controls.enable_bin': binSetting('enable_bin', 'Let a bin serve customers', true),
  'owner.controls.disable_bin': binSetting(
    'disable_bin',
    'Take a bin out of service; an order in it continues',
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
        bin_number: z.int().describe('Number of the bin.'),
        enabled: z.boolean().describe('True if the bin serves customers.'),
        status: DeviceStatus,
        door: DoorPosition,
        lift: LiftPosition,
        fault_code: z.string().nullable().describe('Code of the fault; null if there is none.'),
        order_id: Id.nullable().describe(
          'Number of the order whose goods are in the bin, go there or were left in it; null if there is none.',
        ),
        reserved_for_order: Id.nullable().describe(
          'Number of the order that an integrator has claimed the bin for, until its goods are in the bin; null if there is none.',
        ),
        reported_at: Timestamp.nullable().describe(
          'Time of the hub’s last report of the bin (UTC); null if it never reported one.',
        ),
      }),
    ),
    errors: commandErrors('get_bin_status'),
    summary: "Read a bin's status",
    description: 'For an offline hub: its last report, with status `offline`.',
    examples: controlExample({
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
  'owner.controls.enable_fridge': fridgeSetting(
    'enable_fridge',
    'Sell from a fridge again',
    true,
    'The products in the cabinets behind its doors are sold again.',
  ),
  'owner.controls.disable_fridge': fridgeSetting(
    'disable_fridge',
    'Take a fridge out of service',
    false,
    'Nothing in the cabinets behind its doors is sold or dispensed.',
  ),
  'owner.controls.stop_orders': control('stop_orders', hubOnly, intake, [], {
    summary: 'Take no new orders at a hub',
    description: `${desired} Orders in progress continue.`,
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
