import { CallError } from '../../../protocol/ui/call-program.ts'

/** Why a command was not executed, and the remedy, by `details.reason`. */
const reasons: Readonly<Record<string, string>> = {
  offline: 'Its controller is not connected: check supply and cable, or reconnect it.',
  timeout: 'No result came from its controller: look what it did before you try again.',
  nack: 'Its controller refused: nothing moved.',
  interlock:
    'It must not move now: a door is open, the lift moves, or an order is being filled. Wait, or close the door first.',
  not_found: 'This hub has no such device.',
  interrupted: 'The hub was interrupted: check the result before you try again.',
}

/** The controller's fault of a failed motion: `details.fault` (serial SPEC §7). */
const faults: Readonly<Record<string, string>> = {
  jam: 'It is jammed: its motor stalled. Clear what blocks it and try again.',
  timeout: 'It did not arrive in time: look whether something slows it.',
  sensor_fault: 'Its end switches say nothing: check them and their cable.',
  obstructed: 'Something stood in its way, and it opened again. Clear it and try again.',
  interlock: 'It must not move now: its controller’s own interlock holds it.',
  power: 'The supply of its motor is too weak: check the supply.',
  no_drop: 'The row turned and nothing was seen to fall.',
  too_many_drops: 'More units were counted than can have fallen: check the drop sensor.',
}

interface Details {
  reason?: string
  fault?: string
  why?: string
  problems?: { loc: (string | number)[]; message: string }[]
}

/** An error as text, with its remedy. */
export function causeOf(error: unknown): string {
  if (!(error instanceof CallError)) return error instanceof Error ? error.message : String(error)
  const { reason, fault, why, problems } = (error.details ?? {}) as Details
  const field = problems
    ?.map(({ loc, message }) => `${loc.slice(1).join(' ') || 'value'}: ${message}`)
    .join('; ')
  const cause = (fault && (faults[fault] ?? fault)) ?? (reason && reasons[reason]) ?? why ?? field
  return cause ? `${error.message} ${cause}` : error.message
}

/** A fridge's reading with its age: `4.2 °C. Read less than a minute ago.` */
export function readingText(reading: {
  celsius: number | null
  age_min: number | null
  why: string | null
}): string {
  const { celsius, age_min: age, why } = reading
  if (celsius !== null) return `${celsius} °C. Read ${age === 0 ? 'less than a minute' : `${age} min`} ago.`
  const last = age === null ? 'There was no reading yet' : `The last valid reading is ${age} min old`
  return `Temperature unknown: ${why ?? 'there is no valid reading'}. ${last}.`
}

/** The state of the cloud connection, and why the cloud does not answer. */
export function syncText({ phase, reason }: { phase: string; reason?: string | undefined }): {
  text: string
  isGood: boolean
} {
  const why = reason === undefined ? '' : ` Reason: ${reason}`
  if (phase === 'welcomed') return { text: `Connected to the cloud.${why}`, isGood: reason === undefined }
  if (phase === 'stopped') return { text: 'Not connected to the cloud.', isGood: false }
  const text = `No cloud at the moment: everything here works, and is reported later.${why}`
  return { text, isGood: false }
}
