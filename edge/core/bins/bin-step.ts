import type { OrderPhase } from '../../journal/tables.ts'
import { doorToClose, isBusy, type BinView } from './bin.ts'
import { partOf } from './motions.ts'
import { wait, type BinAction, type Step, type Wait } from '../step.ts'

export interface BinTimes {
  closeAfterEmptyMs: number
  emptyDebounceMs: number
  /** Consecutive failures after which the hub leaves a bin to a technician. */
  binTries: number
}

/** Automatic motions of a bin that no order fills: it closes after the customer, lowers its lift, and becomes free. */
export function binStep(bin: BinView, openWhenReady: boolean, times: BinTimes): Step | Wait {
  if (!bin.up || isBusy(bin)) return wait()
  switch (situation(bin)) {
    case 'free':
      return healed(bin, times)
    case 'filling':
      return wait()
    case 'waiting':
      if (bin.door === 'open' && !bin.opened) return { kind: 'opened', bin: bin.number }
      if (openWhenReady && !bin.opened && !bin.isFaulty) return opened(bin)
      return closeBehindCustomer(bin, times)
    case 'leftover':
      if (bin.door === 'open' && !bin.opened) return { kind: 'opened', bin: bin.number }
      return bin.door === 'closed' ? clear(bin, times) : closeBehindCustomer(bin, times)
  }
}

/** A technician works at the bin, and no order waits in it. It moves only by command. */
const isLeftToPeople = (bin: BinView): boolean => bin.attended && situation(bin) !== 'waiting'

type Situation = 'free' | 'filling' | 'waiting' | 'leftover'

const situations: Record<OrderPhase, Situation> = {
  queued: 'filling',
  recovering: 'filling',
  preparing: 'filling',
  ready: 'waiting',
  collecting: 'waiting',
  completed: 'leftover',
  cancelled: 'leftover',
  timed_out: 'leftover',
  failed: 'leftover',
  unclaimed: 'leftover',
}

const situation = (bin: BinView): Situation =>
  bin.orderId === null ? 'free' : bin.phase === undefined ? 'leftover' : situations[bin.phase]

function move(bin: BinView, action: BinAction): Step | Wait {
  if (isLeftToPeople(bin)) return wait()
  return bin.restMs > 0 ? wait(bin.restMs) : { kind: 'move', bin: bin.number, action }
}

/** Opens for a customer who need not ask. Opens again if the door stopped on its way. */
function opened(bin: BinView): Step | Wait {
  const door = doorToClose(bin)
  if (door.kind === 'moving') return wait()
  return door.kind === 'unsure' ? wait(door.ms) : move(bin, 'open_door')
}

/**
 * Brings a free bin home if it stopped on its way. A failed bin is retried at growing intervals, at most
 * `binTries` times: a hub without staff would lose it otherwise. A door that stands open was opened by a
 * person, unless the hub opened it as a trial.
 */
function healed(bin: BinView, { binTries }: BinTimes): Step | Wait {
  if (bin.occupied !== false || bin.failures >= binTries) return wait()
  if (bin.door === 'unknown' || (bin.door === 'open' && bin.onTrial)) {
    const door = doorToClose(bin)
    return door.kind === 'unsure' ? wait(door.ms) : move(bin, 'close_door')
  }
  if (bin.door !== 'closed') return wait()
  if (bin.fault === null) return bin.onTrial && bin.lift === 'up' ? move(bin, 'lower_lift') : wait()
  if (partOf(bin.fault) === 'door') return tried(bin, 'open_door')
  return bin.lift === 'down' ? tried(bin, 'raise_lift') : move(bin, 'lower_lift')
}

/** A trial motion shows whether a failed part moves again. */
const tried = (bin: BinView, action: BinAction): Step | Wait =>
  isLeftToPeople(bin)
    ? wait()
    : bin.restMs > 0
      ? wait(bin.restMs)
      : { kind: 'move', bin: bin.number, action, isTrial: true }

function closeBehindCustomer(bin: BinView, { closeAfterEmptyMs }: BinTimes): Step | Wait {
  if (!bin.opened || bin.emptyForMs === undefined) return wait()
  const door = doorToClose(bin)
  if (door.kind === 'closed' || door.kind === 'moving') return wait()
  const leftMs = Math.max(closeAfterEmptyMs - bin.emptyForMs, door.kind === 'unsure' ? door.ms : 0)
  return leftMs > 0 ? wait(leftMs) : move(bin, 'close_door')
}

/** Releases the bin of an ended order. Units that fell into it must have been taken out through its door first. */
function clear(bin: BinView, { emptyDebounceMs }: BinTimes): Step | Wait {
  if (bin.door !== 'closed' || bin.emptyForMs === undefined) return wait()
  if (bin.filled > 0 && !bin.opened) return wait()
  const leftMs = emptyDebounceMs - bin.emptyForMs
  if (leftMs > 0) return wait(leftMs)
  return bin.lift === 'down' ? { kind: 'release', bin: bin.number } : move(bin, 'lower_lift')
}
