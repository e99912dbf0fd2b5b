import type { Cancel, Clock } from '../../protocol/model/runtime.ts'
import type { FrameBody, Refusal } from '../../protocol/serial/frames.ts'
import type { Behaviour, Command, Run } from './behaviours.ts'
import type { OperationMemory } from './operation-memory.ts'

export interface OperationsOptions {
  clock: Clock
  memory: OperationMemory
  behaviours: ReadonlyMap<string, Behaviour>
  /** The memory cannot be written. */
  isMemoryFaulty: () => boolean
  /** The supply is too low to start the device's motor. */
  isSupplyWeak: (device: string) => boolean
  onResult: (result: FrameBody<'RES'>) => void
}

interface Running {
  run: Run
  stop: () => void
  ended: boolean
}

/** Executes one operation at a time for each device, and stores its result. */
export class Operations {
  #options: OperationsOptions
  #running = new Map<string, Running>()

  constructor(options: OperationsOptions) {
    this.#options = options
  }

  isRunning(device: string): boolean {
    return this.#running.has(device)
  }

  isAnyRunning(): boolean {
    return this.#running.size > 0
  }

  /** The refusal of a command; its operation is not in memory. SPEC §6, steps 4 to 7. */
  refusal(command: Command): Refusal | undefined {
    const behaviour = this.#options.behaviours.get(command.dev)
    if (!behaviour) return 'unknown_device'
    if (!behaviour.actions.includes(command.act)) return 'unsupported'
    if (command.max === 0) return 'bad_argument'
    if (this.#running.has(command.dev) || this.#isReceiving(command.dev)) return 'busy'
    return behaviour.refusal(command) ?? (this.#options.isMemoryFaulty() ? 'memory_fault' : undefined)
  }

  /** Writes the record. SPEC §6, step 8. */
  begin({ op, dev, act, shelf, row, bin, ref }: Command): void {
    const result = { state: 'running', why: undefined, moved: true, drops: 0, ms: 0 } as const
    this.#options.memory.begin({ op, ...result, dev, act, shelf, row, bin, ref })
  }

  /** Starts the motor of an operation with a record. */
  start(command: Command): void {
    const { clock, memory, behaviours, isSupplyWeak } = this.#options
    const behaviour = behaviours.get(command.dev)!
    if (behaviour.isThere(command)) return this.#conclude(command, { moved: false }, 0)
    if (isSupplyWeak(command.dev)) return this.#conclude(command, { why: 'power', moved: false }, 0)
    const startedAt = clock.monotonic()
    let motorMs: number | undefined
    let cancelMaximum: Cancel = () => {}
    const entry: Running = {
      ended: false,
      stop: () => {},
      run: {
        command,
        drops: () => memory.get(command.op)?.drops ?? 0,
        motorOff() {
          motorMs ??= clock.monotonic() - startedAt
          cancelMaximum()
        },
        finish: (outcome) => {
          if (entry.ended) return
          entry.ended = true
          entry.run.motorOff()
          this.#running.delete(command.dev)
          this.#conclude(command, outcome, motorMs ?? 0)
        },
      },
    }
    this.#running.set(command.dev, entry)
    // I7: only the controller enforces this, whatever the host does.
    cancelMaximum = clock.after(command.max, () => {
      entry.stop()
      entry.run.finish({ why: 'timeout', moved: true })
    })
    entry.stop = behaviour.start(entry.run)
  }

  /** The cabinet's sensor saw units fall. Returns true if they count for the running operation. */
  fell(device: string, units: number): boolean {
    const { memory } = this.#options
    const op = this.#running.get(device)?.run.command.op
    const record = op === undefined ? undefined : memory.get(op)
    if (!record) return false
    memory.update(record.op, { drops: record.drops + units })
    return true
  }

  /** The power failed: motors stop, nothing is written. */
  cut(): void {
    for (const entry of this.#running.values()) {
      entry.ended = true
      entry.stop()
    }
    this.#running.clear()
  }

  /** A unit may be falling into the bin. */
  #isReceiving(device: string): boolean {
    return [...this.#running.values()].some(({ run: { command } }) => device === `bin-${command.bin}`)
  }

  #conclude(command: Command, { why, moved }: Parameters<Run['finish']>[0], motorMs: number): void {
    const { memory, onResult } = this.#options
    const ms = Math.min(600_000, Math.round(motorMs))
    memory.update(command.op, { state: why ? 'failed' : 'done', why, moved, ms })
    onResult(memory.result(command.op))
  }
}
