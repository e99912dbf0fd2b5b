import type { CommandBody } from '../../../protocol/model/hub-commands.ts'
import type { Cancel } from '../../../protocol/model/runtime.ts'
import { doorSubject } from '../../../protocol/model/subject.ts'
import type { CommandResult } from '../../../protocol/mqtt/command.ts'
import type { LocalActor } from '../../../protocol/mqtt/hub-entries.ts'
import { isAvailable, isPrepared, viewBins } from '../bins/bin.ts'
import { operate } from '../commands.ts'
import type { Context } from '../context.ts'
import { unlockDoor } from '../doors/doors.ts'
import { readingOf as fridgeReading } from '../fridges.ts'
import { freeBin } from '../test-dispense.ts'
import { reportLocal } from '../ledger.ts'
import {
  changesOf,
  isAllSeen,
  obstacle,
  type Observation,
  type Readings,
  type Seen,
  readingOf,
} from './observation.ts'
import type { AcceptanceStep } from './steps.ts'

/** A bin and the number of units that rows dropped into it. The next row may drop its unit onto them. */
export interface Pile {
  bin: number
  units: number
}

interface StepRunEvents {
  /** The person who asked for the step. */
  by?: LocalActor | undefined
  pile?: Pile | undefined
  /** Called when a sensor's value changes. */
  onSeen(): void
  /** Called once, when the step has ended. */
  onEnd(observation: Observation, pile: Pile | undefined): void
}

/** One running step, from its start until the hub has seen all its results. It exists only in memory. */
export class StepRun {
  readonly step: AcceptanceStep
  readonly #context: Context
  readonly #events: StepRunEvents
  readonly #before: Readings
  readonly #seen: Seen[] = []
  #last: Readings
  #isOver = false
  /** The hub has finished its part. Changes within the next `acceptanceSettleMs` still belong to the step. */
  #isDone = false
  #bin: number | undefined
  #drops: number | undefined
  #cancelTimeout: Cancel | undefined
  #cancelSettle: Cancel | undefined

  constructor(context: Context, step: AcceptanceStep, events: StepRunEvents) {
    this.#context = context
    this.step = step
    this.#events = events
    this.#before = readingsOf(context)
    this.#last = this.#before
  }

  /** Sensor changes since the start. */
  get seen(): readonly Seen[] {
    return this.#seen
  }

