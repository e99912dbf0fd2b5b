import { z } from 'zod'
import { alarmKindNames, severities } from '../model/alarms.ts'
import { Id, Timestamp } from './fields.ts'
import { defineRoutes } from './route.ts'

/** Something that a person has to look at: one for each incident. */
export const Alarm = z
  .object({
    id: z.string(),
    /** Null where no hub is concerned. */
    hub_id: Id.nullable(),
    kind: z.enum(alarmKindNames),
    severity: z.enum(severities),
    /** `bin 3`, `row 2/1/4`, `fridge 1`, `order 9990`, `we_…`; null where it is the hub as a whole. */
    subject: z.string().nullable(),
    message: z.string(),
    /** What to do about it, in words. */
    remedy: z.string(),
    raised_at: Timestamp,
    /** How often its fact has come and gone. */
    count: z.int().min(1),
    cleared_at: Timestamp.nullable(),
    acknowledged_at: Timestamp.nullable(),
    /** The key (`key:…`) or person (`identity:…`) that acknowledged it. */
    acknowledged_by: z.string().nullable(),
    details: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'Alarm' })
export type Alarm = z.infer<typeof Alarm>

/** What people are told. */
export const ownerAlarmRoutes = defineRoutes(
  { interface: 'owner', auth: { kind: 'api', scope: 'hubs:read' }, rate: 'standard', tag: 'Alarms' },
  {
    'owner.alarms.list': {
      at: 'GET /owners/alarms',
      query: z.object({
        hub_id: Id.optional().describe(
          'Only this hub. If it is left out: every hub that the credential reaches.',
        ),
        state: z.enum(['open', 'cleared', 'all']).default('open'),
        limit: z.int().min(1).max(100).default(20),
        cursor: z.string().max(64).optional(),
      }),
      hub: 'hub_id',
      response: z.object({
        data: z.array(Alarm),
        next_cursor: z.string().nullable(),
        has_more: z.boolean(),
      }),
      errors: ['invalid_cursor'],
      summary: 'Alarms, newest first',
      description:
        'One alarm for each incident: what comes and goes, as a loose line does, stays one alarm, whose `count` grows. It ends (`cleared_at`) with its fact: a door that is closed, a row that is counted, a hub that is heard. A silent hub is `critical` after an hour. A credential that is limited to hubs sees the alarms of those.',
    },
    'owner.alarms.acknowledge': {
      at: 'POST /owners/alarms/{alarm_id}/acknowledge',
      auth: { kind: 'api', scope: 'hubs:write' },
      params: z.object({ alarm_id: z.string().max(64) }),
      response: Alarm,
      errors: ['alarm_not_found'],
      summary: 'Say that somebody has taken note of an alarm',
      description: 'It stays open until its fact is over. A second time nothing changes.',
    },
  },
)
