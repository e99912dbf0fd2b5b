import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatCommand, parseCommand, type ManagementCommand } from '../../../protocol/management/command.ts'

const command: fc.Arbitrary<ManagementCommand> = fc.oneof(
  fc.constantFrom({ name: 'status' } as const, { name: 'restart' } as const),
  fc.record({
    name: fc.constantFrom('enable-bin' as const, 'disable-bin' as const),
    bin: fc.nat(999_999_999),
  }),
)

test('a formatted command is parsed to the same command', () => {
  fc.assert(
    fc.property(command, (given) => {
      expect(parseCommand(formatCommand(given))).toEqual(given)
    }),
  )
})

test.each([
  '',
  ' status',
  'status ',
  'status\n',
  'STATUS',
  'status;id',
  'status && id',
  'enable-bin',
  'enable-bin 1 2',
  'enable-bin  1',
  'enable-bin -1',
  'enable-bin 1.5',
  'enable-bin 0x1',
  'enable-bin 01',
  'enable-bin 1; reboot',
  'enable-bin $(reboot)',
  'enable-bin 1234567890',
  'enable-fridge 1',
  'sh -c status',
  '/bin/sh',
  'scp -t /tmp',
  'internal-sftp',
  'status\0',
  'x'.repeat(1000),
])('the text %j is not a management command', (line) => {
  expect(parseCommand(line)).toBeUndefined()
})

test('the parser accepts only the canonical text of a command', () => {
  const near = fc.string().map((tail) => `enable-bin ${tail}`)
  const number = fc.stringMatching(/^disable-bin [0-9 ]{1,12}$/)
  fc.assert(
    fc.property(fc.oneof(fc.string(), near, number), (line) => {
      const parsed = parseCommand(line)
      if (parsed) expect(formatCommand(parsed)).toBe(line)
    }),
  )
})
