import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { z } from 'zod'
import { SERIAL_PROTOCOL_VERSION, frameSchemas } from '../../../protocol/serial/frames.ts'

test('no change of a frame is silent: say in the SPEC what boards that do not know it answer, raise the version where they must not be used, and record the new hash', () => {
  // What is written in a field, and the bounds of what it says.
  const frames = Object.entries(frameSchemas).map(([type, schema]) => [
    type,
    (['input', 'output'] as const).map((io) => z.toJSONSchema(schema, { io, unrepresentable: 'any' })),
  ])
  const hash = createHash('sha256').update(JSON.stringify(frames)).digest('hex').slice(0, 16)
  expect({ version: SERIAL_PROTOCOL_VERSION, hash }).toEqual({ version: 3, hash: '799397d10b26b133' })
})

test('the specification names the version that is spoken', () => {
  const spec = readFileSync(new URL('../../../protocol/serial/SPEC.md', import.meta.url), 'utf8')
  expect(/^Version (\d+)\./m.exec(spec)?.[1]).toBe(String(SERIAL_PROTOCOL_VERSION))
})
