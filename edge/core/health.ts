import type { BinHealth, DeviceStatus, HubHealth } from '../../protocol/mqtt/session.ts'
import type { z } from 'zod'
import { isFaulty, viewBins, type BinView } from './bins/bin-view.ts'
import type { Context } from './context.ts'
import type { Doors } from '../hardware/doors.ts'
import { binDevice } from './layout.ts'
import { isUsable } from './controllers.ts'

/** What the hub says of itself in its heartbeat. */
export function healthOf(context: Context, doors: Doors): HubHealth {
  const { journal, layout, devices, outbox } = context
  const config = journal.meta.config()
  const bins = viewBins(context)
  const isIntakeOpen = journal.meta.isLive() && config?.accepting_orders === true
  return {
    accepting_orders:
      isIntakeOpen && !outbox.isLedgerFull() && bins.some((bin) => bin.enabled && bin.up && !isFaulty(bin)),
    bins: bins.map((bin) => binHealth(context, bin)),
    fridges: layout.fridges.map(({ number }) => {
      const enabled = !(config?.disabled_fridges ?? []).includes(number)
      const up = isUsable(context, `fridge-${number}`)
      const celsius = devices.fridge(number).celsius
      return {
        fridge_number: number,
        enabled,
        status: statusOf({
          enabled,
          up,
          faulty: journal.alarms.isRaised('fridge_warm', `fridge-${number}`),
          known: celsius !== undefined,
        }),
        temperature: celsius ?? null,
      }
    }),
    doors: doors.health(),
    unknown_operations: journal.operations.unknown().length,
  }
}

export function binHealth({ devices, layout }: Context, bin: BinView): z.infer<typeof BinHealth> {
  const connected = devices.isUp(layout.controllerOf(binDevice(bin.number)) ?? '')
  return {
    bin_number: bin.number,
    enabled: bin.enabled,
    status: statusOf({
      enabled: bin.enabled,
      up: connected,
      faulty: isFaulty(bin),
      known: bin.door !== 'unknown' && bin.lift !== 'unknown',
    }),
    door: bin.door,
    lift: bin.lift,
    occupied: bin.occupied ?? null,
    fault_code: isFaulty(bin) ? bin.fault : null,
    order_id: bin.orderId,
  }
}

function statusOf(device: {
  enabled: boolean
  up: boolean
  faulty: boolean
  known: boolean
}): z.infer<typeof DeviceStatus> {
  if (!device.up) return 'offline'
  if (!device.enabled) return 'maintenance'
  if (device.faulty) return 'fault'
  return device.known ? 'healthy' : 'unknown'
}
