import type { HardwareDescription } from '../protocol/model/hardware.ts'
import type { Clock } from '../protocol/model/runtime.ts'
import type { Fault, Faults } from './faults/faults.ts'
import type { Controller } from './firmware/controller.ts'
import type { GpioBank } from './physics/gpio-bank.ts'
import type { World } from './physics/world.ts'
import type { RowState } from './physics/world-state.ts'

/** `GET /api/hubs/{id}/state`: the truth, sensors and their faults aside (contract §14). */
export interface HubState {
  hub_id: number
  time: string
  /** `sessions`: how many hosts have begun; one more after each connection that was made anew. */
  controllers: { controller: string; powered: boolean; connected: boolean; sessions: number; port: string }[]
  bins: { bin: string; door: string; lift: string; units: number; contents: (number | null)[] }[]
  rows: RowState[]
  fridges: { fridge: string; celsius: number }[]
  doors: { door: string; open: boolean; locked: boolean }[]
  gpio: Record<string, number>
  faults: Fault[]
  last_actuation: number
}

export function describeState(parts: {
  hardware: HardwareDescription
  world: World
  gpio: GpioBank
  controllers: ReadonlyMap<string, Controller>
  faults: Faults
  clock: Clock
}): HubState {
  const { hardware, world, gpio, controllers, faults, clock } = parts
  const { state } = world.chronicle
  const moving = (reading: string | undefined, position: string): string =>
    reading === 'moving' ? reading : position
  return {
    hub_id: hardware.hubId,
    time: new Date(clock.now()).toISOString(),
    controllers: [...controllers.values()].map(({ id, isPowered, hasSession, sessions, description }) => ({
      controller: id,
      powered: isPowered,
      connected: hasSession,
      sessions,
      port: description.port,
    })),
    bins: [...state.bins].map(([bin, { door, lift, contents }]) => ({
      bin,
      door: moving(world.bins.get(bin)?.door(), door),
      lift: moving(world.bins.get(bin)?.lift(), lift),
      units: contents.length,
      contents: [...contents],
    })),
    rows: [...state.rows.values()].map((row) => ({ ...row })),
    fridges: [...world.fridges.values()].map((fridge) => ({
      fridge: fridge.device,
      celsius: Math.round(fridge.celsius() * 100) / 100,
    })),
    doors: world.doors.names.map((door) => ({
      door,
      open: world.doors.isOpen(door),
      locked: world.doors.isLocked(door),
    })),
    gpio: gpio.levels(),
    faults: faults.active(),
    last_actuation: world.chronicle.acts().length,
  }
}
