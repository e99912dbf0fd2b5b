/**
 * Every kind of alarm: how bad it is, what people read about it, what to do, and when it is over. The cloud and the page of a
 * hub show these texts; hubs take their codes from here.
 */

export const severities = ['info', 'warning', 'critical'] as const
export type Severity = (typeof severities)[number]

export interface AlarmKind {
  severity: Severity
  /** What has happened, as the subject's sentence goes on: `row 2/1/4 is blocked`. */
  what: string
  /** What a person does about it. */
  remedy: string
  /** The same for a person at the hub, who reads it on the hub's page and can act there; `remedy` if absent. */
  remedyAtHub?: string
  /**
   * `at_once`: the alarm ends with its fact, which a person or the processor has settled. `when_quiet`: what may come and go,
   * as a loose line does: it ends when its fact has been gone for a while. `when_long_quiet`: what is only seen now
   * and then. `when_acknowledged`: what has happened and cannot be
   * undone: it ends when somebody has taken note of it. `at_once_or_acknowledged`: it ends with its fact, or when somebody
   * has taken note of it, because the fact may stay.
   */
  ends: 'at_once' | 'when_quiet' | 'when_long_quiet' | 'when_acknowledged' | 'at_once_or_acknowledged'
  /** Reported by hubs under this name; absent where the cloud finds it itself. */
  byHub?: true
}

