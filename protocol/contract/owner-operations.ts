import { z } from 'zod'
import { valuesIn, namedEnum } from '../model/named-enum.ts'
import { Id, Timestamp, HubId, Limit, Cursor, NextCursor, HasMore, HubFilter } from './fields.ts'
import { defineRoutes } from './route.ts'

export const operationStates = ['unknown', 'happened', 'not_happened', 'settled'] as const

const OperationState = z.enum(operationStates).meta({
  id: 'OperationState',
  description: valuesIn('Outcome of the motion.', {
    unknown: 'the hub could not determine whether it happened.',
    happened: 'it happened.',
    not_happened: 'it did not happen.',
    settled:
      'it was resolved at the hub; the cloud does not know how (the cloud was restored to a time before).',
  } satisfies Record<(typeof operationStates)[number], string>),
})
const OperationResolver = namedEnum('OperationResolver', 'What resolved the operation.', {
  sensor: 'a sensor.',
  count: 'a count of the row.',
  person: 'a person.',
  hub: 'the hub; the cloud does not know by what.',
})

/** A motion with an unknown outcome, and its resolution (I1). */
export const Operation = z
  .object({
    id: z.uuid().describe('UUID of the operation.'),
    hub_id: HubId,
    device: z.string().describe('Controller that executed it, such as `cabinet-2` or `bin-1`.'),
    action: z.string().describe('Motion, such as `dispense`, `open_door` or `raise_lift`.'),
    state: OperationState,
    order_id: Id.nullable().describe('Number of the order that it was for; null if it was for none.'),
    started_at: Timestamp.describe('Time at which the hub started it (UTC).'),
    ended_at: Timestamp.nullable().describe('Time at which it was resolved (UTC); null while it is unknown.'),
    settled_by: OperationResolver.nullable().describe(
      'The way in which it was resolved; null while it is unknown.',
    ),
  })
  .meta({ id: 'Operation', description: 'A motion of a hub with an unknown or resolved outcome.' })
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

/** Motions with an unknown outcome, until a sensor, a count or a person resolves them. */
export const ownerOperationRoutes = defineRoutes(
  {
    interface: 'owner',
    auth: { kind: 'api', scope: 'controls:write' },
    rate: 'standard',
    tag: 'Operations',
  },
  {
    'owner.operations.list': {
      at: 'GET /owners/operations',
      auth: { kind: 'api', scope: 'controls:read' },
      query: z.object({
        hub_id: HubFilter,
        state: OperationState.optional().describe(
          'Only operations in this state. If it is left out: all states.',
        ),
        limit: Limit,
        cursor: Cursor,
      }),
      hub: 'hub_id',
      response: z.object({
        data: z.array(Operation).describe('Operations, newest first.'),
        next_cursor: NextCursor,
        has_more: HasMore,
      }),
      errors: ['invalid_cursor'],
      summary: 'List operations of unknown outcome, newest first',
      description:
        'The hub could not learn whether these motions happened: a unit that no sensor saw fall, or a motion whose controller lost its memory. The hub never repeats such a motion, and its row dispenses nothing until a sensor, a count or a person resolves it. `state=unknown` lists the operations that wait for a result.',
    },
    'owner.operations.settle': {
      at: 'POST /owners/operations/{operation_id}/settle',
      params: z.object({ operation_id: z.string().max(64).describe('Id of the operation.') }),
      body: z.strictObject({
        happened: z.boolean().describe('True if the motion happened, for example if the unit fell.'),
      }),
      response: Operation,
      errors: ['operation_not_found', 'operation_settled', 'hardware_error'],
      idempotent: true,
      summary: 'Report whether an operation happened',
      description:
        'The hub books it as its own page does: a unit that fell leaves the stock, and the row sells again. The same answer again is 200 and changes nothing; the opposite answer is 409 `operation_settled`. If the hub is offline, the answer is `hardware_error` at once (502, `details.reason` `offline`); if it does not answer in time, 504. The call can be repeated. If the hub does not know the operation any more, because its store is new, it is resolved in the cloud only: count the row.',
      examples: { body: { happened: true }, response: OPERATION },
    },
  },
)
