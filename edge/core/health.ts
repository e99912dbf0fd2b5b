import type { Cancel } from '../../protocol/model/runtime.ts'
import type { BinHealth, DeviceStatus, HubHealth } from '../../protocol/model/hub-health.ts'
import type { z } from 'zod'
import { fridgeSubject } from '../../protocol/model/subject.ts'
import { viewBins, type BinView } from './bins/bin.ts'
import { isUsable, type Context } from './context.ts'
import { readingOf, shutFridges } from './fridges.ts'
import { binDevice } from './layout.ts'
import { isAlarmRaised } from './ledger.ts'

/** The health that the hub reports in its heartbeat. */
export function healthOf(context: Context): HubHealth {
  const { state, layout, outbox, doors, store } = context
  const storage = store.failure()
  const config = state.facts.config()
  const bins = viewBins(context)
  const shut = shutFridges(context)
  const isIntakeOpen =
    state.facts.get('live') && config?.accepting_orders === true && !state.facts.get('held').orders
  return {
    // Independent of single bins: each order checks whether a bin is free for it.
    accepting_orders: isIntakeOpen && !outbox.isLedgerFull() && context.isStalled?.() !== true,
    bins: bins.map((bin) => binHealth(context, bin)),
    fridges: layout.fridges.map(({ number }) => {
      const enabled = !(config?.disabled_fridges ?? []).includes(number)
      const up = isUsable(context, `fridge-${number}`)
      const celsius = up ? readingOf(context, number)?.celsius : undefined
      return {
        fridge_number: number,
        enabled,
        status: statusOf({
          enabled,
          up,
          faulty: shut.includes(number) || isAlarmRaised(state, 'fridge_warm', fridgeSubject(number)),
          known: celsius !== undefined,
        }),
        shutoff: shut.includes(number),
        temperature: celsius ?? null,
      }
    }),
    doors: doors.health(),
    unknown_operations: state.operations.unknown().length,
    ...(storage && { storage }),
  }
}

export function binHealth({ devices, layout }: Context, bin: BinView): z.infer<typeof BinHealth> {
  const { occupied } = bin.reported
  const door = bin.reported.door === 'unsettled' ? 'unknown' : bin.reported.door
  const connected = devices.isUp(layout.controllerOf(binDevice(bin.number)) ?? '')
  return {
    bin_number: bin.number,
    capacity: bin.capacity,
    enabled: bin.enabled,
    status: statusOf({
      enabled: bin.enabled,
      up: connected,
      faulty: bin.fault !== null,
      known: door !== 'unknown' && bin.lift !== 'unknown',
    }),
    door,
    lift: bin.lift,
    occupied: occupied === 'unsettled' ? null : (occupied ?? null),
    fault_code: bin.fault,
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

/** Delay after which a change of health is detected. The report has a longer delay anyway. */
const CHECK_MS = 50

export interface HealthWatch {
  /** Schedules a comparison after a possible change; several calls are combined. */
  check(): void
  onChange(listener: () => void): void
  stop(): void
}

/** Calls its listeners when the hub's health has changed, except for temperatures. */
export function watchHealth(context: () => Context): HealthWatch {
  const listeners: (() => void)[] = []
  let last = ''
  let cancel: Cancel | undefined
  let isStopped = false

  function compare(): void {
    cancel = undefined
    const { fridges, ...rest } = healthOf(context())
    const health = JSON.stringify([rest, fridges.map((fridge) => ({ ...fridge, temperature: null }))])
    if (health === last) return
    last = health
    for (const listener of listeners) listener()
  }

  return {
    check() {
      // Delayed, so that replies to the event are sent first.
      if (!isStopped) cancel ??= context().runtime.clock.after(CHECK_MS, compare)
    },
    onChange: (listener) => void listeners.push(listener),
    stop() {
      isStopped = true
      cancel?.()
    },
  }
}
