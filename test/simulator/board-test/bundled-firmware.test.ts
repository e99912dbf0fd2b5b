import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { expect, test } from 'vitest'
import { rules } from '../../../simulator/board-test/run.ts'
import { SimulatedHub } from '../../../simulator/simulated-hub.ts'
import { proveOn, told } from './virtual-board.ts'

const root = resolve(import.meta.dirname, '../../..')

test('the bundled firmware passes every rule', async () => {
  expect(told(await proveOn(SimulatedHub))).toEqual([])
})

test('the bundled firmware passes the rules of sessions on a host that reads each line late', async () => {
  expect(told(await proveOn(SimulatedHub, [1, 2, 3, 4, 6, 7, 8, 9], 100))).toEqual([])
})

test('the rules are those of the serial SPEC §11, by number and text', () => {
  const spec = readFileSync(resolve(root, 'protocol/serial/SPEC.md'), 'utf8')
  const section = spec.slice(spec.indexOf('\n## 11.'))
  const listed = [...section.matchAll(/^\| (\d+) \| (.+?) \|$/gm)].map((match) => `${match[1]} ${match[2]}`)
  expect(listed).toEqual(rules.map(({ number, title }) => `${number} ${title}`))
})
