import type { Random, Runtime } from '../../protocol/model/runtime.ts'
import { faultKinds, type FaultTarget, type FaultType } from './fault-types.ts'

export interface FaultRequest {
  type: FaultType
  /** A device, door, controller or row (`row 1/2/3`); none = every target that the fault can hit. */
  target?: string | undefined
  /** Duration; none = until it is cleared. For `brown_out`, `memory_loss` and `used_board`: duration of the power failure. */
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

/** The targets of faults: the kinds of each name, and the controller of each device. */
export interface FaultMap {
  kindsOf(name: string): readonly FaultTarget[]
  isRow(name: string): boolean
  /** The parts that contain a target: the controller of a device; the cabinet and the controller of a row. */
  wholesOf(name: string): readonly string[]
}

interface Raised {
  fault: Fault
  untilMs: number
}

interface FaultHooks {
  /** Executes the faults that happen when they are raised. */
  onInstant: (fault: FaultRequest) => void
  /** Cables were exchanged or restored. */
  onRewired: () => void
  /** A fault that lasts has begun. */
  onRaised: (fault: FaultRequest) => void
}

/** The faults that are raised at one simulated hub. */
export class Faults {
  readonly #runtime: Runtime
  readonly #map: FaultMap
  readonly #hooks: FaultHooks
  readonly #raised = new Map<string, Raised>()
  #count = 0

  constructor(runtime: Runtime, map: FaultMap, hooks: FaultHooks) {
    this.#runtime = runtime
    this.#map = map
    this.#hooks = hooks
  }

  /** Throws a `RangeError` with the reason if the request is not valid. */
  raise(request: FaultRequest): Fault {
    this.#check(request)
    const kind = faultKinds[request.type]
    const now = this.#runtime.clock.monotonic()
    const fault: Fault = {
      id: `fault-${++this.#count}`,
      type: request.type,
      target: request.target ?? null,
      probability: request.probability ?? kind.probability,
      raised_at: new Date(this.#runtime.clock.now()).toISOString(),
      remaining_ms: request.for_ms ?? null,
    }
    if (kind.instant) this.#hooks.onInstant(request)
    else {
      this.#raised.set(fault.id, { fault, untilMs: now + (request.for_ms ?? Number.POSITIVE_INFINITY) })
      if (kind.isWiring) this.#hooks.onRewired()
      this.#hooks.onRaised(request)
    }
    return fault
  }

  /** False if there is no such fault. */
  clear(id: string): boolean {
    const type = this.#raised.get(id)?.fault.type
    if (type === undefined) return false
    this.#raised.delete(id)
    if (faultKinds[type].isWiring) this.#hooks.onRewired()
    return true
  }

  clearAll(): void {
    const wasWiring = [...this.#raised.values()].some(({ fault }) => faultKinds[fault.type].isWiring)
    this.#raised.clear()
    if (wasWiring) this.#hooks.onRewired()
  }

  active(): Fault[] {
    const now = this.#runtime.clock.monotonic()
    return this.#current().map(({ fault, untilMs }) => ({
      ...fault,
      remaining_ms: fault.remaining_ms === null ? null : Math.max(0, Math.round(untilMs - now)),
    }))
  }

  /** Whether a fault strikes now: it is raised for this target or for all targets, and its probability decides. */
  strikes(type: FaultType, target: string): boolean {
    if (this.#raised.size === 0) return false
    const struck = this.#current().find(
      ({ fault }) =>
        fault.type === type &&
        this.#isHit(fault.target, target) &&
        (fault.probability >= 1 || this.#runtime.random.fraction() < fault.probability),
    )
    if (struck && faultKinds[type].once) this.#raised.delete(struck.fault.id)
    return struck !== undefined
  }

  #isHit(aim: string | null, target: string): boolean {
    return aim === null || aim === target || this.#map.wholesOf(target).includes(aim)
  }

  #check({ type, target, for_ms, probability }: FaultRequest): void {
    const kind = faultKinds[type]
    if (target === undefined) {
      if (kind.needsTarget)
        throw new RangeError(`fault ${type} needs a target (${kind.targets.join(' or ')})`)
    } else {
      const kinds = this.#map.kindsOf(target)
      const isRow = this.#map.isRow(target)
      if (isRow && kind.hitsRows) return this.#checkNumbers(for_ms, probability)
      if (kinds.length === 0 && !isRow) throw new RangeError(`there is no ${target} at this hub`)
      if (!kinds.some((one) => kind.targets.includes(one)))
        throw new RangeError(`fault ${type} cannot hit ${target}: it hits a ${kind.targets.join(' or ')}`)
    }
    this.#checkNumbers(for_ms, probability)
  }

  #checkNumbers(for_ms?: number, probability?: number): void {
    if (for_ms !== undefined && !(for_ms > 0)) throw new RangeError('for_ms must be greater than 0')
    if (probability !== undefined && !(probability > 0 && probability <= 1))
      throw new RangeError('probability must be greater than 0 and at most 1')
  }

  /** Drops the faults that have lapsed, and returns the others. */
  #current(): Raised[] {
    const now = this.#runtime.clock.monotonic()
    for (const [id, { untilMs }] of this.#raised) if (untilMs <= now) this.#raised.delete(id)
    return [...this.#raised.values()]
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
