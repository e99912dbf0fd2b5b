import { alarmKindNames, severities } from '../../../../protocol/model/alarms.ts'
import { defineTable, flag, id, instant, int, oneOf, text } from '../table.ts'

/** What people are told, and who is told (`events/alarms`). */
export const alarmTables = {
  alarms: defineTable({
    /** The order in which incidents began. */
    seq: id,
    /** `alm_<UUIDv7>` */
    id: text.unique.fixed,
    owner_id: int.references('owners').fixed,
    hub_id: int.references('hubs').nullable.fixed,
    kind: oneOf(alarmKindNames).fixed,
    /** Which incident of its kind and hub: that of one row, one operation. One of each is open at a time. */
    incident: text.fixed,
    /** Hub or owner, kind, incident: what is unique among open ones. */
    key: text.fixed,
    subject: text.nullable.fixed,
    severity: oneOf(severities),
    message: text,
    /** JSON object. */
    details: text,
    raised_at: instant.fixed,
    /** How often its fact has come. */
    count: int.check('>= 1'),
    /** Since when its fact is gone, where it may come back; null while it holds. */
    quiet_since: instant.nullable,
    /** It came back after its end: now it ends when it has been quiet for long. */
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
  /** Who is told of an owner's alarms by mail. */
  alarm_contacts: defineTable({
    id,
    owner_id: int.references('owners').fixed,
    email: text.fixed,
    name: text.nullable,
    /** Of alarms as bad as this, and worse. */
    severity: oneOf(severities),
    created_at: instant.fixed,
  }).unique('owner_id', 'email'),
  /** What contacts have not been told yet. */
  alarm_mails: defineTable({
    contact_id: int.references('alarm_contacts', { onDelete: 'cascade' }).fixed,
    event_seq: int.references('events', { column: 'seq', onDelete: 'cascade' }).fixed,
    /** The mail that tells of it, once it is on its way: one that is sent again is the same mail. */
    mail_id: text.nullable,
  })
    .primaryKey('contact_id', 'event_seq')
    .index('alarm_mails_by_event', ['event_seq']),
}
