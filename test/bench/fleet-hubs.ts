import { mqttTransport } from '../../edge/sync/mqtt-transport.ts'
import { defaultSyncSettings } from '../../protocol/settings/hub-limits.ts'
import { systemRuntime } from '../../protocol/system-runtime.ts'
import { createMemoryHub } from '../world/memory-hub.ts'
import type { FleetOrder, FleetState } from './fleet.ts'

/**
 * The hubs' process of `fleet.ts`: a number of hubs, each with the real sync over real MQTT and an outbox in
 * memory. Arguments: number, the broker's URL, the password of every hub, and the time between two heartbeats.
 */
const [count, url, password, heartbeatMs = defaultSyncSettings.heartbeatMs] = process.argv.slice(2)
const runtime = systemRuntime()
const hubs = Array.from({ length: Number(count) }, (_, index) => {
  const hubId = index + 1
  const user = `hub-${hubId}`
  return createMemoryHub({
    hubId,
    runtime,
    openTransport: mqttTransport({ urls: [url!], user, password: password!, runtime }),
    settings: { ...defaultSyncSettings, heartbeatMs: Number(heartbeatMs) },
  })
})

function state(): FleetState {
  const { user, system } = process.cpuUsage()
  return {
    welcomed: hubs.filter(({ sync }) => sync.state().phase === 'welcomed').length,
    pending: hubs.reduce((sum, hub) => sum + hub.pending(), 0),
    cpuMs: (user + system) / 1000,
  }
}

process.on('message', (order: FleetOrder) => {
  if (order.type === 'start') for (const { sync } of hubs) sync.start()
  if (order.type === 'report')
    for (const hub of hubs)
      hub.report(
        ...Array.from({ length: order.entries }, (_, n) => ({
          kind: 'local',
          at: runtime.clock.now(),
          action: 'count_row',
          subject: `row 1/1/${n}`,
          outcome: 'executed',
        })),
      )
  process.send!(state())
})
process.once('disconnect', () => process.exit(0))
