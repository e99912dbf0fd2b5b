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
    runCommandLine(hubCommands(virtualRuntime()), ['qr', ...args], {
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
