import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { decodeFrame, encodeFrame } from '../../../protocol/serial/codec.ts'
import { MAX_LINE_BYTES } from '../../../protocol/serial/frames.ts'
import { createLineSplitter } from '../../../protocol/serial/line-port.ts'

function split(text: string, cuts: readonly number[]): string[] {
  const lines: string[] = []
  const take = createLineSplitter(MAX_LINE_BYTES + 1, (line) => lines.push(line))
  const bytes = Buffer.from(text, 'latin1')
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b)
  for (const [index, end] of [...places, bytes.length].entries())
    take(bytes.subarray(places[index - 1] ?? 0, end).toString('latin1'))
  return lines
}

test('the splitter returns the same lines for any division of the bytes', () => {
  const line = fc.string({ unit: fc.constantFrom('a', '~', '*', '\r', 'ÿ'), maxLength: 100 })
  fc.assert(
    fc.property(fc.array(line), fc.array(fc.nat()), (lines, cuts) => {
      expect(split(lines.map((one) => `${one}\n`).join(''), cuts)).toEqual(lines)
    }),
  )
})

test('the splitter cuts a line over the cap, so that the codec refuses it; the next line is whole', () => {
  const ping = encodeFrame({ seq: 1, type: 'PING', t: 5 })
  for (const length of [MAX_LINE_BYTES + 1, 5000, 1_000_000]) {
    const lines = split(`${'x'.repeat(length)}\n${ping}\n`, [7, 300, 4000])
    expect(lines).toHaveLength(2)
    expect(lines[0]!.length).toBeLessThanOrEqual(MAX_LINE_BYTES + 2)
    expect(decodeFrame(lines[0]!)).toEqual({ ok: false, error: 'too_long' })
    expect(lines[1]).toBe(ping)
  }
})

test('a line of the maximum length arrives whole, also if it ends with a carriage return', () => {
  const line = 'y'.repeat(MAX_LINE_BYTES)
  expect(split(`${line}\r\n`, [100])).toEqual([`${line}\r`])
})

test('a line over the cap is delivered once, before it ends', () => {
  const lines: string[] = []
  const take = createLineSplitter(3, (line) => lines.push(line))
  take('ab')
  expect(lines).toEqual([])
  take('cd')
  expect(lines).toEqual(['abcd'])
  take('efgh')
  take('i\njk\nabc\n')
  expect(lines).toEqual(['abcd', 'jk', 'abc'])
})
