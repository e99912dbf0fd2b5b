/**
 * Every kind of alarm: its severity, its texts, its remedy, and when it ends. The cloud and the hub's page show these
 * texts. Hubs use the names as codes.
 */

export const severities = ['info', 'warning', 'critical'] as const
export type Severity = (typeof severities)[number]

export interface AlarmKind {
  severity: Severity
  /** The problem, as the rest of a sentence after the subject: `row 2/1/4 is blocked`. */
  what: string
  /** The word before a subject that is an identifier, which no sentence may change: `Webhook we_…`. */
  named?: string
  /** The action that a person must take. */
  remedy: string
  /** The remedy for a person at the hub, who reads the hub's page and can act there; `remedy` if absent. */
  remedyAtHub?: string
  /**
   * How the alarm ends:
   *
   * - `at_once`: when the problem is resolved.
   * - `when_quiet`: when the problem has been gone for a while. For problems that come and go, such as a loose cable.
   * - `when_long_quiet`: the same with a longer time, for problems that are observed only now and then.
   * - `when_acknowledged`: when a person acknowledges it, because the incident cannot be undone.
   * - `at_once_or_acknowledged`: when the problem is resolved or a person acknowledges it, because the problem may
   *   last.
   */
  ends: 'at_once' | 'when_quiet' | 'when_long_quiet' | 'when_acknowledged' | 'at_once_or_acknowledged'
  /** Hubs report it under this name; absent if the cloud detects it. */
  byHub?: true
}

