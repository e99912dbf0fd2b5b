import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { SERIAL_PROTOCOL_VERSION, frameSchemas } from '../../../protocol/serial/frames.ts'

test('every change of a frame needs a SPEC entry about older boards, a higher version if they must not be used, and a new hash', () => {
  // The schema of each field with its bounds.
  const frames = Object.entries(frameSchemas).map(([type, schema]) => [
    type,
    (['input', 'output'] as const).map((io) => z.toJSONSchema(schema, { io, unrepresentable: 'any' })),
  ])
  const hash = createHash('sha256').update(JSON.stringify(frames)).digest('hex').slice(0, 16)
  expect({ version: SERIAL_PROTOCOL_VERSION, hash }).toEqual({ version: 3, hash: '5d489906132655be' })
})

test('the specification names the current version', () => {
  const spec = readFileSync(new URL('../../../protocol/serial/SPEC.md', import.meta.url), 'utf8')
  expect(/^Version (\d+)\./m.exec(spec)?.[1]).toBe(String(SERIAL_PROTOCOL_VERSION))
})
