import { z } from 'zod'
import { OrderStatus } from '../../../protocol/model/order-status.ts'
import { ApiError } from '../../platform/api-error.ts'
import type { Handlers } from '../../platform/http/handler.ts'
import { parseBins, readOwnOrder, type OrderRow } from '../../commerce/orders/order-rows.ts'
import { type ControlServices, hardwareError, hardwareReason, sendAudited } from './control.ts'

/** `CommandResult.data` of `open_delivery` (SPEC §6). */
const Results = z.object({
  results: z.array(
    z.object({ bin_number: z.int().min(1).max(4), success: z.boolean(), error: z.string().nullable() }),
  ),
})

/** C §4.2: a customer at the hub opens the bins of a ready order. */
export const deliveryHandlers = (services: ControlServices): Handlers<'consumer.orders.open_delivery'> => ({
  async 'consumer.orders.open_delivery'({ params, query, credential, requestName }) {
    const order = await readOwnOrder(services.context.db.kysely, {
      orderId: params.order_id,
      userId: params.user_id,
      hubId: query.hub_id,
    })
    const bins = chooseBins(order, query)
    const outcome = await sendAudited(services, {
      hubId: order.hub_id,
      body: { name: 'open_delivery', order_id: order.uuid, bins },
      object: `order-${order.id}`,
      actor: credential.actor,
      requestName,
    })
    switch (outcome.kind) {
      case 'executed': {
        const { results } = Results.catch({ results: all(bins, null) }).parse(outcome.data)
        return { success: results.every((bin) => bin.success), order_id: order.id, results }
      }
      case 'offline':
        throw new ApiError('hub_offline')
      case 'refused':
        // The hub's state takes precedence: there the order is not ready, or is already collected.
        if (outcome.reason === 'not_found' || outcome.reason === 'too_late')
          throw new ApiError('order_not_ready')
        if (outcome.reason === 'interlock') throw doorMoves()
        throw hardwareError(outcome)
      case 'timeout':
        throw hardwareError(outcome)
      case 'failed': {
        const { results } = Results.catch({ results: all(bins, hardwareReason(outcome)) }).parse(outcome.data)
        if (results.every((bin) => bin.error === 'interlock')) throw doorMoves()
        if (!results.some((bin) => bin.success)) throw hardwareError(outcome)
        return { success: false, order_id: order.id, results }
      }
    }
  },
})

/** A moving door is no fault: the customer tries again when it stops. */
const doorMoves = (): ApiError =>
  new ApiError('order_state_conflict', "The bin's door is moving. Try again in a few seconds.", {
    reason: 'interlock',
  })

/** The bins that the request names, or all bins of the order. */
function chooseBins(order: OrderRow, query: { bin_nums?: string | undefined; bin_num?: number | undefined }) {
  if (order.processing_status !== OrderStatus.READY && order.processing_status !== OrderStatus.COLLECTING)
    throw new ApiError('order_not_ready')
  const own = parseBins(order.bins)
  const asked = [
    ...(query.bin_nums?.split(',').map(Number) ?? []),
    ...(query.bin_num === undefined ? [] : [query.bin_num]),
  ]
  const named = [...new Set(asked)]
  const foreign = named.filter((bin) => !own.includes(bin))
  if (foreign.length > 0)
    throw ApiError.at(
      ['query', foreign.includes(query.bin_num!) ? 'bin_num' : 'bin_nums'],
      'bin_not_in_order',
      { bins: foreign },
    )
  const chosen = named.length > 0 ? named : own
  if (chosen.length === 0) throw new ApiError('order_not_ready')
  return chosen
}

const all = (bins: readonly number[], error: string | null) =>
  bins.map((bin_number) => ({ bin_number, success: error === null, error }))
