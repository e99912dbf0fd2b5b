/**
 * The readings of a fridge's probe as evidence. A probe breaks, freezes and jumps, and its controller may be
 * silent. Therefore a reading has an age, an implausible value is not a reading, and no single reading
 * decides.
 */

/** Instants on the monotonic clock, in milliseconds. */
export interface Reading {
  celsius: number
  at: number
}

export interface Thermometer {
  /** The last plausible reading. */
  last: Reading | undefined
  /** Consecutive plausible readings on one side of the limit, without a gap. Faults between them do not count. */
  run: { side: 'cold' | 'warm'; since: number; count: number } | undefined
  /** The newest reports: whether each was a plausible reading. */
  recent: readonly boolean[]
  /** Start of the time in which at most half of the recent reports were plausible. */
  unreliableSince: number | undefined
  /** Readings far from the last one but near each other. `agreeing` of them replace it. */
  suspects: readonly Reading[]
  /** Start and number of exact repetitions of one value. */
  same: { celsius: number; since: number; count: number } | undefined
  /** When the probe last moved by `moveCelsius`, newest last; and the value from which the next move is measured. */
  moves: readonly number[]
  movedFrom: number | undefined
  /** Why the newest report was no reading; undefined if it was one. */
  fault: ProbeFault | undefined
}

type ProbeFault = 'none' | 'implausible'

interface ProbeRules {
  /** Plausible values, in degrees Celsius. */
  minCelsius: number
  maxCelsius: number
  /**
   * A reading may differ from the last one by `stepCelsius`, and by `celsiusPerMinute` for each minute between them, together
   * by `maxStepCelsius`.
   */
  stepCelsius: number
  celsiusPerMinute: number
  maxStepCelsius: number
  /** Number of consecutive readings that must agree with each other to be believed against the last reading. */
  agreeing: number
  /** A change of this size proves that a probe works. */
  moveCelsius: number
}

export const newThermometer: Thermometer = {
  last: undefined,
  run: undefined,
  recent: [],
  unreliableSince: undefined,
  suspects: [],
  same: undefined,
  moves: [],
  movedFrom: undefined,
  fault: undefined,
}

/** Stored moves: enough to prove that the room's temperature changes repeatedly. */
const MOVES = 3
/** Number of reports that decide whether a probe is reliable. */
const RECENT = 12

/** Applies a report of the probe; `celsius` null: the probe gives no reading. `maxAgeMs`: a longer gap ends the run. */
export function takeReport(
  meter: Thermometer,
  report: { celsius: number | null; at: number },
  { limitCelsius, maxAgeMs }: { limitCelsius: number; maxAgeMs: number },
  rules: ProbeRules,
): Thermometer {
  const { celsius, at } = report
  if (celsius === null) return { ...noteReport(meter, false, at), suspects: [], fault: 'none' }
  if (!Number.isFinite(celsius) || celsius < rules.minCelsius || celsius > rules.maxCelsius)
    return { ...noteReport(meter, false, at), suspects: [], fault: 'implausible' }
  const reading = { celsius, at }
  const repeated = noteSame(meter, reading)
  // The very first reading has no predecessor to compare with. It is not believed if the probe reported
  // implausible values before.
  const isFirst = meter.last === undefined && meter.fault === undefined
  if (isFirst || (meter.last !== undefined && isNear(meter.last, reading, rules)))
    return believe({ ...meter, ...repeated, suspects: [] }, reading, { limitCelsius, maxAgeMs }, rules)
  const previous = meter.suspects.at(-1)
  const suspects =
    previous !== undefined && isNear(previous, reading, rules) ? [...meter.suspects, reading] : [reading]
  if (suspects.length < rules.agreeing)
    return { ...noteReport(meter, false, at), suspects, fault: 'implausible' }
  // The temperature has jumped: a new run starts.
  const fresh: Thermometer = { ...meter, ...repeated, suspects: [], run: undefined }
  return suspects.reduce((so, one) => believe(so, one, { limitCelsius, maxAgeMs }, rules), fresh)
}

function noteReport(meter: Thermometer, isPlausible: boolean, at: number): Thermometer {
  const recent = [...meter.recent, isPlausible].slice(-RECENT)
  const isReliable = 2 * recent.filter(Boolean).length > recent.length
  return { ...meter, recent, unreliableSince: isReliable ? undefined : (meter.unreliableSince ?? at) }
}

function isNear(one: Reading, other: Reading, rules: ProbeRules): boolean {
  const { stepCelsius, celsiusPerMinute, maxStepCelsius } = rules
  const allowed = stepCelsius + (celsiusPerMinute * (other.at - one.at)) / 60_000
  return Math.abs(other.celsius - one.celsius) <= Math.min(allowed, maxStepCelsius)
}

function noteSame({ same }: Thermometer, { celsius, at }: Reading): Pick<Thermometer, 'same'> {
  return same?.celsius === celsius
    ? { same: { ...same, count: same.count + 1 } }
    : { same: { celsius, since: at, count: 1 } }
}

function believe(
  meter: Thermometer,
  reading: Reading,
  { limitCelsius, maxAgeMs }: { limitCelsius: number; maxAgeMs: number },
  { moveCelsius }: ProbeRules,
): Thermometer {
  const { celsius, at } = reading
  const side = celsius <= limitCelsius ? 'cold' : 'warm'
  const { run, last, movedFrom = celsius } = meter
  const goesOn = run?.side === side && last !== undefined && at - last.at < maxAgeMs
  const hasMoved = Math.abs(celsius - movedFrom) >= moveCelsius
  return {
    ...noteReport(meter, true, at),
    last: reading,
    run: goesOn ? { ...run, count: run.count + 1 } : { side, since: at, count: 1 },
    moves: hasMoved ? [...meter.moves, at].slice(-MOVES) : meter.moves,
    movedFrom: hasMoved ? celsius : movedFrom,
    fault: undefined,
  }
}

/** The proof that the readings give: none if the run is too short, or the probe unreliable. */
export function proofOf(
  { run, last, unreliableSince }: Pick<Thermometer, 'run' | 'last' | 'unreliableSince'>,
  { coldReadings, coldMs, warmReadings }: { coldReadings: number; coldMs: number; warmReadings: number },
): 'cold' | 'warm' | undefined {
  if (run === undefined || last === undefined || unreliableSince !== undefined) return undefined
  if (run.side === 'warm') return run.count >= warmReadings ? 'warm' : undefined
  return run.count >= coldReadings && last.at - run.since >= coldMs ? 'cold' : undefined
}

/** Whether the probe repeats one value for longer than a working probe would. */
const repeatsFor = ({ same }: Thermometer, now: number, { frozenMs, frozenReadings }: FrozenRules): boolean =>
  same !== undefined && now - same.since >= frozenMs && same.count >= frozenReadings

interface FrozenRules {
  frozenMs: number
  frozenReadings: number
}

/**
 * Whether the probe is frozen. It has repeated exactly one value for hours, although the room changed.
 * Evidence of the change: another fridge's probe has moved several times (`others`), or a door of this fridge
 * stood open (until `openedAt`). A steady value without such evidence proves nothing.
 */
export function isFrozen(
  meter: Thermometer,
  { now, others, openedAt }: { now: number; others: readonly Thermometer[]; openedAt: number | undefined },
  rules: FrozenRules,
): boolean {
  const { same } = meter
  if (same === undefined || !repeatsFor(meter, now, rules)) return false
  const isOpened = openedAt !== undefined && openedAt > same.since
  return isOpened || others.some(({ moves }) => moves.length === MOVES && moves[0]! > same.since)
}
