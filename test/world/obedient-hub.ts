import { commandRow } from '../../protocol/model/hub-commands.ts'
import { Command } from '../../protocol/mqtt/command.ts'
import type { HubHealth } from '../../protocol/model/hub-health.ts'
import { downTopic, upTopic } from '../../protocol/mqtt/topics.ts'
import type { OpenTransport, TransportHandlers } from '../../protocol/mqtt/transport.ts'

/**
 * The broker and hub 1, which is silent until it is connected and then executes every command at once. It
 * serves tests of the interface, not of a hub (`plant.ts`).
 */
export interface ScriptedHub {
  openTransport: OpenTransport
  /** Connects the broker and the hub. */
  connect(session: string, health: HubHealth): void
}

export function scriptedHub(): ScriptedHub {
  let handlers: TransportHandlers | undefined
  let known: { session: string; health: HubHealth } | undefined

  const beat = (): void =>
    handlers!.onMessage(upTopic(1, 'heartbeat'), JSON.stringify({ ...known, monotonic: 1 }))

  function carryOut({ command_id, session, body }: Command): void {
    const brought = broughtBy(body)
    const result = { command_id, session, outcome: 'executed', reason: null, data: brought ?? null }
    handlers!.onMessage(upTopic(1, 'result'), JSON.stringify(result))
  }

  function broughtBy(body: Command['body']): unknown {
    if (body.name === 'get_bin_status')
      return known!.health.bins.find(({ bin_number }) => bin_number === body.bin)
    if (body.name === 'open_delivery')
      return { results: body.bins.map((bin_number) => ({ bin_number, success: true, error: null })) }
    return commandRow(body.name).example
  }

  return {
    openTransport(_, given) {
      handlers = given
      return {
        publish(topic, payload) {
          if (topic === downTopic(1, 'command'))
            queueMicrotask(() => carryOut(Command.parse(JSON.parse(payload))))
          // The cloud asks a hub that was silent for a while for its clock.
          if (topic === downTopic(1, 'hail') && known) queueMicrotask(beat)
          return Promise.resolve(true)
        },
        close() {},
      }
    },
    connect(session, health) {
      known = { session, health }
      handlers!.onConnect()
      beat()
    },
  }
}
