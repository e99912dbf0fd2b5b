import { alarmKindNames, severities } from '../../../../protocol/model/alarms.ts'
import { defineTable, flag, growing, id, instant, int, oneOf, text } from '../table.ts'

/** Alarms, and the contacts that are notified of them (`events/alarms`). */
export const alarmTables = {
  alarms: defineTable({
    /** The order in which incidents started. */
    seq: id,
    /** `alm_<UUIDv7>` */
    id: text.unique.fixed,
    owner_id: int.references('owners').fixed,
    hub_id: int.references('hubs').nullable.fixed,
    kind: growing(alarmKindNames).fixed,
    /** The incident within its kind and hub: one row, one operation. Only one of each is open at a time. */
    incident: text.fixed,
    /** Hub or owner, kind, incident: unique among open alarms. */
    key: text.fixed,
    subject: text.nullable.fixed,
    severity: oneOf(severities),
    message: text,
    /** JSON object. */
    details: text,
    raised_at: instant.fixed,
    /** How often the problem was detected. */
    count: int.check('>= 1'),
    /** Since when the problem is gone but may return. Null while it lasts. */
    quiet_since: instant.nullable,
    /** The problem returned after it was resolved. The alarm now closes only after a long quiet time. */
    is_flapping: flag,
    cleared_at: instant.nullable,
    acknowledged_at: instant.nullable,
    acknowledged_by: text.nullable,
  })
    .uniqueIndex('alarms_one_open', ['key'], 'cleared_at is null')
    .index('alarms_by_owner', ['owner_id', 'seq'])
    .index('alarms_by_key', ['key', 'seq'])
    .index('alarms_by_hub', ['hub_id', 'kind'], 'cleared_at is null')
    .index('alarms_by_age', ['cleared_at'], 'cleared_at is not null'),
  /** Mail addresses that are notified of an owner's alarms. */
  alarm_contacts: defineTable({
    id,
    owner_id: int.references('owners').fixed,
    email: text.fixed,
    name: text.nullable,
    /** Minimum severity. */
    severity: oneOf(severities),
    created_at: instant.fixed,
    /** Whether the contact gets the mail of each morning. */
    morning_mail: flag.default(0),
    /** When the holder of the address has agreed. Null: no mail about hubs goes there. */
    confirmed_at: instant.nullable,
    /** SHA-256 of the secret in the link of the mail that asks the holder. */
    confirm_digest: text.nullable,
    /** When that mail was sent last. */
    confirm_mailed_at: instant.nullable,
  })
    .unique('owner_id', 'email')
    .uniqueIndex('alarm_contacts_by_digest', ['confirm_digest']),
  /** Mails of the last day to addresses, each sent before its holder has agreed to mails: invitations and questions. */
  unasked_mails: defineTable({
    id,
    owner_id: int.references('owners').fixed,
    /** SHA-256 of the address in lower case. `refused` if the mail server has not accepted the mail. */
    address: text,
    sent_at: instant.fixed,
  })
    .index('unasked_mails_by_owner', ['owner_id', 'sent_at'])
    .index('unasked_mails_by_address', ['address', 'sent_at'])
    .index('unasked_mails_by_age', ['sent_at']),
  /** Notifications that contacts have not received yet. */
  alarm_mails: defineTable({
    contact_id: int.references('alarm_contacts', { onDelete: 'cascade' }).fixed,
    event_seq: int.references('events', { column: 'seq', onDelete: 'cascade' }).fixed,
    /** The id of the mail that contains it, once the mail is being sent. A retry sends the same mail. */
    mail_id: text.nullable,
  })
    .primaryKey('contact_id', 'event_seq')
    .index('alarm_mails_by_event', ['event_seq']),
}
