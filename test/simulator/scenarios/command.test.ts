import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, expect, onTestFinished, test } from 'vitest'
import { systemRuntime } from '../../../protocol/system-runtime.ts'
import { runCommand } from '../../../simulator/scenarios/command.ts'

const folder = mkdtempSync(join(tmpdir(), 'larder-scenario-command-'))
afterAll(() => rmSync(folder, { recursive: true }))

function fileOf(name: string, parameters: string): string {
  const path = join(folder, `${name}.yaml`)
  const lines = [
    `name: ${name}`,
    'description: Waits.',
    `parameters: ${parameters}`,
    'steps: [{ wait: 1 s }]',
    '',
  ]
  writeFileSync(path, lines.join('\n'))
  return path
}
const one = fileOf('one', '{ row: 1/1/1 }')
const two = fileOf('two', '{ units: 2 }')
const run = (...args: string[]) => runCommand(args, systemRuntime(), () => {})

test('--set may name a parameter of some of the files, and is wrong usage if no file has the parameter', async () => {
  expect(await run('check', one, two, '--set', 'units=3')).toBe(0)
  await expect(run('check', one, two, '--set', 'unit=3')).rejects.toThrow(
    '--set unit: no file has this parameter; their parameters: row, units',
  )
})

test('the report of scenarios that cannot be run names the problem and the scenarios that were not tried', async () => {
  const simulator = createServer((_, response) => {
    const error = { code: 'hub_not_found', message: 'hub 7 is not simulated here' }
    response.writeHead(404, { 'Content-Type': 'application/json' }).end(JSON.stringify({ error }))
  })
  await new Promise<void>((resolve) => void simulator.listen(0, '127.0.0.1', resolve))
  onTestFinished(() => void simulator.close())
  const { port } = simulator.address() as AddressInfo
  const report = join(folder, 'junit.xml')
  const attached = run(
    'run',
    one,
    two,
    '--attach',
    `http://127.0.0.1:${port}`,
    '--hub',
    '7',
    '--report',
    report,
  )
  await expect(attached).rejects.toThrow('hub 7')
  const text = readFileSync(report, 'utf8')
  expect(text).toContain('tests="2" failures="1" errors="0" skipped="1"')
  expect(text).toContain('<failure message="hub 7 is not simulated here">')
})
