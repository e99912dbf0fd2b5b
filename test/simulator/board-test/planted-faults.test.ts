import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { rules } from '../../../simulator/board-test/run.ts'
import { SimulatedHub } from '../../../simulator/simulated-hub.ts'
import { plantedFaults, type PlantedFault } from './planted-faults.ts'
import { proveOn } from './virtual-board.ts'

const root = resolve(import.meta.dirname, '../../..')
let folder: string

beforeAll(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-planted-'))))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

/** Loads a copy of the simulator with the fault in it. */
async function withFault({ patches }: PlantedFault, index: number): Promise<typeof SimulatedHub> {
  const copy = join(folder, String(index))
  const filter = (path: string): boolean => !/\/(node_modules|page|demo|console|assets)$/.test(path)
  for (const room of ['protocol', 'simulator'])
    cpSync(join(root, room), join(copy, room), { recursive: true, filter })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const { file, find, replace } of patches) {
    const path = join(copy, file)
    const text = readFileSync(path, 'utf8')
    expect([file, find, text.split(find).length - 1]).toEqual([file, find, 1])
    writeFileSync(
      path,
      text.replace(find, () => replace),
    )
  }
  const made = (await import(pathToFileURL(join(copy, 'simulator/simulated-hub.ts')).href)) as {
    SimulatedHub: typeof SimulatedHub
  }
  return made.SimulatedHub
}

test('every rule detects a planted fault', () => {
  const found = new Set(plantedFaults.map(({ rule }) => rule))
  expect(rules.map(({ number }) => number).filter((number) => !found.has(number))).toEqual([])
})

test.each(plantedFaults.map((fault, index) => ({ ...fault, index })))(
  'rule $rule detects the fault: $name',
  async ({ index, ...fault }) => {
    const Hub = await withFault(fault, index)
    const [finding] = await proveOn(Hub, [fault.rule])
    expect([finding!.state, finding!.because]).toEqual(['broken', expect.stringMatching(/must|may|returns/)])
  },
)