const kinds = {
  hub_silent: {
    severity: 'warning',
    what: 'has not been heard for minutes',
    remedy:
      'Look at its power and its internet. It goes on with what was paid, and sells again when it is heard.',
    ends: 'when_quiet',
  },
  stream_stalled: {
    severity: 'critical',
    what: 'is online, but a stream between it and the cloud does not advance; it sells nothing',
    remedy:
      'Read the error. If the cloud cannot apply what the hub sends, correct the cloud or its database. If nothing arrives, check the hub’s network: it may drop large packets. The hub sells again by itself when the stream advances.',
    ends: 'at_once',
  },
  hub_restarting: {
    severity: 'warning',
    what: 'has started again and again without an orderly end',
    remedy:
      'Read the last error and the hub’s log. If there is no error, check its power supply, its memory and its watchdog.',
    remedyAtHub: 'Check the power supply. The log below and the last error say more.',
    ends: 'when_quiet',
    byHub: true,
  },
  certificate_expiring: {
    severity: 'warning',
    what: 'expires soon',
    remedy: 'Renew it and install the new file before that day. Afterwards connections that need it fail.',
    remedyAtHub: 'The operator of the cloud must renew it. Without it the hub does not connect.',
    ends: 'at_once',
    byHub: true,
  },
  identity_conflict: {
    severity: 'critical',
    what: 'has two boards with one identity, and one is refused',
    remedy:
      'Find the copy of its card and switch it off. Then give the right board a new password (larder hubs renew-password).',
    ends: 'when_long_quiet',
  },
  controller_silent: {
    severity: 'warning',
    what: 'does not answer',
    remedy: 'Look at its cable and its power. What hangs on it is not sold meanwhile.',
    remedyAtHub: 'Check its power and its cable. Reconnect it here. If it stays silent, replace the board.',
    ends: 'when_quiet',
    byHub: true,
  },
  controller_foreign: {
    severity: 'warning',
    what: 'is not the board that belongs on this line',
    remedy:
      'Lines may be crossed, or a board of another hub or a new one is here. Put it right, or take the board over.',
    remedyAtHub:
      'Check that the cable is in the right place. If the board is a spare part for this hub, use it here.',
    ends: 'when_quiet',
    byHub: true,
  },
  controller_replaced: {
    severity: 'info',
    what: 'was replaced, or has lost its memory',
    remedy: 'Nothing, where somebody has replaced it. Else look at its power.',
    ends: 'when_acknowledged',
    byHub: true,
  },
  bin_fault: {
    severity: 'warning',
    what: 'has failed to move',
    remedy:
      'Look what is in its way, and move it from the hub’s page or by the API: a motion that succeeds ends this.',
    remedyAtHub:
      'Clear what blocks its door or lift, then raise or close it here: a motion that succeeds ends this.',
    ends: 'when_quiet',
    byHub: true,
  },
  bin_blocked: {
    severity: 'warning',
    what: 'has something left in it',
    remedy: 'Open it, take out what is in it, and close it. It takes no orders before.',
    ends: 'at_once',
    byHub: true,
  },
  no_bin_available: {
    severity: 'critical',
    what: 'has no free bin and sells nothing',
    remedy:
      'Empty and close the bins that are not collected or in which something was left. Clear faults, and enable disabled bins. One free bin ends the alarm.',
    ends: 'when_quiet',
  },
  row_blocked: {
    severity: 'warning',
    what: 'is blocked, and nothing of it is sold',
    remedy: 'Look what hangs or is jammed there, count the row and enter the count: that opens it.',
    remedyAtHub: 'Clear what is jammed there, then count the row here: it is sold again.',
    ends: 'at_once',
    byHub: true,
  },
  unknown_operation: {
    severity: 'warning',
    what: 'may have moved: the outcome is unknown',
    remedy:
      'Look whether it happened (count the row, or look into the bin), and settle it, or enter a count.',
    remedyAtHub: 'Look whether the unit fell or the part moved, and say so here.',
    ends: 'at_once',
  },
  door_forced: {
    severity: 'critical',
    what: 'is open though it is locked',
    remedy:
      'Somebody may be inside, or the lock is broken. Go there; the alarm ends when the door is closed.',
    ends: 'when_quiet',
    byHub: true,
  },
  door_left_open: {
    severity: 'warning',
    what: 'is not known to be closed and locked',
    remedy: 'Close it. If it is closed, check its lock, its contact and their cables.',
    ends: 'when_quiet',
    byHub: true,
  },
  fridge_warm: {
    severity: 'warning',
    what: 'is too warm',
    remedy: 'Look at its door, its power and its compressor, before it stops selling.',
    ends: 'when_quiet',
    byHub: true,
  },
  fridge_unreadable: {
    severity: 'warning',
    what: 'has no valid temperature reading',
    remedy:
      'Check its probe and the cable. A fridge that cannot be read for 30 minutes counts as warm and stops selling.',
    ends: 'when_quiet',
    byHub: true,
  },
  health_shutoff: {
    severity: 'critical',
    what: 'was without proof of being cold for too long, and sells nothing any more',
    remedy:
      'Throw away what has spoilt. When it is cold again, confirm it at the hub’s page or by enable_fridge: it sells again.',
    remedyAtHub: 'Look at the goods, take out what has spoilt, then confirm the fridge here.',
    ends: 'at_once',
    byHub: true,
  },
  store_full: {
    severity: 'critical',
    what: 'has no room left on its disk, and takes no orders',
    remedy: 'Make room on the board’s card, or replace it.',
    remedyAtHub:
      'Make room on the disk, or connect the hub with the cloud, which takes over the entries that wait.',
    ends: 'when_quiet',
    byHub: true,
  },
  storage_failed: {
    severity: 'critical',
    what: 'cannot use its storage, and takes no orders',
    remedy:
      'Check the board’s card: mount it for writing, close programs that lock the journal, or replace the card. The hub resumes by itself.',
    ends: 'when_quiet',
  },
  foreign_journal: {
    severity: 'critical',
    what: 'has the journal of another hub, and does not use it',
    remedy:
      'Put the hub’s own journal back, or name an empty file in STORE. The foreign journal is unchanged. The hub resumes by itself.',
    ends: 'when_quiet',
  },
  journal_lost: {
    severity: 'critical',
    what: 'has lost its journal, and has begun a new one',
    remedy: 'Count its shelves. Look at the card: it may be dying.',
    ends: 'when_acknowledged',
    byHub: true,
  },
  journal_restored: {
    severity: 'info',
    what: 'has gone back to an older journal, and makes up what is missing from its controllers',
    remedy: 'Nothing, where somebody has restored it. Else look at the card.',
    ends: 'when_acknowledged',
    byHub: true,
  },
  clock_wrong: {
    severity: 'warning',
    what: 'has a wrong clock',
    remedy: 'Let the board reach a time server (NTP). Orders go on by the cloud’s clock.',
    ends: 'when_quiet',
    byHub: true,
  },
  order_overdue: {
    severity: 'critical',
    what: 'is paid, and its hub does not finish it',
    remedy:
      'Look at the hub. The order ends by itself, and what did not fall is given back; tell its customer where it takes long.',
    ends: 'at_once',
  },
  payment_stuck: {
    severity: 'warning',
    what: 'has a payment of which its processor does not say whether it took money',
    remedy: 'Look it up at the processor, cancel it or give it back there, then larder payments settle.',
    ends: 'at_once',
  },
  refund_failed: {
    severity: 'warning',
    what: 'has a refund that failed',
    remedy: 'Give the money back in another way, or ask for the refund again.',
    ends: 'at_once',
  },
  payment_disputed: {
    severity: 'critical',
    what: 'is disputed by its cardholder, whose bank has taken the money back',
    remedy:
      'Answer the dispute at the processor in time, with the record of the order. If its status is unknown here, read it there.',
    ends: 'at_once_or_acknowledged',
  },
  payment_orphaned: {
    severity: 'critical',
    what: 'was taken by the card processor, and no order or deposit here stands for it',
    remedy:
      'Refund it at the processor: the alarm ends by itself. If its customer has the goods, close it: larder payments settle REF.',
    ends: 'at_once',
  },
  database_restored: {
    severity: 'critical',
    what: 'is served by a database that was restored: what was sold after the backup is missing',
    remedy:
      'Compare the orders and the period in the details with your records. Payments that are missing have alarms of their own (payment_orphaned). Then acknowledge this alarm.',
    ends: 'when_acknowledged',
  },
  dead_letter: {
    severity: 'warning',
    what: 'and the service: one cannot take up what the other has told it',
    remedy:
      'larder dead-letters list shows each letter and why it failed. If its order is unknown here, as after a restored database, look at the alarms database_restored and payment_orphaned, then drop the letter. Else mend the cause and replay it.',
    remedyAtHub:
      'Ask the cloud to send everything again, at the whole hub below. If the alarm comes back, the log says why.',
    ends: 'at_once',
    byHub: true,
  },
  webhook_disabled: {
    severity: 'warning',
    what: 'is switched off, as nothing reaches it',
    remedy: 'Mend the receiver, then switch the webhook on again; what it missed is in the list of events.',
    ends: 'at_once',
  },
  stock_low: {
    severity: 'info',
    what: 'is nearly sold out',
    remedy: 'Restock it, and enter the count.',
    ends: 'at_once',
  },
  work_exhausted: {
    severity: 'warning',
    what: 'fails again and again',
    remedy:
      'Look at the last error; where it is the outside world, at that. It is tried on with long pauses.',
    ends: 'at_once',
  },
} as const satisfies Record<string, AlarmKind>

