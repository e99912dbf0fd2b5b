import { sql, type Selectable } from 'kysely'
import type { Operation, ownerOperationRoutes } from '../../../protocol/contract/owner-operations.ts'
import { holdsWithin } from '../../../protocol/model/runtime.ts'
import { settleOperation } from '../../commerce/catalogue/apply-operations.ts'
import { ApiError } from '../../platform/api-error.ts'
import { appendAudit } from '../../platform/audit/audit.ts'
import { timestamp, timestampOrNull } from '../../platform/calendar/days.ts'
import type { OwnerCredential } from '../../platform/credentials/credential.ts'
import { isPlaceOfHub } from '../../platform/credentials/hub-access.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { pageOf } from '../../platform/http/lists.ts'
import type { Queries } from '../../platform/store/database.ts'
import { numbersIn } from '../../platform/store/recordset.ts'
import type { Tables } from '../../platform/store/schema.ts'
import { alarmUnknownOperations } from '../alarms/hub-alarms.ts'
import { type ControlServices, hardwareError, sendAudited } from './control.ts'

/** The wait for a hub's report that it has resolved an operation, in milliseconds. */
const REPORT_MS = 1500

/** Operations with an unknown outcome (I1), and their manual resolution. */
export function operationHandlers(services: ControlServices): Handlers<keyof typeof ownerOperationRoutes> {
  const q = services.context.db.kysely

  return {
    async 'owner.operations.list'({ credential, query: { hub_id: hubId, state, limit, cursor } }) {
      let found = rows(q, credential)
      if (cursor !== undefined) {
        const known = await rows(q).where('o.operation_id', '=', cursor).executeTakeFirst()
        if (!known || !(await isPlaceOfHub(q, credential, known.hub_id)))
          throw new ApiError('invalid_cursor', 'The cursor is not an operation.')
        const { started_at, operation_id } = known
        found = found.where(sql<boolean>`(o.started_at, o.operation_id) < (${started_at}, ${operation_id})`)
      }
      if (hubId !== undefined) found = found.where('o.hub_id', '=', hubId)
      if (state !== undefined) found = found.where(isIn[state])
      const page = await found
        .orderBy('o.started_at', 'desc')
        .orderBy('o.operation_id', 'desc')
        .limit(limit + 1)
        .execute()
      return pageOf(page.map(viewOperation), limit, ({ id }) => id)
    },

    async 'owner.operations.settle'({ credential, params: { operation_id: id }, body, requestName }) {
      const { happened } = body
      const { actor } = credential
      const before = await find(q, credential, id)
      if (before.settled_at === null) await settleFromAfar(services, before, happened, { actor, requestName })
      const after = await find(q, credential, id)
      if (after.happened !== (happened ? 1 : 0)) throw new ApiError('operation_settled')
      return viewOperation(after)
    },
  }
}

/**
 * Sends a manual resolution to the hub. If the hub no longer has the operation, only the cloud's books store
 * it.
 */
export async function settleFromAfar(
  services: ControlServices,
  { hub_id: hubId, operation_id: operationId }: Pick<OperationRow, 'hub_id' | 'operation_id'>,
  happened: boolean,
  { actor, requestName }: { actor: string; requestName: string | undefined },
): Promise<void> {
  const { context } = services
  const { db, runtime } = context
  const body = { name: 'settle_operation', operation_id: operationId, happened } as const
  const outcome = await sendAudited(services, { hubId, body, actor, requestName })
  const isForgotten = outcome.kind === 'refused' && outcome.reason === 'not_found'
  if (outcome.kind === 'executed' || isForgotten)
    return db.transact(async (tx) => {
      // The hub's ledger will soon contain the same; until then the next reader must find it here.
      await settleOperation(tx, hubId, { operationId, by: 'person', happened, at: runtime.clock.now() })
      if (!isForgotten) return
      // No report of the hub clears this alarm.
      alarmUnknownOperations(tx, context, hubId)
      await appendAudit(tx.q, runtime, {
        actor,
        action: 'controls.settle_operation',
        hubId,
        object: `operation-${operationId}`,
        result: 'executed',
        detail: { happened, by: 'cloud' },
      })
    })
  if (outcome.kind !== 'refused' || outcome.reason !== 'too_late') throw hardwareError(outcome)
  await holdsWithin(runtime.clock, REPORT_MS, async () => {
    const row = await rows(db.kysely)
      .where('o.hub_id', '=', hubId)
      .where('o.operation_id', '=', operationId)
      .executeTakeFirst()
    return row?.happened !== null
  })
}

type OperationRow = Selectable<Tables['unknown_operations']>

/**
 * Lists operations. A credential limits them to the hubs that it reaches. The new owner of a moved hub sees its unresolved
 * operations, and operations resolved since the move.
 */
function rows(q: Queries, credential?: Pick<OwnerCredential, 'ownerId' | 'hubs'>) {
  let found = q.selectFrom('unknown_operations as o').selectAll('o')
  if (credential === undefined) return found
  const { ownerId, hubs } = credential
  if (ownerId !== null || hubs !== '*')
    found = found.where('o.hub_id', 'in', (eb) =>
      eb
        .selectFrom('hubs')
        .select('hubs.id')
        .where((row) =>
          row.and([
            ...(ownerId === null ? [] : [row('hubs.owner_id', '=', ownerId)]),
            row.or([row('o.settled_at', 'is', null), row('hubs.owned_since', '<=', row.ref('o.settled_at'))]),
          ]),
        ),
    )
  if (hubs !== '*') found = found.where('o.hub_id', 'in', numbersIn(q, hubs))
  return found
}

async function find(q: Queries, credential: OwnerCredential, id: string): Promise<OperationRow> {
  const row = await rows(q, credential).where('o.operation_id', '=', id).executeTakeFirst()
  if (!row) throw new ApiError('operation_not_found')
  return row
}

const isIn: Record<Operation['state'], ReturnType<typeof sql<boolean>>> = {
  unknown: sql<boolean>`o.settled_at is null`,
  happened: sql<boolean>`o.happened = 1`,
  not_happened: sql<boolean>`o.happened = 0`,
  settled: sql<boolean>`o.settled_at is not null and o.happened is null`,
}

function stateOf({ settled_at, happened }: OperationRow): Operation['state'] {
  if (happened !== null) return happened === 1 ? 'happened' : 'not_happened'
  return settled_at === null ? 'unknown' : 'settled'
}

/** An operation as its owner sees it. */
export const viewOperation = (row: OperationRow): Operation => ({
  id: row.operation_id,
  hub_id: row.hub_id,
  device: row.device,
  action: row.action,
  state: stateOf(row),
  order_id: row.order_id,
  started_at: timestamp(row.started_at),
  ended_at: timestampOrNull(row.settled_at),
  settled_by: row.settled_by,
})
