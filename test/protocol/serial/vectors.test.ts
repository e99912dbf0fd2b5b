import { readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { decodeFrame, encodeFrame, crc16 } from '../../../protocol/serial/codec.ts'
import { acknowledged, frameSchemas, MAX_LINE_BYTES, type Frame } from '../../../protocol/serial/frames.ts'

interface Vectors {
  crc: { text: string; crc: string }[]
  valid: { line: string; frame: Frame }[]
  invalid: { why: string; line: string; error: string; seq?: number }[]
}

const folder = new URL('../../../protocol/serial/', import.meta.url)
const vectors = JSON.parse(readFileSync(new URL('vectors.json', folder), 'utf8')) as Vectors
const specification = readFileSync(new URL('SPEC.md', folder), 'utf8')

describe('the test vectors of the serial protocol', () => {
  test.each(vectors.crc)('the checksum of "$text" is $crc', ({ text, crc }) => {
    expect(crc16(text)).toBe(Number.parseInt(crc, 16))
  })

  test.each(vectors.valid)('the test vector $line is parsed and formatted', ({ line, frame }) => {
    expect(decodeFrame(line)).toEqual({ ok: true, frame })
    expect(decodeFrame(`${line}\r`)).toEqual({ ok: true, frame })
    expect(encodeFrame(frame)).toBe(line)
  })

  test.each(vectors.invalid)('the test vector is refused: $why', ({ line, error, seq }) => {
    expect(decodeFrame(line)).toEqual({ ok: false, error, ...(seq !== undefined && { seq }) })
  })

  test('every type of frame has a test vector', () => {
    expect(new Set(vectors.valid.map(({ frame }) => frame.type))).toEqual(new Set(Object.keys(frameSchemas)))
  })
})

describe('SPEC.md and the codec', () => {
  test('every line of the example in SPEC.md is a frame', () => {
    const lines = [...specification.matchAll(/^[→←] (~\S.*?\*[0-9a-f]{4})/gm)].map(([, line]) => line!)
    expect(lines.length).toBeGreaterThan(30)
    for (const line of lines) expect(decodeFrame(line), line).toMatchObject({ ok: true })
  })

  test('the table of frames in SPEC.md names every type, every key in its order, and the acknowledged frames', () => {
    for (const [type, { shape }] of Object.entries(frameSchemas)) {
      const row = specification.match(new RegExp(`^\\| ${type} +\\| \\S+ +\\| (\\S+) +\\| (.*) \\|$`, 'm'))
      expect(row, type).not.toBeNull()
      expect(row![1] === 'yes', type).toBe(acknowledged.has(type as Frame['type']))
      if (type === 'OPS') continue
      const keys = [...row![2]!.matchAll(/`([a-z]+)`/g)].map(([, key]) => key)
      expect(keys, type).toEqual(Object.keys(shape))
    }
  })

  test('SPEC.md names every refusal reason, and the cap', () => {
    const { CMD, NAK, RES } = frameSchemas
    const words = [
      NAK.shape.why.options,
      RES.shape.state.options,
      RES.shape.why.unwrap().options,
      CMD.shape.act.options,
    ]
    for (const word of words.flat()) expect(specification).toContain(`\`${word}\``)
    expect(specification).toContain(`**${MAX_LINE_BYTES} bytes**`)
  })
})
