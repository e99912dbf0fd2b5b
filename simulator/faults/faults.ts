import type { Random, Runtime } from '../../protocol/model/runtime.ts'
import { faultKinds, type FaultTarget, type FaultType } from './fault-types.ts'

export interface FaultRequest {
  type: FaultType
  /** A device, door, controller or row (`row 1/2/3`); none = all that the fault can hit. */
  target?: string | undefined
  /** How long it lasts; none = until it is cleared. For `brown_out`, `memory_loss` and `used_board`: how long the power is away. */
  for_ms?: number | undefined
  /** Chance on each occasion, in (0, 1]. */
  probability?: number | undefined
}

export interface Fault {
  id: string
  type: FaultType
  target: string | null
  probability: number
  raised_at: string
  /** Milliseconds that are left; null = until cleared. */
  remaining_ms: number | null
}

/** What a fault can be aimed at: the kinds of the names, and the controller of each device. */
export interface FaultMap {
  kindsOf(name: string): readonly FaultTarget[]
  isRow(name: string): boolean
  /** What a name is a part of: the controller of a device, the cabinet and the controller of a row. */
  wholesOf(name: string): readonly string[]
}

export interface Faults {
  /** Throws a `RangeError` whose message says what is wrong with the request. */
  raise(request: FaultRequest): Fault
  /** False where there is no such fault. */
  clear(id: string): boolean
  clearAll(): void
  active(): Fault[]
  /** Whether a fault strikes on this occasion: it is raised for this target or for all, and chance has it so. */
  strikes(type: FaultType, target: string): boolean
}

interface Raised {
  fault: Fault
  untilMs: number
}

export interface FaultHooks {
  /** Carries out the faults that happen when they are raised. */
  onInstant: (fault: FaultRequest) => void
  /** Cables were exchanged, or put right. */
  onRewired: () => void
  /** A fault that lasts has begun. */
  onRaised: (fault: FaultRequest) => void
}

export function createFaults(
  runtime: Runtime,
  map: FaultMap,
  { onInstant, onRewired, onRaised }: FaultHooks,
): Faults {
  const raised = new Map<string, Raised>()
  let count = 0

  const isHit = (aim: string | null, target: string): boolean =>
    aim === null || aim === target || map.wholesOf(target).includes(aim)

  function check({ type, target, for_ms, probability }: FaultRequest): void {
    const kind = faultKinds[type]
    if (target === undefined) {
      if (kind.needsTarget)
        throw new RangeError(`fault ${type} needs a target (${kind.targets.join(' or ')})`)
    } else {
      const kinds = map.kindsOf(target)
      const isRow = map.isRow(target)
      if (isRow && kind.hitsRows) return checkNumbers(for_ms, probability)
      if (kinds.length === 0 && !isRow) throw new RangeError(`there is no ${target} at this hub`)
      if (!kinds.some((one) => kind.targets.includes(one)))
        throw new RangeError(`fault ${type} cannot hit ${target}: it hits a ${kind.targets.join(' or ')}`)
    }
    checkNumbers(for_ms, probability)
  }

  function checkNumbers(for_ms?: number, probability?: number): void {
    if (for_ms !== undefined && !(for_ms > 0)) throw new RangeError('for_ms must be greater than 0')
    if (probability !== undefined && !(probability > 0 && probability <= 1))
      throw new RangeError('probability must be greater than 0 and at most 1')
  }

  /** Lapsed faults are dropped when somebody looks. */
  function current(): Raised[] {
    const now = runtime.clock.monotonic()
    for (const [id, { untilMs }] of raised) if (untilMs <= now) raised.delete(id)
    return [...raised.values()]
  }

  return {
    raise(request) {
      check(request)
      const kind = faultKinds[request.type]
      const now = runtime.clock.monotonic()
      const fault: Fault = {
        id: `fault-${++count}`,
        type: request.type,
        target: request.target ?? null,
        probability: request.probability ?? kind.probability,
        raised_at: new Date(runtime.clock.now()).toISOString(),
        remaining_ms: request.for_ms ?? null,
      }
      if (kind.instant) onInstant(request)
      else {
        raised.set(fault.id, { fault, untilMs: now + (request.for_ms ?? Number.POSITIVE_INFINITY) })
        if (kind.isWiring) onRewired()
        onRaised(request)
      }
      return fault
    },
    clear(id) {
      const type = raised.get(id)?.fault.type
      if (type === undefined) return false
      raised.delete(id)
      if (faultKinds[type].isWiring) onRewired()
      return true
    },
    clearAll() {
      const wasWiring = [...raised.values()].some(({ fault }) => faultKinds[fault.type].isWiring)
      raised.clear()
      if (wasWiring) onRewired()
    },
    active() {
      const now = runtime.clock.monotonic()
      return current().map(({ fault, untilMs }) => ({
        ...fault,
        remaining_ms: fault.remaining_ms === null ? null : Math.max(0, Math.round(untilMs - now)),
      }))
    },
    strikes(type, target) {
      if (raised.size === 0) return false
      const struck = current().find(
        ({ fault }) =>
          fault.type === type &&
          isHit(fault.target, target) &&
          (fault.probability >= 1 || runtime.random.fraction() < fault.probability),
      )
      if (struck && faultKinds[type].once) raised.delete(struck.fault.id)
      return struck !== undefined
    },
  }
}

/** Reproducible chance (mulberry32) for a simulator that was started with a seed. */
export function seededRandom(seed: number): Random {
  let state = seed >>> 0
  function next(): number {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return (mixed ^ (mixed >>> 14)) >>> 0
  }
  return {
    fraction: () => next() / 2 ** 32,
    bytes: (count) => Uint8Array.from({ length: count }, () => next() & 0xff),
  }
}
