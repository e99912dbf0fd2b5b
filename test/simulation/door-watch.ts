import { fridgeDoor, fridgeSides, type HardwareDescription } from '../../protocol/model/hardware.ts'
import type { SimulatedHub } from '../../simulator/simulated-hub.ts'
import type { WorldRecord } from '../../simulator/physics/world-state.ts'

/** A command may be under way on a bad line when somebody forces a door open. */
const UNDER_WAY_MS = 10_000

/**
 * Observes the fridge doors and the rows behind them. No row starts behind a door that is unlocked, or that has been open
 * for long, and no door is unlocked while a row behind it turns: a hand could be in the row.
 */
export class DoorWatch {
  readonly #hub: Pick<SimulatedHub, 'gpio' | 'world'>
  readonly #now: () => number
  /** The doors in front of each cabinet, by its device. */
  readonly #doors = new Map<string, string[]>()
  /** By operation: the cabinet of a row that turns. */
  readonly #turning = new Map<string, string>()
  readonly #openSince = new Map<string, number>()
  /** What happened, as sentences. */
  readonly seen: string[] = []

  constructor(
    hub: Pick<SimulatedHub, 'gpio' | 'world'>,
    { fridgeDoors }: Pick<HardwareDescription, 'fridgeDoors'>,
    now: () => number,
  ) {
    this.#hub = hub
    this.#now = now
    for (const behind of fridgeDoors)
      for (const side of fridgeSides) {
        const device = `cabinet-${behind[side]}`
        this.#doors.set(device, [...(this.#doors.get(device) ?? []), fridgeDoor(behind.fridge, side)])
      }
    hub.gpio.onChange((line, level) => {
      if (level === 1 && line.endsWith('_lock')) this.#unlocked(line.slice(0, -'_lock'.length))
    })
    hub.world.chronicle.onRecord((record) => this.#watch(record))
  }

  #watch(record: WorldRecord): void {
    if (record.kind === 'began' && record.motion.action === 'dispense') {
      const { operation_id, device } = record.motion
      this.#turning.set(operation_id, device)
      for (const door of this.#doors.get(device) ?? []) this.#starts(operation_id, door)
    }
    if (record.kind !== 'act') return
    const { operation_id, device, detail } = record.act
    if (operation_id !== undefined) this.#turning.delete(operation_id)
    if (detail['to'] === 'open') this.#openSince.set(device, this.#openSince.get(device) ?? this.#now())
    if (detail['to'] === 'closed') this.#openSince.delete(device)
  }

  #starts(operationId: string, door: string): void {
    const lines = this.#hub.gpio.levels()
    const openMs = this.#now() - (this.#openSince.get(door) ?? Infinity)
    if (lines[`${door}_lock`] === 1)
      this.seen.push(`operation ${operationId} started behind ${door}, unlocked`)
    else if (openMs > UNDER_WAY_MS)
      this.seen.push(`operation ${operationId} started behind ${door}, open for ${openMs} ms`)
  }

  #unlocked(door: string): void {
    for (const [operationId, device] of this.#turning)
      if (this.#doors.get(device)?.includes(door))
        this.seen.push(`${door} was unlocked while operation ${operationId} turned a row behind it`)
  }
}
