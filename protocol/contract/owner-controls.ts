import { z } from 'zod'
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
const doorMoved = z.object({ command_id: z.uuid(), door: Door, duration_ms: z.int() })
const liftMoved = z.object({ command_id: z.uuid(), lift: Lift, duration_ms: z.int() })
/** An integrator's payment was confirmed by opening the bin reserved for its order (contract §5). */
const confirmed = z.object({ command_id: z.uuid(), order_id: Id, processing_status: z.literal(20) })

const query = z.object({ bin: BinNumber, hub: Id })
const errors = ['bin_not_found', 'hardware_error'] as const

const actuation = <T extends z.ZodType>(name: string, data: T, summary: string, description: string) =>
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
    summary,
    description,
  }) as const

const neverQueued =
  'An offline hub is answered at once with `hardware_error` (502, `details.reason` `offline`); one that stays silent with 504, `details.command_id` and outcome `unknown`. Nothing is queued.'

/** O §4.6, contract §6. */
export const ownerControlRoutes = defineRoutes({
  'owner.controls.open_bin': actuation(
    'open_bin',
    z.union([confirmed, doorMoved]),
    "Open a bin's door; for a bin reserved for an integrator's order, confirm its payment",
    `${neverQueued} On a bin that \`pay\` with \`external\` has reserved, the call records the payment, queues the order and answers with \`status_code\` 202; the bin opens by itself when the order is ready.`,
  ),
  'owner.controls.close_bin': actuation('close_bin', doorMoved, "Close a bin's door", neverQueued),
  'owner.controls.raise_bin': actuation('raise_bin', liftMoved, "Raise a bin's lift", neverQueued),
  'owner.controls.lower_bin': actuation('lower_bin', liftMoved, "Lower a bin's lift", neverQueued),
  'owner.controls.get_bin_status': {
    method: 'GET',
    path: '/owners/controls/get_bin_status',
    interface: 'owner',
    auth: { kind: 'api', scope: 'controls:read' },
    rate: 'standard',
    query,
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
    errors,
    tag: 'Controls',
    summary: "Read a bin's status",
  },
})