export type AlarmKindName = keyof typeof kinds
export const alarmKinds: Readonly<Record<AlarmKindName, AlarmKind>> = kinds
export const alarmKindNames = Object.keys(kinds) as [AlarmKindName, ...AlarmKindName[]]

type ByHub = {
  [Name in AlarmKindName]: (typeof kinds)[Name] extends { byHub: true } ? Name : never
}[AlarmKindName]

/**
 * What hubs report, by its name on the wire. `unexpected_drop`: a unit fell that nobody ordered, or of which nobody knows whose
 * it was; people read of it as of an operation that nobody can tell.
 */
export type HubAlarmCode = ByHub | 'unexpected_drop'
export const hubAlarmCodes: [HubAlarmCode, ...HubAlarmCode[]] = [
  'unexpected_drop',
  ...alarmKindNames.filter((name): name is ByHub => alarmKinds[name].byHub === true),
]

/** The kind as which people read of what a hub reports. */
export const kindOfCode = (code: HubAlarmCode): AlarmKindName =>
  code === 'unexpected_drop' ? 'unknown_operation' : code

/**
 * The incident that a hub's word is about, beside those of the same kind that the cloud finds itself: operations by their ids,
 * its own dead letters.
 */
export function incidentOfCode(code: HubAlarmCode, subject: string): string {
  if (code === 'unexpected_drop') return `drop ${subject}`
  if (code === 'dead_letter') return `at the ${subject}`
  // Beside what the heartbeat reports of its disk.
  if (code === 'store_full') return `entries of the ${subject}`
  return subject
}

/** Texts of codes that share a kind with others. */
const codeTexts: Readonly<Record<string, { what: string; remedyAtHub: string }>> = {
  unexpected_drop: {
    what: 'dropped a unit that nobody ordered',
    remedyAtHub: 'Count the rows of the cabinet here.',
  },
}

/** What has happened by a hub's code, if that is not the text of its kind. */
export const whatOfCode = (code: HubAlarmCode): string | undefined => codeTexts[code]?.what

/** What an alarm of a hub says at the hub. A code that is not known here is shown as it is. */
export function textAtHub(code: string, subject: string, detail: string): { title: string; remedy: string } {
  const about = subject === HUB ? '' : subject
  if (!hubAlarmCodes.some((known) => known === code) && !(code in alarmKinds))
    return {
      title: `${sentenceStart(about)} ${code.replaceAll('_', ' ')}`,
      remedy: 'The log of the hub says more.',
    }
  const kind = kindOfCode(code as HubAlarmCode)
  const own = codeTexts[code]
  return {
    title: alarmMessage(kind, about, detail, own?.what),
    remedy: own?.remedyAtHub ?? alarmKinds[kind].remedyAtHub ?? alarmKinds[kind].remedy,
  }
}

/** The subject of an alarm of the hub as a whole. */
const HUB = 'hub'

const sentenceStart = (subject: string): string =>
  subject === '' ? 'The hub' : `${subject[0]!.toUpperCase()}${subject.slice(1)}`

/** The message of an alarm: `Row 2/1/4 (Cola) is blocked, and nothing of it is sold (no_drop).` */
export const alarmMessage = (
  kind: AlarmKindName,
  subject: string,
  detail: string,
  what: string = alarmKinds[kind].what,
): string => `${sentenceStart(subject)} ${what}${detail === '' ? '' : ` (${detail})`}.`

/** Whether an alarm of `severity` is for somebody who wants those of `least` and above. */
export const isAsBadAs = (severity: Severity, least: Severity): boolean =>
  severities.indexOf(severity) >= severities.indexOf(least)
