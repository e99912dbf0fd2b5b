import { CallError } from '../../../protocol/ui/live.ts'

/** What a technician reads of the hub's codes: what it is, and what to do about it. */
export interface Words {
  title: string
  remedy: string
}

const alarms: Readonly<Record<string, Words>> = {
  bin_fault: {
    title: 'The bin has failed',
    remedy:
      'Look for what blocks its door or lift, clear it, then raise or close it here: it is used again when a motion succeeds.',
  },
  bin_blocked: {
    title: 'Something was left in the bin',
    remedy: 'Open it, take out what lies in it, and close it.',
  },
  row_blocked: {
    title: 'The row gives nothing',
    remedy: 'Clear what jams it, then count the row here: it is sold again.',
  },
  unknown_operation: {
    title: 'Nobody knows whether this happened',
    remedy: 'Look whether the unit fell or the part moved, and say so under “Unknown operations”.',
  },
  unexpected_drop: { title: 'A unit fell that nobody asked for', remedy: 'Count the cabinet’s rows here.' },
  controller_silent: {
    title: 'A controller does not answer',
    remedy: 'Check its supply and its cable. Reconnect it here. If it stays silent, replace the board.',
  },
  controller_foreign: {
    title: 'The board on this line belongs elsewhere, or is new',
    remedy: 'Is the cable in the right place? If the board is a spare part for this hub, use it here.',
  },
  door_forced: {
    title: 'A door is open that is locked',
    remedy: 'Look for damage, close the door, and check its lock.',
  },
  door_left_open: {
    title: 'A door stands open, or its lock or contact fails',
    remedy:
      'Close it until its lock holds it. If it is closed, check its lock, its contact and their cables.',
  },
  fridge_warm: {
    title: 'The fridge is too warm',
    remedy: 'Close its doors, check its fan and cooling. After half an hour nothing is sold from it.',
  },
  fridge_unreadable: {
    title: 'The fridge’s temperature is unknown',
    remedy: 'Check its probe and its cable. After half an hour nothing is sold from it.',
  },
  health_shutoff: {
    title: 'The fridge was without proof of being cold for too long: nothing is sold from it',
    remedy: 'Look at the goods, take out what is spoilt, then confirm the fridge here.',
  },
  store_full: {
    title: 'The hub’s disk is full: it sells nothing',
    remedy: 'Make room on the disk, or connect the hub with the cloud, which takes over what waits.',
  },
  storage_failed: {
    title: 'The hub cannot use its storage: nothing moves, and nothing is sold',
    remedy:
      'Mount the card for writing, close programs that lock the journal, or replace the card. The hub resumes by itself.',
  },
  foreign_journal: {
    title: 'The journal on this card belongs to another hub',
    remedy:
      'Put this hub’s own journal back, or name an empty file in STORE. The foreign journal is unchanged. The hub resumes by itself.',
  },
  journal_lost: { title: 'The hub has lost its journal', remedy: 'Count all rows: it knows no stock.' },
  journal_restored: {
    title: 'The hub’s journal is an older copy',
    remedy: 'Count the rows that were sold from meanwhile.',
  },
  dead_letter: {
    title: 'The hub could not apply what the cloud sent',
    remedy:
      'Ask the cloud to tell everything again, at the whole hub below. If it comes back, the log says why.',
  },
  hub_restarting: {
    title: 'The hub’s service has started again and again',
    remedy: 'Check the power supply. The log below and the last error say more.',
  },
  certificate_expiring: {
    title: 'A certificate expires soon',
    remedy: 'Whoever operates the cloud must renew it: without it the hub does not connect.',
  },
  clock_wrong: {
    title: 'The hub’s clock is wrong',
    remedy: 'Check the battery of its clock, and the time service.',
  },
}

/** A code that has no words yet is better told as it is than not at all. */
export const alarmWords = (code: string): Words =>
  alarms[code] ?? { title: code.replaceAll('_', ' '), remedy: 'The log of the hub says more.' }

/** Why a command was not carried out, and what to do: by `details.reason`. */
const reasons: Readonly<Record<string, string>> = {
  offline: 'Its controller is not connected: check supply and cable, or reconnect it.',
  timeout: 'No result came from its controller: look what it did before you try again.',
  nack: 'Its controller refused: nothing moved.',
  interlock:
    'It must not move now: a door is open, the lift moves, or an order is being filled. Wait, or close the door first.',
  not_found: 'This hub has no such device.',
  interrupted: 'The hub was interrupted meanwhile: look what it did before you try again.',
}

/** What a controller says of a failed motion: `details.fault` (serial SPEC §7). */
const faults: Readonly<Record<string, string>> = {
  jam: 'It is jammed: its motor stalled. Clear what blocks it and try again.',
  timeout: 'It did not arrive in time: look whether something slows it.',
  sensor_fault: 'Its end switches say nothing: check them and their cable.',
  obstructed: 'Something stood in its way, and it opened again. Clear it and try again.',
  interlock: 'It must not move now: its controller’s own interlock holds it.',
  power: 'The supply of its motor is too weak: check the supply.',
  no_drop: 'The row turned and nothing was seen to fall.',
}

interface Details {
  reason?: string
  fault?: string
  why?: string
  problems?: { loc: (string | number)[]; message: string }[]
}

/** What went wrong, in words, with what to do. */
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
export function readingWords(reading: {
  celsius: number | null
  age_min: number | null
  why: string | null
}): string {
  const { celsius, age_min: age, why } = reading
  if (celsius !== null) return `${celsius} °C. Read ${age === 0 ? 'less than a minute' : `${age} min`} ago.`
  const last = age === null ? 'There was no reading yet' : `The last valid reading is ${age} min old`
  return `Temperature unknown: ${why ?? 'there is no valid reading'}. ${last}.`
}

/** How the hub stands with the cloud, and why it does not answer. */
export function syncWords({ phase, reason }: { phase: string; reason?: string | undefined }): {
  text: string
  isGood: boolean
} {
  const why = reason === undefined ? '' : ` Reason: ${reason}`
  if (phase === 'welcomed') return { text: `Connected to the cloud.${why}`, isGood: reason === undefined }
  if (phase === 'stopped') return { text: 'Not connected to the cloud.', isGood: false }
  const text = `No cloud at the moment: everything here works, and is reported later.${why}`
  return { text, isGood: false }
}
