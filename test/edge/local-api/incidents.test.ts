import { expect, test } from 'vitest'
import type { LocalState } from '../../../edge/local-api/local-state.ts'
import { isAsked, nameOf } from '../../../edge/local-api/page/incidents.ts'
import { alarmKinds, hubAlarmCodes, kindOfCode, textAtHub } from '../../../protocol/model/alarms.ts'

const location = { cabinet: 1, shelf: 2, row: 3 }
const stock = [
  { location, name: 'Cola' },
  { location: { ...location, row: 4 }, name: null },
] as unknown as LocalState['stock']

test('the page names the product of a row, and shows other subjects unchanged', () => {
  expect(nameOf({ stock }, 'row 1/2/3')).toBe('row 1/2/3 (Cola)')
  for (const subject of ['row 1/2/4', 'row 1/2/5', 'bin 3', 'hub'])
    expect(nameOf({ stock }, subject)).toBe(subject)
})

test('a row blocked by an operation with unknown outcome has one card, which asks for the outcome', () => {
  const unknown_operations = [{ location }, { location: null }] as unknown as LocalState['unknown_operations']
  const asked = (code: string, subject: string) => isAsked({ unknown_operations }, { code, subject })
  expect(asked('row_blocked', 'row 1/2/3')).toBe(true)
  expect(asked('row_blocked', 'row 1/2/4')).toBe(false)
  expect(asked('bin_fault', 'row 1/2/3')).toBe(false)
})

test('the page and the API have the same text for each alarm of a hub', () => {
  for (const code of hubAlarmCodes) {
    const { title, remedy } = textAtHub(code, 'row 1/2/3 (Cola)', 'jam')
    expect(title).toMatch(/^Row 1\/2\/3 \(Cola\) .* \(jam\)\.$/)
    if (code !== 'unexpected_drop') expect(title).toContain(alarmKinds[kindOfCode(code)].what)
    expect(remedy).not.toBe('')
  }
  expect(textAtHub('bin_fault', 'hub', '').title).toBe('The hub has failed to move.')
})

test('an unknown alarm code is shown unchanged', () => {
  expect(textAtHub('odd_thing', 'bin 3', '')).toEqual({
    title: 'Bin 3 odd thing',
    remedy: 'Read the log of the hub.',
  })
})
