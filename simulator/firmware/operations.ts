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

export interface Operations {
  isRunning(device: string): boolean
  /** Why the command must be refused; its operation is not in memory. SPEC §6, steps 4 to 7. */
  refusal(command: Command): Refusal | undefined
  /** Writes the record. SPEC §6, step 8. */
  begin(command: Command): void
  /** Starts the motor of an operation that was begun. */
  start(command: Command): void
  /** The cabinet's sensor saw units fall. True where they were counted for the running operation. */
  fell(device: string, units: number): boolean
  /** The power is gone: motors stop, nothing is written. */
  cut(): void
}

interface Running {
  run: Run
  stop: () => void
  ended: boolean
}

/** Carries out one operation for each device at a time, and writes down what became of it. */
export function createOperations(options: OperationsOptions): Operations {
  const { clock, memory, behaviours, onResult } = options
  const running = new Map<string, Running>()

  /** A unit may be falling into the bin. */
  function isReceiving(device: string): boolean {
    return [...running.values()].some(({ run: { command } }) => device === `bin-${command.bin}`)
  }

  function refusal(command: Command): Refusal | undefined {
    const behaviour = behaviours.get(command.dev)
    if (!behaviour) return 'unknown_device'
    if (!behaviour.actions.includes(command.act)) return 'unsupported'
    if (command.max === 0) return 'bad_argument'
    if (running.has(command.dev) || isReceiving(command.dev)) return 'busy'
    return behaviour.refusal(command) ?? (options.isMemoryFaulty() ? 'memory_fault' : undefined)
  }

  function begin({ op, dev, act, shelf, row, bin, ref }: Command): void {
    const result = { state: 'running', why: undefined, moved: true, drops: 0, ms: 0 } as const
    memory.begin({ op, ...result, dev, act, shelf, row, bin, ref })
  }

  function conclude(command: Command, outcome: Parameters<Run['finish']>[0], ms: number): void {
    const { why, moved } = outcome
    memory.update(command.op, {
      state: why ? 'failed' : 'done',
      why,
      moved,
      ms: Math.min(600_000, Math.round(ms)),
    })
    onResult(memory.tell(command.op))
  }

  function start(command: Command): void {
    const behaviour = behaviours.get(command.dev)!
    if (behaviour.isSettled(command)) return conclude(command, { moved: false }, 0)
    if (options.isSupplyWeak(command.dev)) return conclude(command, { why: 'power', moved: false }, 0)
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
        finish(outcome) {
          if (entry.ended) return
          entry.ended = true
          entry.run.motorOff()
          running.delete(command.dev)
          conclude(command, outcome, motorMs ?? 0)
        },
      },
    }
    running.set(command.dev, entry)
    // I7: by the controller alone, whatever the host does meanwhile.
    cancelMaximum = clock.after(command.max, () => {
      entry.stop()
      entry.run.finish({ why: 'timeout', moved: true })
    })
    entry.stop = behaviour.start(entry.run)
  }

  return {
    isRunning: (device) => running.has(device),
    refusal,
    begin,
    start,
    fell(device, units) {
      const op = running.get(device)?.run.command.op
      const record = op === undefined ? undefined : memory.get(op)
      if (!record) return false
      memory.update(record.op, { drops: record.drops + units })
      return true
    },
    cut() {
      for (const entry of running.values()) {
        entry.ended = true
        entry.stop()
      }
      running.clear()
    },
  }
}
