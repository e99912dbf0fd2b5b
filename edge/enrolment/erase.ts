import { rmSync } from 'node:fs'
import type { Log } from '../../protocol/model/log.ts'
import type { Clock } from '../../protocol/model/runtime.ts'
import { problemOf } from '../../protocol/model/system-error.ts'
import { parseMessage } from '../../protocol/mqtt/parse-message.ts'
import { Erase, MAX_ERROR, type Erased, type NextCell } from '../../protocol/mqtt/session.ts'
import { parseDownTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { MqttTransport, OpenTransport } from '../../protocol/mqtt/transport.ts'
import { desiredFile } from '../desired/desired-states.ts'
import { enrolmentFiles, nextKey } from './enrolment.ts'

/** Removes the secrets of a board: its certificate and key, the settings of the cloud, the tokens and logins of its page. */
export function eraseSecrets(store: string): void {
  const { enrolment, attempt, key, certificate, ca } = enrolmentFiles(store)
  const ofPage = ['token', 'people', 'sessions'].map((name) => `${store}.${name}`)
  // The board counts as enrolled while the first file exists.
  for (const path of [enrolment, attempt, key, nextKey(key), certificate, ca, desiredFile(store), ...ofPage])
    rmSync(path, { force: true })
}

/** Time between two attempts of the same move. */
const MOVE_AGAIN_MS = 600_000

export interface ErasingOptions {
  hubId: number
  store: string
  clock: Clock
  log: Log
  /** Enrols this board in another cell, beside its present enrolment. */
  move: (to: NextCell) => Promise<{ hub_id: number }>
  restart: () => void
}

/** Connections on which the cloud can order a retired or revoked board to erase its secrets, or to move (MQTT SPEC §2). */
export function erasing(
  { hubId, store, clock, log, move, restart }: ErasingOptions,
  open: OpenTransport,
): OpenTransport {
  let isMoving = false
  /** The order that failed last. The cloud repeats an order with each hello. */
  let failed: { order: string; at: number } | undefined
  return (options, handlers) => {
    const confirm = (answer: Erased): Promise<boolean> =>
      transport.publish(upTopic(hubId, 'erased'), JSON.stringify(answer))

    function erase(): void {
      try {
        eraseSecrets(store)
      } catch (error) {
        // The cloud orders it again when it receives the next message.
        return log.error({ error: String(error) }, 'the secrets of this board could not be erased')
      }
      log.warn({}, 'the cloud has retired or revoked this board: its secrets are erased')
      void confirm({}).then(restart)
    }

    async function moveTo(next: NextCell): Promise<void> {
      const order = JSON.stringify(next)
      const isTooEarly = failed?.order === order && clock.monotonic() - failed.at < MOVE_AGAIN_MS
      if (isMoving || isTooEarly) return
      isMoving = true
      try {
        const { hub_id } = await move(next)
        log.warn({ cloud: next.cloud, as: hub_id }, 'this board moves to another cell')
        // Without the confirmation the board stays: the former cloud would wait for it, and orders the move again.
        if (await confirm({ hub_id })) restart()
      } catch (error) {
        failed = { order, at: clock.monotonic() }
        log.error({ cloud: next.cloud, error: problemOf(error) }, 'this board could not move to another cell')
        await confirm({ error: problemOf(error).slice(0, MAX_ERROR) })
      } finally {
        isMoving = false
      }
    }

    const transport: MqttTransport = open(options, {
      ...handlers,
      onMessage(topic, payload) {
        if (parseDownTopic(hubId, topic) !== 'erase') return handlers.onMessage(topic, payload)
        const order = Erase.safeParse(parseMessage(payload))
        if (!order.success)
          return log.warn({ error: order.error.message }, 'an order of the cloud is damaged')
        if (order.data.next) void moveTo(order.data.next)
        else erase()
      },
    })
    return transport
  }
}
