import { z } from 'zod'
import { alarmKindNames, alarmKinds, severities, type Severity } from '../model/alarms.ts'
import { valuesIn, namedEnum } from '../model/named-enum.ts'
import { Timestamp, HubIdOrNull, Limit, Cursor, NextCursor, HasMore, HubFilter } from './fields.ts'
import { defineRoutes } from './route.ts'

const AlarmKind = z.enum(alarmKindNames).meta({
  id: 'AlarmKind',
  description: valuesIn(
    'Kind of the problem.',
    new Map(alarmKindNames.map((name) => [name, `the subject ${alarmKinds[name].what}.`])),
  ),
})
export const AlarmSeverity = z.enum(severities).meta({
  id: 'AlarmSeverity',
  description: valuesIn('Severity of the problem.', {
    info: 'for information; nothing is wrong.',
    warning: 'a part needs attention soon.',
    critical: 'the hub cannot sell, or money or food safety is at risk.',
  } satisfies Record<Severity, string>),
})
const AlarmFilter = namedEnum('AlarmFilter', 'Only alarms in this state.', {
  open: 'alarms whose problem is not resolved.',
  cleared: 'alarms that have ended.',
  all: 'open and cleared alarms.',
})

/** A problem that needs a person: one alarm for each incident. */
export const Alarm = z
  .object({
    id: z.string().describe('Id of the alarm.'),
    hub_id: HubIdOrNull,
    kind: AlarmKind,
    severity: AlarmSeverity,
    subject: z
      .string()
      .nullable()
      .describe(
        'Part that the alarm is about, such as `bin 3`, `row 2/1/4`, `fridge 1`, `order 9990`, `refund 7`, `we_…`; null if it is about the hub as a whole.',
      ),
    message: z.string().describe('Problem as a sentence.'),
    remedy: z.string().describe('Remedy as a sentence: what a person does about the problem.'),
    raised_at: Timestamp.describe('Time at which the alarm was raised (UTC).'),
    count: z.int().min(1).describe('Number of times that the problem has occurred in this incident.'),
    cleared_at: Timestamp.nullable().describe('Time at which the alarm ended (UTC); null while it is open.'),
    acknowledged_at: Timestamp.nullable().describe('Time of the acknowledgement (UTC); null before that.'),
    acknowledged_by: z
      .string()
      .nullable()
      .describe('Key (`key:…`) or person (`identity:…`) that acknowledged it; null before that.'),
    details: z.record(z.string(), z.unknown()).describe('Further facts of this kind of alarm.'),
  })
  .meta({ id: 'Alarm', description: 'A problem that needs a person: one alarm for each incident.' })
export type Alarm = z.infer<typeof Alarm>

/** Alarms of an owner's hubs (contract, section 12). */
export const ownerAlarmRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'hubs:read' }, rate: 'standard', tag: 'Alarms' },
  {
    'owner.alarms.list': {
      at: 'GET /owners/alarms',
      query: z.object({
        hub_id: HubFilter,
        state: AlarmFilter.default('open'),
        limit: Limit,
        cursor: Cursor,
      }),
      hub: 'hub_id',
      formerOwners: true,
      response: z.object({
        data: z.array(Alarm).describe('Alarms, newest first.'),
        next_cursor: NextCursor,
        has_more: HasMore,
      }),
      errors: ['invalid_cursor'],
      summary: 'List alarms, newest first',
      description:
        'One alarm for each incident. A problem that comes and goes stays one alarm, and its `count` grows. The alarm ends (`cleared_at`) when the problem is resolved: the door is closed, the row is counted, the hub is heard again. A silent hub is `critical` after an hour. A credential that is limited to hubs sees the alarms of these hubs.',
    },
    'owner.alarms.acknowledge': {
      at: 'POST /owners/alarms/{alarm_id}/acknowledge',
      auth: { kind: 'api', scope: 'hubs:write' },
      params: z.object({ alarm_id: z.string().max(64).describe('Id of the alarm.') }),
      response: Alarm,
      errors: ['alarm_not_found'],
      summary: 'Acknowledge an alarm',
      description:
        'Records who takes care of the problem. The alarm stays open until the problem is resolved. A second acknowledgement changes nothing.',
    },
  },
)
