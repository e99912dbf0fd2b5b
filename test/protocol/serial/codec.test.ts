import * as fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decodeFrame, encodeFrame, opOfUuid, uuidOfOp } from '../../../protocol/serial/codec.ts'
import {
  actions,
  BLOCK_BYTES,
  failures,
  MAX_IMAGE_BYTES,
  MAX_LINE_BYTES,
  operationStates,
  refusals,
  type Frame,
} from '../../../protocol/serial/frames.ts'

const hex = (length: number) =>
  fc.string({ unit: fc.constantFrom(...'0123456789abcdef'.split('')), minLength: length, maxLength: length })
const upTo = (max: number) => fc.integer({ min: 0, max })
const word = fc.stringMatching(/^[A-Za-z0-9_.:+-]{1,40}$/)
const device = fc.constantFrom('bin-1', 'bin-9', 'cabinet-4', 'fridge-1')
const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const seq = upTo(0xffff)
const place = { shelf: maybe(upTo(20)), row: maybe(upTo(40)), bin: maybe(upTo(4)) }
const outcome = {
  op: hex(32),
  state: fc.constantFrom(...operationStates),
  why: maybe(fc.constantFrom(...failures)),
  moved: fc.boolean(),
  drops: upTo(99),
  ms: upTo(600_000),
}
const command = { dev: device, act: fc.constantFrom(...actions), ...place, ref: maybe(word) }
const bodies = {
  HELLO: { proto: upTo(99), host: hex(8) },
  PING: { t: upTo(999_999_999) },
  CMD: { host: hex(8), op: hex(32), max: upTo(600_000), ...command },
  QRY: { op: hex(32) },
  LST: { n: upTo(256) },
  WELCOME: {
    proto: upTo(99),
    host: hex(8),
    fw: word,
    boot: hex(8),
    mem: hex(8),
    last: maybe(hex(32)),
    count: upTo(256),
  },
  PONG: { t: upTo(999_999_999) },
  RES: outcome,
  OPS: { ...outcome, ...command },
  END: { n: upTo(256) },
  EVT: {
    ev: upTo(4_000_000_000),
    dev: device,
    door: maybe(fc.constantFrom('closed', 'open', 'moving', 'unknown')),
    lift: maybe(fc.constantFrom('up', 'down', 'moving', 'unknown')),
    occ: maybe(fc.boolean()),
    temp: maybe(fc.oneof(upTo(20_000), fc.constant('none'))),
    drop: maybe(upTo(99)),
    op: maybe(hex(32)),
  },
  FWQ: { v: upTo(99) },
  IMG: { kind: word, build: upTo(4_000_000_000), size: upTo(MAX_IMAGE_BYTES), sum: hex(64) },
  BLK: {
    at: upTo(MAX_IMAGE_BYTES),
    data: fc
      .uint8Array({ minLength: 1, maxLength: BLOCK_BYTES })
      .map((bytes) => Buffer.from(bytes).toString('base64url')),
  },
  USE: { sum: hex(64) },
  KEEP: { build: upTo(4_000_000_000) },
  FW: {
    kind: word,
    build: upTo(4_000_000_000),
    trial: fc.boolean(),
    room: upTo(MAX_IMAGE_BYTES),
    sum: maybe(hex(64)),
    at: maybe(upTo(MAX_IMAGE_BYTES)),
  },
  ACK: { s: seq },
  NAK: { s: seq, why: fc.constantFrom(...refusals) },
}
const frames = fc.oneof(
  ...Object.entries(bodies).map(([type, body]) =>
    fc.record<Record<string, unknown>>({ seq, type: fc.constant(type), ...body }),
  ),
) as unknown as fc.Arbitrary<Frame>

const byte = upTo(255).map((code) => String.fromCharCode(code))

describe('the codec of the serial protocol', () => {
  test('a formatted frame is parsed to the same frame, and is within the cap', () => {
    fc.assert(
      fc.property(frames, (frame) => {
        const line = encodeFrame(frame)
        expect(line.length).toBeLessThanOrEqual(MAX_LINE_BYTES)
        expect(line).toMatch(/^[ -~]+$/)
        const decoded = decodeFrame(line)
        expect(decoded).toEqual({ ok: true, frame })
      }),
    )
  })

  test('the codec detects every single damaged byte', () => {
    fc.assert(
      fc.property(frames, fc.nat(), byte, (frame, at, wrong) => {
        const line = encodeFrame(frame)
        const index = at % line.length
        fc.pre(line[index] !== wrong)
        expect(decodeFrame(line.slice(0, index) + wrong + line.slice(index + 1)).ok).toBe(false)
      }),
      { numRuns: 1000 },
    )
  })

  test('the codec detects a burst of up to 16 bits within the checked part', () => {
    fc.assert(
      fc.property(frames, fc.nat(), byte, byte, (frame, at, first, second) => {
        const line = encodeFrame(frame)
        const index = at % (line.length - 6)
        const damaged = line.slice(0, index) + first + second + line.slice(index + 2)
        fc.pre(damaged !== line)
        expect(decodeFrame(damaged).ok).toBe(false)
      }),
      { numRuns: 1000 },
    )
  })

  test('the codec refuses a line without its end or its beginning', () => {
    fc.assert(
      fc.property(frames, fc.nat(), (frame, at) => {
        const line = encodeFrame(frame)
        const cut = 1 + (at % (line.length - 1))
        expect(decodeFrame(line.slice(0, cut - line.length)).ok).toBe(false)
        expect(decodeFrame(line.slice(cut)).ok).toBe(false)
      }),
    )
  })

  test('the codec refuses garbage and never throws', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string({ unit: 'binary' }), fc.string({ maxLength: 500 })), (garbage) => {
        expect(decodeFrame(garbage).ok).toBe(false)
      }),
    )
  })

  test('the codec refuses a line over the cap before it checks anything else', () => {
    expect(decodeFrame('~'.repeat(MAX_LINE_BYTES + 1))).toEqual({ ok: false, error: 'too_long' })
    const tooLong = { seq: 0, type: 'QRY', op: 'a'.repeat(MAX_LINE_BYTES) } as const
    expect(() => encodeFrame(tooLong)).toThrow(RangeError)
  })

  test('an operation id on the wire is a UUID without its dashes', () => {
    fc.assert(
      fc.property(fc.uuid(), (uuid) => {
        expect(opOfUuid(uuid)).toMatch(/^[0-9a-f]{32}$/)
        expect(uuidOfOp(opOfUuid(uuid))).toBe(uuid)
      }),
    )
  })
})
