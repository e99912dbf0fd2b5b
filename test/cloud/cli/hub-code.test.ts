import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { runCommandLine } from '../../../cloud/cli/command-line.ts'
import { hubCommands } from '../../../cloud/cli/hubs.ts'
import { virtualRuntime } from '../../world/clock.ts'
import { cloudFolder } from './cloud-folder.ts'

const { folder, environment } = await cloudFolder()

test('the command qr prints the address of the hub’s shop and its code, and writes the code into a file', async () => {
  const qr = (...args: string[]) =>
    runCommandLine(hubCommands, virtualRuntime(), ['qr', ...args], {
      ...environment,
      PUBLIC_URL: 'https://shop.example/larder',
    })
  const to = join(folder, 'code.svg')
  const { stdout } = await qr('1', '--to', to)
  const printed = JSON.parse(stdout) as { svg: string }
  expect(printed).toEqual({
    url: 'https://shop.example/larder/shop/1',
    svg: expect.stringMatching(/^<svg/) as string,
  })
  expect(readFileSync(to, 'utf8')).toBe(printed.svg)
  expect(await qr('99')).toMatchObject({ exitCode: 1 })
  expect(await qr('1', '--to', '/absent/code.svg')).toMatchObject({ exitCode: 1 })
})

test('a terminal shows a QR code of the command that enrols a board, and JSON has no picture', async () => {
  const printed = async (...more: string[]) => {
    const terminal = { print: () => {}, columns: 100, signal: new AbortController().signal }
    const args = ['claim-code', '1', ...more]
    return (await runCommandLine(hubCommands, virtualRuntime(), args, environment, terminal)).stdout
  }
  const shown = await printed()
  expect(shown).toMatch(/^claim_code +[A-HJ-NP-Z2-9]{8}$/m)
  expect(shown).toMatch(/\n█{20,}\n/)
  expect(Object.keys(JSON.parse(await printed('--json')) as object)).toEqual([
    'hub_id',
    'claim_code',
    'claim_expires_at',
  ])
})
