import { randomHex, uuidv7 } from '../../protocol/model/ids.ts'
import type { Random, Runtime, Cancel, Clock } from '../../protocol/model/runtime.ts'
import type { FrameBody, Owner, Action, Refusal } from '../../protocol/serial/frames.ts'
import type { AppendLog } from '../storage/append-log.ts'
import {
  deviceId,
  type ControllerDescription,
  type DeviceDescription,
} from '../../protocol/model/hardware.ts'
import { opOfUuid } from '../../protocol/serial/codec.ts'
import type { Behaviour, Command, Run } from './behaviours.ts'

/** An operation as the controller stores it: the fields of OPS. */
export type StoredOperation = FrameBody<'OPS'>
type OperationResult = Pick<StoredOperation, 'state' | 'why' | 'moved' | 'drops' | 'ms'>

/** An entry of the non-volatile memory. The log may hold several records of one operation; the last is valid. */
export type MemoryEntry =
  { format: string } | { owner: Owner } | { record: StoredOperation } | { overwritten: string }

export const MEMORY_CAPACITY = 256
/** The log is compacted when it holds more entries than this. */
const SLACK = 2048

/**
 * The last operations with their results (SPEC §8). The constructor formats a blank memory, and sets operations that ran when the
 * power failed to `interrupted`.
 */
export class OperationMemory {
  readonly #log: AppendLog<MemoryEntry>
  readonly #random: Random
  readonly #records = new Map<string, StoredOperation>()
  #id = ''
  #owner: Owner | undefined
  #overwritten = ''
  #entries = 0

  constructor(log: AppendLog<MemoryEntry>, random: Random) {
    this.#log = log
    this.#random = random

    for (const entry of log.read()) this.#apply(entry)
    if (!this.#id) this.#format()
    for (const record of this.#records.values())
      if (record.state === 'running') this.#write({ record: { ...record, state: 'interrupted' } })
  }

  /** Changes when the contents are lost. */
  get id(): string {
    return this.#id
  }

  get count(): number {
    return this.#records.size
  }

  /** The controller's owner; lost with the contents. */
  get owner(): Owner | undefined {
    return this.#owner
  }

  get(op: string): StoredOperation | undefined {
    return this.#records.get(op)
  }

  newest(count: number): StoredOperation[] {
    return [...this.#records.values()].slice(-count || this.#records.size)
  }

  /** Writes the record of an operation before it starts. */
  begin(record: StoredOperation): void {
    this.#write({ record })
  }

  update(op: string, change: Partial<OperationResult>): void {
    const record = this.#records.get(op)
    if (record) this.#write({ record: { ...record, ...change } })
  }

  /** Stores the controller's owner; `wipe`: formats the memory first. */
  own(next: Owner, wipe: boolean): void {
    if (wipe) this.#format()
    this.#write({ owner: next })
  }

  /** The answer to QRY. */
  result(op: string): FrameBody<'RES'> {
    const record = this.#records.get(op)
    if (record) {
      const { state, why, moved, drops, ms } = record
      return { op, state, why, moved, drops, ms }
    }
    const forgotten = op <= this.#overwritten
    return {
      op,
      state: forgotten ? 'forgotten' : 'none',
      why: undefined,
      moved: forgotten,
      drops: 0,
      ms: 0,
    }
  }

  #apply(entry: MemoryEntry): void {
    this.#entries++
    if ('format' in entry) this.#id = entry.format
    else if ('owner' in entry) this.#owner = entry.owner
    else if ('overwritten' in entry) this.#overwritten = entry.overwritten
    else {
      this.#records.set(entry.record.op, entry.record)
      if (this.#records.size > MEMORY_CAPACITY) this.#overwriteOldest()
    }
  }

  #overwriteOldest(): void {
    for (const [op, { state }] of this.#records)
      if (state !== 'running') {
        this.#records.delete(op)
        if (op > this.#overwritten) this.#overwritten = op
        return
      }
  }

  #write(entry: MemoryEntry): void {
    this.#log.append(entry)
    this.#apply(entry)
    if (this.#entries > SLACK) this.#compact()
  }

  #compact(): void {
    const whole: MemoryEntry[] = [{ format: this.#id }]
    if (this.#owner) whole.push({ owner: this.#owner })
    if (this.#overwritten) whole.push({ overwritten: this.#overwritten })
    for (const record of this.#records.values()) whole.push({ record })
    this.#log.replace(whole)
    this.#entries = whole.length
  }

  #format(): void {
    this.#log.replace([])
    this.#records.clear()
    this.#owner = undefined
    this.#overwritten = ''
    this.#entries = 0
    this.#write({ format: randomHex(this.#random, 4) })
  }
}

/** The memory of a board that has served another hub: its owner, and its operations there. */
export function usedMemory(
  { id, devices }: ControllerDescription,
  hubId: number,
  runtime: Runtime,
): MemoryEntry[] {
  const { random } = runtime
  const owner = { hub: hubId, ctl: id, store: randomHex(random, 4) }
  const records = devices.flatMap((device) =>
    actionsOf(device).map((done) => ({
      record: {
        op: opOfUuid(uuidv7(runtime)),
        state: 'done' as const,
        why: undefined,
        moved: true,
        ms: 1500,
        dev: deviceId(device),
        ...done,
      },
    })),
  )
  return [{ format: randomHex(random, 4) }, { owner }, ...records]
}

interface Done {
  act: Action
  drops: number
  shelf: number | undefined
  row: number | undefined
  bin: number | undefined
  ref: string | undefined
}

const nowhere = { drops: 0, shelf: undefined, row: undefined, bin: undefined, ref: undefined }

function actionsOf(device: DeviceDescription): Done[] {
  switch (device.kind) {
    case 'bin':
      return [
        { act: 'open_door', ...nowhere },
        { act: 'close_door', ...nowhere },
      ]
    case 'cabinet':
      return device.shelves.map(({ shelf }) => ({
        act: 'dispense',
        drops: 1,
        shelf,
        row: 1,
        bin: 1,
        ref: `${shelf}.1.0`,
      }))
    case 'fridge':
      return []
  }
}

interface OperationsOptions {
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
