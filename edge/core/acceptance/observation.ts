import { counted } from '../../../protocol/model/counted.ts'
import { binSubject, controllerSubject, doorSubject } from '../../../protocol/model/subject.ts'
import type { Check } from './steps.ts'

/** Sensor states by subject, for example `bin 2 door` → `open`. */
export type Readings = ReadonlyMap<string, string>

/** A reading that changed while the hub watched. */
export interface Seen {
  of: string
  is: string
}

/** The hub's observations during a step. */
export interface Observation {
  /** Readings at the start of the step. */
  before: Readings
  seen: readonly Seen[]
  /**
   * `carried_out`: the hub completed or saw all that the step needs. `stopped`: the technician ended the
   * wait. `too_late`: the time ran out. The other values are outcomes of a command.
   */
  end: 'carried_out' | 'stopped' | 'too_late' | 'refused' | 'failed' | 'unknown'
  /** Why the step was not carried out: a command's reason, or the controller's fault. */
  why: string | null
  /** For a fridge: the temperature, if the probe was read. */
  celsius?: number | undefined
  /** For a row: the bin below it, and the drops that the drop sensor counted. */
  bin?: number | undefined
  drops?: number | undefined
}

export const readingOf = {
  door: (bin: number) => `${binSubject(bin)} door`,
  lift: (bin: number) => `${binSubject(bin)} lift`,
  content: (bin: number) => `${binSubject(bin)} content`,
  doorway: (door: string) => doorSubject(door),
  controller: (id: string) => controllerSubject(id),
}

/** Changed readings. A position on the way is not a change: only the final position counts. */
export function changesOf(before: Readings, now: Readings): Seen[] {
  return [...now].flatMap(([of, is]) =>
    before.get(of) === is || is === 'moving' || is === 'unknown' ? [] : [{ of, is }],
  )
}

/** The step's own readings, which prove its success, each with the expected values in order. */
function wanted(
  check: Check,
  { before, bin }: Pick<Observation, 'before' | 'bin'>,
): { of: string; turns: readonly string[] }[] {
  switch (check.of) {
    case 'controller':
    case 'temperature':
    case 'locks':
      return []
    case 'door':
      return [
        {
          of: readingOf.doorway(check.door),
          turns: check.hasSensor ? ['open', 'closed'] : ['unlocked', 'locked'],
        },
      ]
    case 'open':
      return [{ of: readingOf.door(check.bin), turns: ['open'] }]
    case 'content':
      return [{ of: readingOf.content(check.bin), turns: ['something', 'empty'] }]
    case 'close':
      return [{ of: readingOf.door(check.bin), turns: ['closed'] }]
    case 'lift':
      return [{ of: readingOf.lift(check.bin), turns: ['up', 'down'] }]
    case 'row':
      // The sensor of an occupied bin cannot show one more unit. Only the drop sensor sees it.
      return bin === undefined || before.get(readingOf.content(bin)) === 'something'
        ? []
        : [{ of: readingOf.content(bin), turns: ['something'] }]
  }
}

/** A door's reading combines its sensor and its lock. If the door has a sensor, the sensor's value is used. */
const plain = (check: Check, is: string): string =>
  check.of === 'door' && check.hasSensor && (is === 'locked' || is === 'unlocked') ? 'closed' : is

/** The values that a reading changed to, in order. A repeated value is not a change. */
function turnsOf(check: Check, of: string, { before, seen }: Pick<Observation, 'before' | 'seen'>): string[] {
  const reported = [before.get(of) ?? '', ...seen.filter((one) => one.of === of).map(({ is }) => is)]
  return reported.map((is) => plain(check, is)).filter((is, index, all) => index > 0 && is !== all[index - 1])
}

/** Whether the step's own sensors have reported all expected changes, so that the wait can end. */
export const isAllSeen = (check: Check, looked: Pick<Observation, 'before' | 'seen' | 'bin'>): boolean =>
  wanted(check, looked).every(({ of, turns }) => turnsOf(check, of, looked).length >= turns.length)

/** The precondition that is not met before the step, as a sentence; undefined if all are met. */
export function obstacle(check: Check, readings: Readings): string | undefined {
  const is = (of: string): string | undefined => readings.get(of)
  switch (check.of) {
    case 'controller':
    case 'temperature':
    case 'locks':
    case 'door':
    case 'row':
      return undefined
    case 'open':
      return is(readingOf.door(check.bin)) === 'open'
        ? 'It stands open already: close it first, so that it shows that it opens.'
        : undefined
    case 'close':
      return is(readingOf.door(check.bin)) === 'closed'
        ? 'It is closed already: open it first, so that it shows that it closes.'
        : undefined
    case 'content':
      if (is(readingOf.door(check.bin)) === 'closed') return 'Its door is closed: open it first.'
      return is(readingOf.content(check.bin)) === 'something'
        ? 'Something lies in it already: take it out first.'
        : undefined
    case 'lift':
      return is(readingOf.door(check.bin)) === 'closed'
        ? undefined
        : 'Its door is not closed: close it first.'
  }
}