const kinds = {
  hub_silent: {
    severity: 'warning',
    what: 'has sent no message for minutes',
    remedy:
      'Check its power and its internet connection. The hub continues paid orders, and sells again when it is online.',
    ends: 'when_quiet',
  },
  stream_stalled: {
    severity: 'critical',
    what: 'is online, but a stream between it and the cloud does not advance; it sells nothing',
    remedy:
      'Read the error. If the cloud cannot apply what the hub sends, correct the cloud or its database. If nothing arrives, check the hub’s network: it may drop large packets. The hub sells again automatically when the stream advances.',
    ends: 'at_once',
  },
  hub_restarting: {
    severity: 'warning',
    what: 'restarts repeatedly after unexpected ends',
    remedy:
      'Read the last error and the hub’s log. If there is no error, check its power supply, its memory and its watchdog.',
    remedyAtHub: 'Check the power supply. Read the last error and the log below.',
    ends: 'when_quiet',
    byHub: true,
  },
  certificate_expiring: {
    severity: 'warning',
    what: 'expires soon',
    remedy:
      'Renew it and install the new file before that day. After that day connections that need it fail.',
    remedyAtHub: 'The operator of the cloud must renew it. Without it the hub does not connect.',
    ends: 'at_once',
    byHub: true,
  },
  update_failed: {
    severity: 'warning',
    what: 'failed in an update, and the former version is in use again',
    remedy:
      'Read the error and correct the cause. Settings and hardware descriptions: larder hubs set stores the next version. Firmware of a controller: the next release of the hub contains it with a greater number.',
    ends: 'at_once',
    byHub: true,
  },
  move_failed: {
    severity: 'warning',
    what: 'has not moved to another installation, and remains here',
    remedy:
      'The operator must end the cause. A hub that remains here must get the order to move again. A hub that is closed in both then leaves automatically; if the reason names a claim code or the enrolment there, it needs the order with another code. Both end the alarm. If the move is given up, acknowledge it.',
    ends: 'at_once_or_acknowledged',
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
    remedy: 'Check its cable and its power. Until it answers, the goods behind it are not sold.',
    remedyAtHub: 'Check its power and its cable. Reconnect it here. If it stays silent, replace the board.',
    ends: 'when_quiet',
    byHub: true,
  },
  controller_foreign: {
    severity: 'warning',
    what: 'is not the board that belongs on this line',
    remedy:
      'Cables may be swapped, or this is a new board or a board of another hub. Correct the cables, or take the board over.',
    remedyAtHub:
      'Check that the cable is in the right place. If the board is a spare part for this hub, use it here.',
    ends: 'when_quiet',
    byHub: true,
  },
  controller_replaced: {
    severity: 'info',
    what: 'was replaced, or has lost its memory',
    remedy: 'If a person replaced it, acknowledge the alarm. Otherwise check its power.',
    ends: 'when_acknowledged',
    byHub: true,
  },
  bin_fault: {
    severity: 'warning',
    what: 'has failed to move',
    remedy:
      'Clear what blocks it. Then move it from the hub’s page or by the API: a successful motion ends the alarm.',
    remedyAtHub:
      'Clear what blocks its door or lift. Then close or raise it here: a successful motion ends the alarm.',
    ends: 'when_quiet',
    byHub: true,
  },
  bin_blocked: {
    severity: 'warning',
    what: 'contains goods that were left behind',
    remedy: 'Open it, empty it and close it. Until then it takes no orders.',
    ends: 'at_once',
    byHub: true,
  },
  no_bin_available: {
    severity: 'critical',
    what: 'has no free bin and sells nothing',
    remedy:
      'Empty and close the bins whose orders were not collected or that contain left goods. Clear faults, and enable disabled bins. One free bin ends the alarm.',
    ends: 'when_quiet',
  },
  row_blocked: {
    severity: 'warning',
    what: 'is blocked and sells nothing',
    remedy: 'Clear what is jammed there, count the row and enter the count. The row then sells again.',
    remedyAtHub: 'Clear what is jammed there. Then count the row here: it sells again.',
    ends: 'at_once',
    byHub: true,
  },
  unknown_operation: {
    severity: 'warning',
    what: 'may have moved: the outcome is unknown',
    remedy:
      'Check whether it happened: count the row, or look into the bin. Then settle the operation, or enter the count.',
    remedyAtHub: 'Check whether the unit fell or the part moved. Then enter the answer here.',
    ends: 'at_once',
  },
  door_forced: {
    severity: 'critical',
    what: 'is open though it is locked',
    remedy:
      'A person may be inside, or the lock is broken. Go there and close the door: that ends the alarm.',
    ends: 'when_quiet',
    byHub: true,
  },
  door_left_open: {
    severity: 'warning',
    what: 'is open, or may not be closed and locked',
    remedy: 'Close it. If it is closed, check its lock, its contact and their cables.',
    ends: 'when_quiet',
    byHub: true,
  },
  fridge_warm: {
    severity: 'warning',
    what: 'is too warm',
    remedy: 'Check its door, its power and its compressor before it stops selling.',
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
    what: 'was without proof of being cold for too long, and sells nothing',
    remedy:
      'Throw away spoilt goods. When the fridge is cold again, confirm it at the hub’s page or with enable_fridge: it sells again.',
    remedyAtHub: 'Check the goods and take out spoilt ones. Then confirm the fridge here.',
    ends: 'at_once',
    byHub: true,
  },
  store_full: {
    severity: 'critical',
    what: 'has no room left on its disk, and takes no orders',
    remedy: 'Make room on the board’s card, or replace it.',
    remedyAtHub: 'Make room on the disk, or connect the hub to the cloud: it then sends the waiting entries.',
    ends: 'when_quiet',
    byHub: true,
  },
  storage_failed: {
    severity: 'critical',
    what: 'cannot use its storage, and takes no orders',
    remedy:
      'Check the board’s card: mount it for writing, close programs that lock the journal, or replace the card. The hub resumes automatically.',
    ends: 'when_quiet',
  },
  foreign_journal: {
    severity: 'critical',
    what: 'has the journal of another hub, and does not use it',
    remedy:
      'Put the hub’s own journal back, or name an empty file in STORE. The foreign journal is unchanged. The hub resumes automatically.',
    ends: 'when_quiet',
  },
  journal_lost: {
    severity: 'critical',
    what: 'has lost its journal, and has started a new one',
    remedy: 'Count its shelves. Check the card: it may be failing.',
    ends: 'when_acknowledged',
    byHub: true,
  },
  journal_restored: {
    severity: 'info',
    what: 'has an older copy of its journal, and reads the missing operations from its controllers',
    remedy: 'If a person restored it, acknowledge the alarm. Otherwise check the card.',
    ends: 'when_acknowledged',
    byHub: true,
  },
  clock_wrong: {
    severity: 'warning',
    what: 'has a wrong clock',
    remedy: 'Let the board reach a time server (NTP). Orders use the cloud’s clock.',
    ends: 'when_quiet',
    byHub: true,
  },
  order_overdue: {
    severity: 'critical',
    what: 'is paid, but its hub does not finish it',
    remedy:
      'Check the hub. The order ends automatically and refunds units that did not fall. Inform the customer if it takes long.',
    ends: 'at_once',
  },
  payment_stuck: {
    severity: 'warning',
    what: 'has a payment with an unknown result at its processor',
    remedy:
      'Look it up at the processor. Cancel or refund a payment there, then run larder payments settle. Ask the processor about a refund: its result ends the alarm.',
    ends: 'at_once',
  },
  refund_failed: {
    severity: 'warning',
    what: 'has a refund that failed',
    remedy:
      'Open the order and request the refund again. If it fails again, record it there as paid in another way, then pay the customer: the record ends the alarm.',
    ends: 'at_once',
  },
  payment_disputed: {
    severity: 'critical',
    what: 'is disputed by its cardholder, and the bank has taken the money back',
    remedy:
      'Answer the dispute at the processor in time, with the record of the order. If its status is unknown here, read it there.',
    ends: 'at_once_or_acknowledged',
  },
  payment_orphaned: {
    severity: 'critical',
    what: 'was taken by the card processor, but belongs to no order or deposit here',
    remedy:
      'Refund it at the processor: that ends the alarm. If the customer has the goods, run larder payments settle REF.',
    ends: 'at_once',
  },
  database_restored: {
    severity: 'critical',
    what: 'is served by a restored database: sales after the backup are missing',
    remedy:
      'Compare the orders and the period in the details with your records. Missing payments have their own alarms (payment_orphaned). Repeat the acts that larder audit list --actor cloud shows as lost, such as erased customers and removed PINs. Then acknowledge this alarm.',
    ends: 'when_acknowledged',
  },
  backup_overdue: {
    severity: 'warning',
    what: 'is served by a database without a backup of the last 36 hours',
    remedy:
      'Run larder backup create and read its error. Check the disk or bucket of BACKUP_TO. The alarm ends with the next backup.',
    ends: 'at_once',
  },
  dead_letter: {
    severity: 'warning',
    what: 'or the cloud received a message that it cannot apply',
    remedy:
      'larder dead-letters list shows each letter and its error. If its order is unknown, as after a restored database, read the alarms database_restored and payment_orphaned, then drop the letter. Otherwise correct the cause and replay it.',
    remedyAtHub:
      'Press “Request all data from the cloud” under “whole hub” below. If the alarm returns, the log contains the reason.',
    ends: 'at_once',
    byHub: true,
  },
  webhook_disabled: {
    severity: 'warning',
    named: 'Webhook',
    what: 'is disabled, because no delivery reaches it',
    remedy:
      'Repair the receiver, then enable the webhook again. The list of events contains the events that it missed.',
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
    named: 'Work',
    what: 'fails repeatedly',
    remedy:
      'Read the last error and correct its cause, here or at the other service. Attempts continue with long pauses.',
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
 * The codes that hubs report, by their names on the wire. `unexpected_drop`: a unit fell without an order, or its order
 * is unknown. People see it as the kind `unknown_operation`.
 */
export type HubAlarmCode = ByHub | 'unexpected_drop'
export const hubAlarmCodes: [HubAlarmCode, ...HubAlarmCode[]] = [
  'unexpected_drop',
  ...alarmKindNames.filter((name): name is ByHub => alarmKinds[name].byHub === true),
]

/** The kind that people see for a hub's code. */
export const kindOfCode = (code: HubAlarmCode): ByHub | 'unknown_operation' =>
  code === 'unexpected_drop' ? 'unknown_operation' : code

/**
 * The incident key of a hub's alarm. It differs from the keys of alarms that the cloud raises itself for the same kind:
 * operations by id, its own dead letters.
 */
export function incidentOfCode(code: HubAlarmCode, subject: string): string {
  if (code === 'unexpected_drop') return `drop ${subject}`
  if (code === 'dead_letter') return `at the ${subject}`
  // The heartbeat reports a full disk under another key.
  if (code === 'store_full') return `entries of the ${subject}`
  return subject
}

/** The texts of codes that share a kind with others. */
const codeTexts: Readonly<Record<string, { what: string; remedyAtHub: string }>> = {
  unexpected_drop: {
    what: 'dropped a unit without an order',
    remedyAtHub: 'Count the rows of the cabinet here.',
  },
}

/** The problem of a hub's code, if it differs from the text of its kind. */
export const whatOfCode = (code: HubAlarmCode): string | undefined => codeTexts[code]?.what

/** The texts of a hub's alarm on the hub's page. An unknown code is shown unchanged. */
export function textAtHub(code: string, subject: string, detail: string): { title: string; remedy: string } {
  const about = subject === HUB ? '' : subject
  if (!hubAlarmCodes.some((known) => known === code) && !(code in alarmKinds))
    return {
      title: `${sentenceStart(about)} ${code.replaceAll('_', ' ')}`,
      remedy: 'Read the log of the hub.',
    }
  const kind = kindOfCode(code as HubAlarmCode)
  const own = codeTexts[code]
  return {
    title: alarmMessage(kind, about, detail, own?.what),
    remedy: own?.remedyAtHub ?? alarmKinds[kind].remedyAtHub ?? alarmKinds[kind].remedy,
  }
}

/** The subject of an alarm that concerns the whole hub. */
const HUB = 'hub'

const sentenceStart = (subject: string, named?: string): string => {
  if (subject === '') return 'The hub'
  return named === undefined ? `${subject[0]!.toUpperCase()}${subject.slice(1)}` : `${named} ${subject}`
}

/** The message of an alarm: `Row 2/1/4 (Cola) is blocked and sells nothing (no_drop).` */
export const alarmMessage = (
  kind: AlarmKindName,
  subject: string,
  detail: string,
  what: string = alarmKinds[kind].what,
): string =>
  `${sentenceStart(subject, alarmKinds[kind].named)} ${what}${detail === '' ? '' : ` (${detail})`}.`

/** Whether an alarm of `severity` reaches a reader who wants `least` and worse. */
export const isAsBadAs = (severity: Severity, least: Severity): boolean =>
  severities.indexOf(severity) >= severities.indexOf(least)
