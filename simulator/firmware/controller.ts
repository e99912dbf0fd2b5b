import { deviceId, type ControllerDescription } from '../../protocol/model/hardware.ts'
import type { Clock, Runtime } from '../../protocol/model/runtime.ts'
import type { FaultType } from '../faults/fault-types.ts'
import type { World } from '../physics/world.ts'
import type { AppendLog } from '../storage/append-log.ts'
import { type Behaviour, binBehaviour, cabinetBehaviour, fridgeBehaviour } from './behaviours.ts'
import { Firmware } from './firmware.ts'
import { openOperationMemory, type MemoryEntry } from './operation-memory.ts'

export interface ControllerOptions {
  description: ControllerDescription
  world: World
  runtime: Runtime
  memory: AppendLog<MemoryEntry>
  strikes: (type: FaultType, target: string) => boolean
  /** How long a fall is waited for after a turn, in milliseconds. */
  dropWindowMs: number
  /** A line to the host, without its line feed. */
  transmit: (line: string) => void
}

/** A microcontroller on its board: power, non-volatile memory, and the program that runs while there is power. */
export interface Controller {
  readonly id: string
  readonly description: ControllerDescription
  readonly isPowered: boolean
  /** A host has a session. */
  readonly hasSession: boolean
  /** Sessions that hosts have begun, since the simulator's start. */
  readonly sessions: number
  powerOn(): void
  /** Motors stop where they are; RAM is lost. */
  powerOff(): void
  /** Another board takes its place, whose memory holds this; none: a new one. Only while it has no power. */
  replaceMemory(contents: readonly MemoryEntry[]): void
  /** A line from the host. Lost where there is no power. */
  receive(line: string): void
}

export function createController(options: ControllerOptions): Controller {
  const { description, world, runtime, memory, strikes } = options
  let firmware: Firmware | undefined
  let powerCount = 0
  let sessions = 0

  /** Timers of one life end with it. */
  function clockOfThisLife(): Clock {
    const life = powerCount
    const { clock } = runtime
    return {
      now: () => clock.now(),
      monotonic: () => clock.monotonic(),
      after: (delayMs, task) => clock.after(delayMs, () => life === powerCount && task()),
    }
  }

  function behaviours(clock: Clock, isRunning: (device: string) => boolean): Map<string, Behaviour> {
    const own = new Set(description.devices.map(deviceId))
    const binOf = (number: number) => {
      const id = deviceId({ kind: 'bin', number })
      return own.has(id) ? world.bins.get(id) : undefined
    }
    const { dropWindowMs } = options
    return new Map(
      description.devices.map((device) => {
        const id = deviceId(device)
        switch (device.kind) {
          case 'bin':
            return [id, binBehaviour(world.bins.get(id)!)]
          case 'cabinet': {
            const context = { clock, binOf, isRunning, dropWindowMs }
            return [id, cabinetBehaviour(world.cabinets.get(id)!, device, context)]
          }
          case 'fridge':
            return [id, fridgeBehaviour(world.fridges.get(id)!, clock)]
        }
      }),
    )
  }

  return {
    id: description.id,
    description,
    get isPowered() {
      return firmware !== undefined
    },
    get hasSession() {
      return firmware?.hasSession ?? false
    },
    get sessions() {
      return sessions
    },
    powerOn() {
      if (firmware) return
      powerCount++
      const clock = clockOfThisLife()
      firmware = new Firmware({
        clock,
        random: runtime.random,
        memory: openOperationMemory(memory, runtime.random),
        behaviours: (isRunning) => behaviours(clock, isRunning),
        cabinets: description.devices.flatMap((device) => world.cabinets.get(deviceId(device)) ?? []),
        isMemoryFaulty: () => strikes('flash_fault', description.id),
        isSupplyWeak: (device) => strikes('weak_supply', device),
        transmit: options.transmit,
        onSession: () => void sessions++,
      })
    },
    powerOff() {
      if (!firmware) return
      powerCount++
      firmware.cut()
      firmware = undefined
    },
    replaceMemory: (contents) => memory.replace(contents),
    receive: (line) => firmware?.receive(line),
  }
}
