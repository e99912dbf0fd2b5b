import type { Log } from '../../protocol/model/log.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { MAX_ERROR, NextCell } from '../../protocol/mqtt/session.ts'
import { parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { isThere } from '../is-there.ts'
import { enrolmentFiles } from './enrolment.ts'

/**
 * A move to another cell (MQTT SPEC §2), in the order of its files:
 *
 * 1. This file takes the order. The hub checks whether it may leave (`reason-to-stay.ts`).
 * 2. `move.ts` enrols the board there, beside its present enrolment. The hub stays in service, and reports the result.
 * 3. The cloud retires the hub, and orders it to leave (`leave.ts`). The hub checks again, asks the next cell whether it still takes it,
 *    and reports why it must wait.
 * 4. The next start changes journal and enrolment (`complete-move.ts`).
 * 5. The board reports to the former cell that it has left (`farewell.ts`).
 */

/** The steps 2 and 3 share it. */
export interface MoveState {
  /** Only one runs at a time: an enrolment revokes the earlier certificate there. */
  step?: 'enrols' | 'asks' | undefined
  /** The order that failed last. The cloud repeats an order until it has the answer; the other cell is not asked again. */
  failed?: { order: number; error: string } | undefined
  /** Why the retired hub has not left yet. */
  waits?: string | undefined
  /** The last answer of the next cell, if it did not take the hub with this certificate. It counts until then, in monotonic time. */
  refused?: { certificate: string; reason: string; until: number } | undefined
}

export interface MovingOptions {
  hubId: number
  store: string
  log: Log
  state: MoveState
  /** Why the hub must stay now; undefined if it may leave. */
  reasonToStay: () => string | undefined
  /** Enrols this board in another cell, beside its present enrolment. A repetition with the same code changes nothing. */
  enrol: (next: NextCell) => Promise<unknown>
}

/** Connections on which the cloud can order a hub to move, or a retired hub that has not left to enrol again. */
export function moving(
  { hubId, store, log, state, reasonToStay, enrol }: MovingOptions,
  open: OpenTransport,
): OpenTransport {
  /** The highest number of an order. A lower one was replaced by the operator. */
  let latest = -Infinity

  async function attempt(next: NextCell): Promise<string | undefined> {
    if (state.failed?.order === next.order) return state.failed.error
    try {
      const reason = reasonToStay()
      if (reason !== undefined) return reason
      await enrol(next)
      state.failed = undefined
      state.waits = undefined
      state.refused = undefined
      // Time has passed.
      return reasonToStay()
    } catch (error) {
      state.failed = { order: next.order, error: problemOf(error).slice(0, MAX_ERROR) }
      return state.failed.error
    }
  }

  return (options, handlers) => {
    async function take(next: NextCell): Promise<void> {
      if (next.order < latest) return log.warn({ order: next.order }, 'an outdated order to move is ignored')
      latest = next.order
      // The cloud repeats its order.
      if (state.step !== undefined) return
      const { order, hub_id, cloud } = next
      if (isThere(enrolmentFiles(store).moving))
        return log.warn({ order }, 'an order to move is ignored: this board leaves for another cell')
      state.step = 'enrols'
      const error = await attempt(next)
      state.step = undefined
      if (error === undefined) log.info({ cloud, as: hub_id }, 'this board is enrolled in another cell')
      else log.warn({ cloud, as: hub_id, error }, 'this board does not move to another cell')
      await transport.publish(upTopic(hubId, 'moved'), JSON.stringify({ order, hub_id, error }))
    }

    const transport: MqttTransport = open(options, {
      ...handlers,
      onMessage(topic, payload) {
        if (parseDownTopic(hubId, topic) !== 'move') return handlers.onMessage(topic, payload)
        const order = NextCell.safeParse(parseMessage(payload))
        if (order.success)
          take(order.data).catch((error: unknown) =>
            // The cloud repeats its order.
            log.error({ error: problemOf(error) }, 'an order to move to another cell is not answered'),
          )
        else log.warn({ error: order.error.message }, 'an order of the cloud is damaged')
      },
    })
    return transport
  }
}
