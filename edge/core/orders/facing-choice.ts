import { locationKey, type Location } from '../../../protocol/model/location.ts'

/** A facing of the wanted product. */
export interface FacingView {
  location: Location
  primary: boolean
  quantity: number
  /**
   * The hub dispenses nothing from it: an outcome there is unknown, it failed too often, or its fridge does
   * not sell.
   */
  blocked: boolean
  /** Its last dispenses failed with nothing moved. It is not for sale, only retried. */
  failing: boolean
  /** For a failing facing: milliseconds until it is retried although another row has the product. */
  trialMs: number
  /**
   * Its cabinet's controller is connected and reconciled with the journal, and no fridge door in front of it
   * is open.
   */
  up: boolean
  /** Its cabinet is dispensing now: one unit at a time. */
  busy: boolean
  /** Milliseconds that its cabinet must rest after a refusal. */
  restMs: number
}

/** An earlier operation for the same unit that provably moved nothing. */
export interface Attempt {
  location: Location
  /** `refused`: the controller would not start now. `nothing`: the controller tried, and the motor never turned. */
  kind: 'refused' | 'nothing'
}

export type FacingChoice =
  | { kind: 'dispense'; location: Location }
  /** Wait: its cabinet is not connected, dispenses another unit, or rests (for `ms`) after a refusal. */
  | { kind: 'wait'; for: 'connection' | 'cabinet' | 'rest'; ms: number | undefined }
  /** No facing can dispense it. */
  | { kind: 'short' }

const MAX_REFUSALS = 5

/**
 * Chooses the facing for one unit. Each facing is tried once. If the product has no other facing, the same
 * facing is tried a second time. Only an attempt that provably moved nothing is repeated.
 */
export function chooseFacing(facings: readonly FacingView[], attempts: readonly Attempt[]): FacingChoice {
  const count = (facing: FacingView, kind: Attempt['kind']): number =>
    attempts.filter(
      (attempt) => attempt.kind === kind && locationKey(attempt.location) === locationKey(facing.location),
    ).length
  const willing = facings.filter(
    (facing) => facing.quantity > 0 && !facing.blocked && count(facing, 'refused') < MAX_REFUSALS,
  )
  const untried = withTrials(willing.filter((facing) => count(facing, 'nothing') === 0))
  const tries = attempts.filter((attempt) => attempt.kind === 'nothing').length
  const pool = untried.length > 0 ? untried : tries === 1 ? willing : []
  if (pool.length === 0) return { kind: 'short' }
  const reachable = pool.filter((facing) => facing.up)
  if (reachable.length === 0) return { kind: 'wait', for: 'connection', ms: undefined }
  const best = reachable.toSorted(
    (a, b) =>
      Number(a.restMs > 0) - Number(b.restMs > 0) ||
      Number(b.failing) - Number(a.failing) ||
      Number(b.primary) - Number(a.primary) ||
      b.quantity - a.quantity ||
      locationKey(a.location).localeCompare(locationKey(b.location)),
  )[0]!
  if (best.busy) return { kind: 'wait', for: 'cabinet', ms: undefined }
  if (best.restMs > 0) return { kind: 'wait', for: 'rest', ms: best.restMs }
  return { kind: 'dispense', location: best.location }
}

/**
 * A failing row is skipped if another row has the product. From time to time it is tried first, while the
 * other row can replace it. Otherwise it would be out of use until a technician comes.
 */
function withTrials(facings: readonly FacingView[]): readonly FacingView[] {
  const sound = facings.filter(({ failing }) => !failing)
  return sound.some(({ up }) => up)
    ? facings.filter(({ failing, trialMs }) => !failing || trialMs <= 0)
    : facings
}
