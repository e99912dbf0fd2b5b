import { expect, test } from 'vitest'
import { alarmMessage } from '../../../protocol/model/alarms.ts'

test('the message of an alarm contains the identifier of its subject unchanged', () => {
  expect(alarmMessage('webhook_disabled', 'we_01a2', 'it answered 410')).toBe(
    'Webhook we_01a2 is disabled, because no delivery reaches it (it answered 410).',
  )
  expect(alarmMessage('work_exhausted', 'refund.check 7', '')).toBe('Work refund.check 7 fails repeatedly.')
  expect(alarmMessage('row_blocked', 'row 2/1/4', 'jam')).toMatch(/^Row 2\/1\/4 .* \(jam\)\.$/)
  expect(alarmMessage('hub_silent', '', '')).toMatch(/^The hub /)
})
