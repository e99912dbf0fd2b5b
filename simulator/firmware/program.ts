import { deviceId } from '../../protocol/model/hardware.ts'
import type { Clock, Runtime } from '../../protocol/model/runtime.ts'
import type { AskBoard, BoardEvent, Program } from '../board/messages.ts'
import type { AppendLog } from '../storage/append-log.ts'
import { type Behaviour, binBehaviour, cabinetBehaviour, fridgeBehaviour } from './behaviours.ts'
import { Firmware } from './firmware.ts'
import { SERIAL_PROTOCOL_VERSION } from '../../protocol/serial/frames.ts'
import { OperationMemory, type MemoryEntry } from './operation-memory.ts'
import { createPins, type Pins } from './pins.ts'

/**
 * The built-in firmware, started on a board; it knows the world only through the board. `version`: of the serial
 * protocol; version 2 reports only changes of temperature.
 */
export function startProgram(
  ask: AskBoard,
  runtime: Runtime,
  version: number = SERIAL_PROTOCOL_VERSION,
): Program {
  let firmware: Firmware | undefined
  let pins: Pins
  let isAlive = true
  /** Timers end with this life of the processor. */
  const clock: Clock = {
    now: () => runtime.clock.now(),
    monotonic: () => runtime.clock.monotonic(),
    after: (delayMs, task) => runtime.clock.after(delayMs, () => isAlive && task()),
  }

  function boot(power: Extract<BoardEvent, { on: 'power' }>): void {
    pins = createPins(power.devices, ask)
    firmware = new Firmware({
      clock,
      random: runtime.random,
      version,
      memory: new OperationMemory(flashOf(ask, power.flash), runtime.random),
      behaviours: (isRunning) => behavioursOf(power, pins, clock, { isRunning, version }),
      cabinets: [...pins.cabinets.values()],
      isMemoryFaulty: () => !ask({ do: 'flash' }).ok,
      isSupplyWeak: (device) => !ask({ do: 'supply', device }).ok,
      transmit: (line) => void ask({ do: 'send', line }),
      onSession: (shows) => void ask({ do: 'lamp', shows }),
    })
  }

  return {
    event(event) {
      if (event.on === 'power') boot(event)
      else if (event.on === 'line') firmware?.receive(event.line)
      else pins.event(event)
    },
    cut() {
      isAlive = false
      firmware?.cut()
      firmware = undefined
    },
  }
}

function behavioursOf(
  power: Extract<BoardEvent, { on: 'power' }>,
  pins: Pins,
  clock: Clock,
  { isRunning, version }: { isRunning: (device: string) => boolean; version: number },
): Map<string, Behaviour> {
  const binOf = (number: number) => pins.bins.get(deviceId({ kind: 'bin', number }))
  return new Map(
    power.devices.map((device) => {
      const id = deviceId(device)
      switch (device.kind) {
        case 'bin':
          return [id, binBehaviour(pins.bins.get(id)!)]
        case 'cabinet': {
          const context = { clock, binOf, isRunning, dropWindowMs: power.drop_window_ms }
          return [id, cabinetBehaviour(pins.cabinets.get(id)!, device, context)]
        }
        case 'fridge':
          return [id, fridgeBehaviour(pins.fridges.get(id)!, clock, version < 3)]
      }
    }),
  )
}

/** The board's flash as storage of the memory of operations. */
function flashOf(ask: AskBoard, entries: readonly object[]): AppendLog<MemoryEntry> {
  return {
    read: () => [...entries] as MemoryEntry[],
    append: (entry) => void ask({ do: 'append', entry: { ...entry } }),
    replace: (whole) => void ask({ do: 'replace', entries: whole.map((entry) => ({ ...entry })) }),
    close() {},
  }
}
