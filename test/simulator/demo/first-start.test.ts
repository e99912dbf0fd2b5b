import {
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { HardwareDescription } from '../../../protocol/model/hardware.ts'
import { unplug } from '../../../simulator/demo/first-start.ts'

let folder: string
beforeEach(() => void (folder = mkdtempSync(join(tmpdir(), 'larder-unplug-'))))
afterEach(() => rmSync(folder, { recursive: true }))

test('only links to the ports of a dead simulator are removed', () => {
  const template = join(import.meta.dirname, '../../../simulator/hardware/demo-hub.json')
  const hardware = HardwareDescription.parse(JSON.parse(readFileSync(template, 'utf8')))
  const ports = ['link', 'file', 'missing'].map((name) => join(folder, name))
  const file = join(folder, 'hardware.json')
  const controllers = hardware.controllers.map((controller, index) => ({ ...controller, port: ports[index] }))
  writeFileSync(file, JSON.stringify({ ...hardware, controllers }))
  symlinkSync('/dev/pts/a-terminal-that-is-gone', ports[0]!)
  writeFileSync(ports[1]!, '')

  unplug(file)
  expect(readdirSync(folder).sort()).toEqual(['file', 'hardware.json'])
  unplug(file)
  expect(existsSync(ports[1]!)).toBe(true)
})
