import { z } from 'zod'
import { Id, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** `settled`: it was, and how is not known here (the cloud was restored to a time before). */
export const operationStates = ['unknown', 'happened', 'not_happened', 'settled'] as const

/** An operation of which its hub could not learn whether it happened, or what was learned in the end (I1). */
export const Operation = z
  .object({
    id: z.uuid(),
    hub_id: Id,
    /** `cabinet-2`, `bin-1`. */
    device: z.string(),
    /** `dispense`, `open_door`, `raise_lift`, … */
    action: z.string(),
    state: z.enum(operationStates),
    /** For which it was. */
    order_id: Id.nullable(),
    started_at: Timestamp,
    /** When it was settled. */
    ended_at: Timestamp.nullable(),
    /** `hub`: by whatever is not known here. */
    settled_by: z.enum(['sensor', 'count', 'person', 'hub']).nullable(),
  })
  .meta({ id: 'Operation' })
export type Operation = z.infer<typeof Operation>

const OPERATION = {
  id: '01990000-0000-7000-8000-000000000002',
  hub_id: 1,
  device: 'cabinet-2',
  action: 'dispense',
  state: 'happened',
  order_id: 9990,
  started_at: '2026-03-01T12:00:00.000Z',
  ended_at: '2026-03-01T12:20:00.000Z',
  settled_by: 'person',
}

/** What hubs did, or did not: nobody knows, until a sensor, a count or a person says. */
export const ownerOperationRoutes = defineRoutes(
  {
    interface: 'owner',
    auth: { kind: 'api', scope: 'controls:write' },
    rate: 'standard',
    tag: 'Controls',
  },
  {
    'owner.operations.list': {
      at: 'GET /owners/operations',
      auth: { kind: 'api', scope: 'controls:read' },
      query: z.object({
        hub_id: Id.optional().describe(
          'Only this hub. If it is left out: every hub that the credential reaches.',
        ),
        /** All where absent. */
        state: z.enum(operationStates).optional(),
        limit: z.int().min(1).max(100).default(20),
        cursor: z.string().max(64).optional(),
      }),
      hub: 'hub_id',
      response: z.object({
        data: z.array(Operation),
        next_cursor: z.string().nullable(),
        has_more: z.boolean(),
      }),
      errors: ['invalid_cursor'],
      summary: 'Operations of unknown outcome, newest first',
      description:
        'Each is an actuation of which the hub could not learn whether it happened: a unit that was sent for and that no sensor saw fall, a motion whose controller lost its memory. The hub never repeats one by itself, and its row gives nothing until a sensor, a count or a person settles it. With `state=unknown`, those that wait for that.',
    },
    'owner.operations.settle': {
      at: 'POST /owners/operations/{operation_id}/settle',
      params: z.object({ operation_id: z.string().max(64) }),
      body: z.strictObject({ happened: z.boolean() }),
      response: Operation,
      errors: ['operation_not_found', 'operation_settled', 'hardware_error'],
      idempotent: true,
      summary: 'Say whether an operation happened',
      description:
        'The hub does it as its own page does: a unit that fell leaves the stock, and its row is sold from again. Settling it the same way again answers 200 and changes nothing; otherwise it is `operation_settled`. An offline hub is answered at once with `hardware_error` (502, `details.reason` `offline`), one that stays silent with 504: asking again is safe. Where the hub knows the operation no more, because its store is new, the operation is settled here alone: count its row.',
      examples: { body: { happened: true }, response: OPERATION },
    },
  },
)
