import * as fc from 'fast-check'
import { expect, test } from 'vitest'
import { formatGpioAddress, parseGpioAddress } from '../../../protocol/gpio/address.ts'
import { createLineSplitter } from '../../../protocol/gpio/line-splitter.ts'

test('lines come out whole however the stream was cut', () => {
  fc.assert(
    fc.property(
      fc.array(fc.string().map((text) => text.replaceAll('\n', ''))),
      fc.array(fc.nat(20), { minLength: 1 }),
      (lines, cuts) => {
        const text = lines.map((line) => `${line}\n`).join('')
        const split = createLineSplitter(1000)
        const got: string[] = []
        for (let at = 0, index = 0; at < text.length; index++) {
          const size = cuts[index % cuts.length]! + 1
          got.push(...split(text.slice(at, at + size))!)
          at += size
        }
        expect(got).toEqual(lines)
      },
    ),
  )
})

test('a line beyond the cap ends the stream, finished or not', () => {
  expect(createLineSplitter(3)('abcd')).toBeUndefined()
  expect(createLineSplitter(3)('abcd\n')).toBeUndefined()
  const split = createLineSplitter(3)
  expect(split('ab')).toEqual([])
  expect(split('cd')).toBeUndefined()
  expect(createLineSplitter(3)('abc\n')).toEqual(['abc'])
})

test('an address survives its text form, and other text is none', () => {
  for (const text of ['unix:/run/gpio.sock', 'tcp:127.0.0.1:18990', 'tcp:::1:1'])
    expect(formatGpioAddress(parseGpioAddress(text)!)).toBe(text)
  for (const text of ['', 'unix:', 'tcp:host', 'tcp::1', 'tcp:h:70000', '/run/gpio.sock'])
    expect(parseGpioAddress(text)).toBeUndefined()
})
