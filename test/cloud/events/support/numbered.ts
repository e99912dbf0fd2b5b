import type { Alarm } from '../../../../protocol/contract/owner-alarms.ts'

/** The `data` of an alarm's event that tests identify by its number. */
export const numbered = (number: number): Alarm => ({
  id: `alm_${number}`,
  hub_id: 1,
  kind: 'bin_fault',
  severity: 'warning',
  subject: 'bin 1',
  message: 'Bin 1 has failed to move.',
  remedy: 'Look.',
  raised_at: '2026-01-01T00:00:00.000Z',
  count: 1,
  cleared_at: null,
  acknowledged_at: null,
  acknowledged_by: null,
  details: { number },
})

export const numberOf = (data: unknown): unknown => (data as Alarm).details['number']
