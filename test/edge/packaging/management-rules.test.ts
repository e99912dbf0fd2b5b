import { readFileSync } from 'node:fs'
import { runInNewContext } from 'node:vm'
import { expect, test } from 'vitest'

type Rule = (
  action: { id: string; lookup(key: string): string },
  subject: { user: string },
) => string | undefined

const text = readFileSync('edge/systemd/larder-management.rules', 'utf8')

function decide(id: string, unit: string, user: string): string | undefined {
  let rule: Rule | undefined
  runInNewContext(text, { polkit: { addRule: (added: Rule) => (rule = added), Result: { YES: 'yes' } } })
  return rule!({ id, lookup: () => unit }, { user })
}

const manage = 'org.freedesktop.systemd1.manage-units'

test("the management service may manage the hub's unit", () => {
  expect(decide(manage, 'larder-edge.service', 'larder')).toBe('yes')
})

test.each([
  ['another unit', manage, 'ssh.service', 'larder'],
  ['another user', manage, 'larder-edge.service', 'nobody'],
  ['another act', 'org.freedesktop.systemd1.manage-unit-files', 'larder-edge.service', 'larder'],
])('polkit gets no decision about %s', (_, id, unit, user) => {
  expect(decide(id, unit, user)).toBeUndefined()
})

test('the rules are JavaScript for Debian’s polkit', () => {
  expect(text.replaceAll(/\/\/.*/g, '')).not.toMatch(/=>|\b(const|let)\b|`/)
})
