import { locationKey, type Location } from '../../../protocol/model/location.ts'

/** A facing of the product that is wanted. */
export interface FacingView {
  location: Location
  primary: boolean
  quantity: number
  /** Nothing is dispensed from it: an outcome there is unknown, it has failed too often, or its fridge does not sell. */
  blocked: boolean
  /** Its last dispenses have failed with nothing moved: it is not for sale, and only tried. */
  failing: boolean
  /** Of one that fails: how long until it is tried again though another row has the product. */
  trialMs: number
  /** Its cabinet's controller is connected, its memory reconciled with the journal, and no fridge door before it is open. */
  up: boolean
  /** Its cabinet dispenses something now: one at a time. */
  busy: boolean
  /** How long its cabinet must rest after a refusal. */
  restMs: number
}

/** An earlier operation for the same unit that provably moved nothing. */
export interface Attempt {
  location: Location
  /** `refused`: the controller would not begin now. `nothing`: it tried, and the motor never turned. */
  kind: 'refused' | 'nothing'
}

export type FacingChoice =
  | { kind: 'dispense'; location: Location }
  /** Nothing now: its cabinet is not connected, dispenses something else, or rests (for `ms`) after a refusal. */
  | { kind: 'wait'; for: 'connection' | 'cabinet' | 'rest'; ms: number | undefined }
  /** No facing will give it. */
  | { kind: 'short' }

const MAX_REFUSALS = 5

/**
 * Where one unit is to come from. Each facing is tried once; where the product has no other, the same one once more
 * (only what provably moved nothing is ever tried again).
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
 * A row that fails is left alone where another one has the product; but now and then it is tried first, as the other one then
 * makes up for it: otherwise it would be lost until somebody comes.
 */
function withTrials(facings: readonly FacingView[]): readonly FacingView[] {
  const sound = facings.filter(({ failing }) => !failing)
  return sound.some(({ up }) => up)
    ? facings.filter(({ failing, trialMs }) => !failing || trialMs <= 0)
    : facings
}