/** Other changes of the same kind that the step did not cause: two cables may be exchanged. */
function strays(check: Check, observation: Observation): Seen[] {
  const { seen } = observation
  const own = new Set(wanted(check, observation).map(({ of }) => of))
  const isAlike = (of: string): boolean => {
    switch (check.of) {
      case 'controller':
      case 'temperature':
      case 'locks':
        return false
      case 'door':
        return of.startsWith('door ')
      case 'row':
        return of.endsWith(' content')
      case 'open':
      case 'content':
      case 'close':
      case 'lift':
        return of.startsWith('bin ')
    }
  }
  return seen.filter(({ of }) => isAlike(of) && !own.has(of))
}

/** Compares an observation with the step's expectation. `because` lists the differences. */
export function judge(check: Check, observation: Observation): { agrees: boolean; because: string[] } {
  const because = [...endText(observation), ...ownFindings(check, observation)]
  for (const { of, is } of strays(check, observation))
    because.push(`At the same time ${of}: ${is}. Are cables exchanged?`)
  return { agrees: because.length === 0, because }
}

function endText({ end, why }: Observation): string[] {
  switch (end) {
    case 'carried_out':
      return []
    case 'stopped':
      return ['The technician waited no longer.']
    case 'too_late':
      return ['Nothing more was seen in time.']
    case 'refused':
      return [`Not carried out${why === null ? '' : `: ${why}`}.`]
    case 'failed':
      return [`It failed${why === null ? '' : `: ${why}`}.`]
    case 'unknown':
      return ['Nobody knows what became of it.']
  }
}

function ownFindings(check: Check, observation: Observation): string[] {
  const { before, celsius, drops, end } = observation
  if (check.of === 'controller') {
    const is = before.get(readingOf.controller(check.controller)) ?? 'not connected'
    return is.startsWith('connected') ? [] : [`It is ${is}.`]
  }
  if (check.of === 'temperature') {
    if (celsius === undefined) return ['The sensor reports nothing.']
    return celsius > check.limitCelsius ? [`It is warmer than ${check.limitCelsius} °C.`] : []
  }
  if (check.of === 'locks')
    return ['The hub cannot see this: write in the remark what you found at each door.']
  if (end === 'refused') return []
  if (check.of === 'door' && check.hasSensor && before.get(readingOf.doorway(check.door)) === 'open')
    return ['The sensor reported open before: was the door open, or is the sensor inverted?']
  const found = wanted(check, observation).flatMap(({ of, turns }) => {
    const reported = turnsOf(check, of, observation)
    return turns.every((turn, index) => reported[index] === turn)
      ? []
      : [
          `${of} had to report ${turns.join(', then ')}, and reported ${reported.join(', then ') || 'nothing'}.`,
        ]
  })
  if (check.of === 'door' && check.hasLock && lastOf(readingOf.doorway(check.door), observation) !== 'locked')
    found.push('It is not locked again.')
  if (check.of === 'row' && drops !== 1 && end === 'carried_out')
    found.push(`The drop sensor saw ${drops ?? 0} units fall.`)
  return found
}

const lastOf = (of: string, { before, seen }: Observation): string | undefined =>
  seen.findLast((one) => one.of === of)?.is ?? before.get(of)

/** The observation as one readable line. */
export function observedText(check: Check, observation: Observation): string {
  const { before, seen, celsius, bin, drops } = observation
  const words: string[] = []
  if (check.of === 'controller')
    words.push(before.get(readingOf.controller(check.controller)) ?? 'not connected')
  if (celsius !== undefined) words.push(`${celsius} °C`)
  if (drops !== undefined) words.push(`the drop sensor saw ${counted(drops, 'unit')} fall`)
  if (bin !== undefined) words.push(`into bin ${bin}`)
  for (const { of } of wanted(check, observation)) {
    const reported = [before.get(of) ?? 'unknown', ...seen.filter((one) => one.of === of).map(({ is }) => is)]
    words.push(`${of} ${reported.join(' → ')}`)
  }
  const text = words.join(', ')
  const sentence = text === '' ? '' : `${text[0]!.toUpperCase()}${text.slice(1)}.`
  return [sentence, ...judge(check, observation).because].filter(Boolean).join(' ')
}
