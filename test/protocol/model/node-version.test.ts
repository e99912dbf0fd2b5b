import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { nodeRange, nodeRefusal } from '../../../protocol/require-node.ts'

test.each(['20.19.0', '20.20.2', '22.14.0', '22.23.3', '24.0.0', '24.21.0', '26.0.0', '26.10.0'])(
  'Larder runs on Node %s',
  (version) => expect(nodeRefusal(version)).toBeUndefined(),
)

test.each(['16.20.2', '18.20.8', '20.18.3', '21.7.3', '22.13.1', '23.11.0', '25.2.0', '27.0.0', ''])(
  'Node "%s" is refused with a sentence that names the supported versions',
  (version) =>
    expect(nodeRefusal(version)).toBe(
      `Larder needs Node 20 (from 20.19), 22 (from 22.14), 24 or 26: this is Node ${version}.`,
    ),
)

test('Larder runs on the present Node', () => {
  expect(nodeRefusal(process.versions.node)).toBeUndefined()
})

test('package.json requires the same Node versions', () => {
  const { engines } = JSON.parse(readFileSync('package.json', 'utf8')) as { engines: { node: string } }
  expect(engines.node).toBe(nodeRange)
})