  start(): void {
    const { runtime, settings } = this.#context
    this.#cancelTimeout = runtime.clock.after(settings.acceptanceStepMs, () => this.#end('too_late', null))
    const stands = obstacle(this.step.check, this.#before)
    if (stands !== undefined) this.#end('refused', stands)
    else this.#carryOut()
  }

  /** The technician ends the wait. Running motions end on their own. */
  stop(): void {
    this.#end('stopped', null)
  }

  /** The hub shuts down: `onEnd` is not called. */
  leave(): void {
    this.#isOver = true
    this.#cancelTimeout?.()
    this.#cancelSettle?.()
  }

  /** Reads all sensors. Called after each event of the hub. */
  check(): void {
    if (this.#isOver) return
    const now = readingsOf(this.#context)
    const changes = changesOf(this.#last, now)
    this.#last = now
    if (changes.length > 0) {
      this.#seen.push(...changes)
      this.#events.onSeen()
    }
    const evidence = { before: this.#before, seen: this.#seen, bin: this.#bin }
    if (!this.#isDone || this.#cancelSettle || !isAllSeen(this.step.check, evidence)) return
    this.#lock()
    const { runtime, settings } = this.#context
    this.#cancelSettle = runtime.clock.after(settings.acceptanceSettleMs, () =>
      this.#end('carried_out', null),
    )
  }

  #carryOut(): void {
    const { check } = this.step
    switch (check.of) {
      case 'controller':
      case 'temperature':
      case 'locks':
        return this.#end('carried_out', null)
      case 'content':
        return this.#finished()
      case 'door':
        return check.hasLock ? this.#unlock(check.door) : this.#finished()
      case 'open':
        return this.#command({ name: 'open_bin', bin: check.bin }, () => this.#finished())
      case 'close':
        return this.#command({ name: 'close_bin', bin: check.bin }, () => this.#finished())
      case 'lift':
        return this.#command({ name: 'raise_bin', bin: check.bin }, () =>
          this.#command({ name: 'lower_bin', bin: check.bin }, () => this.#finished()),
        )
      case 'row': {
        const { pile } = this.#events
        const onto = pile !== undefined && hasRoom(this.#context, pile)
        const bin = onto ? pile.bin : freeBin(this.#context)
        if (bin === undefined) return this.#end('refused', 'no bin is empty and closed, with its lift down')
        this.#bin = bin
        return this.#command({ name: 'test_dispense', location: check.location, bin, onto }, ({ data }) => {
          this.#drops = Number(data?.['drops'] ?? 0)
          this.#finished()
        })
      }
    }
  }

  #unlock(door: string): void {
    const { doors, settings, handleUnrepeated } = this.#context
    const unlocking = unlockDoor(this.#context, door, settings.acceptanceStepMs)
    if (!unlocking.ok) {
      const fault = doors.linesProblem?.reason ?? 'its lock cannot be driven'
      const isTurning = unlocking.reason === 'interlock'
      return this.#end('refused', isTurning ? 'a row behind it turns: repeat the step in a moment' : fault)
    }
    const { by } = this.#events
    handleUnrepeated(() => reportLocal(this.#context, 'unlock_door', doorSubject(door), { by }))
    this.#finished()
  }

  /**
   * Locks the door that the step unlocked. A bolt thrown beside an open door would keep the door open. A door
   * that reports open locks later, when its unlock time ends.
   */
  #lock(): void {
    const { check } = this.step
    const { doors } = this.#context
    if (check.of === 'door' && check.hasLock && !doors.mayBeOpen(check.door)) doors.lock(check.door)
  }

  #command(body: CommandBody, onExecuted: (result: CommandResult) => void): void {
    const onEnd = (result: CommandResult): void => {
      if (this.#isOver) return
      if (result.outcome === 'executed') return onExecuted(result)
      const fault = result.data?.['fault']
      const drops = result.data?.['drops']
      if (typeof drops === 'number') this.#drops = drops
      this.#end(
        result.outcome,
        typeof fault === 'string' ? fault : (reasons[result.reason ?? ''] ?? result.reason),
      )
    }
    operate(this.#context, body, onEnd, this.#events.by)
  }

  /**
   * The hub has done its part. It waits for the expected readings, then `acceptanceSettleMs` longer for
   * unexpected ones.
   */
  #finished(): void {
    this.#isDone = true
    this.check()
  }

  #end(end: Observation['end'], why: string | null): void {
    if (this.#isOver) return
    const { check } = this.step
    this.#cancelTimeout?.()
    this.#cancelSettle?.()
    this.#lock()
    const seen = [...this.#seen, ...changesOf(this.#last, readingsOf(this.#context))]
    this.#isOver = true
    const celsius =
      check.of === 'temperature' ? fridgeReading(this.#context, check.fridge)?.celsius : undefined
    const [bin, drops] = [this.#bin, this.#drops]
    this.#events.onEnd({ before: this.#before, seen, end, why, celsius, bin, drops }, this.#pile())
  }

  #pile(): Pile | undefined {
    const { pile } = this.#events
    if (this.#bin === undefined) return pile
    return { bin: this.#bin, units: (pile?.bin === this.#bin ? pile.units : 0) + (this.#drops ?? 0) }
  }
}

/** Whether one more unit fits into the bin. */
const hasRoom = (context: Context, { bin: number, units }: Pile): boolean =>
  viewBins(context).some(
    (bin) =>
      bin.number === number &&
      units < bin.capacity &&
      isPrepared(bin) &&
      isAvailable({ ...bin, enabled: true, occupied: false }),
  )

/** Texts for the report: why a command was not carried out. */
const reasons: Readonly<Record<string, string>> = {
  offline: 'its controller is not connected',
  timeout: 'no result came from its controller',
  nack: 'its controller refused',
  interlock: 'it must not move now: an interlock',
  interrupted: 'the hub was interrupted',
  fault: 'a fault',
}

/** The current values of all sensors and lines. */
function readingsOf(context: Context): Readings {
  const { layout, devices, doors, controllers, otherBoards } = context
  const content = (occupied: boolean | undefined): string =>
    occupied === undefined ? 'unknown' : occupied ? 'something' : 'empty'
  return new Map([
    ...layout.bins.flatMap(({ number }) => {
      const { door, lift, occupied } = devices.bin(number)
      return [
        [readingOf.door(number), door],
        [readingOf.lift(number), lift],
        [readingOf.content(number), content(occupied)],
      ] as const
    }),
    ...doors.readings().map(({ door, status }) => [readingOf.doorway(door), status] as const),
    ...controllers.links().map(({ controller, up, firmware }) => {
      const is = otherBoards.get(controller)?.isForeign
        ? 'not of this hub and line'
        : up
          ? `connected, firmware ${firmware ?? 'unknown'}`
          : 'not connected'
      return [readingOf.controller(controller), is] as const
    }),
  ])
}
