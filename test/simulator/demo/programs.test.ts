import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { edgeFlags, programCommand } from '../../../simulator/demo/programs.ts'

test('the demo runs the hub with the flags that `npm run edge` gives it', () => {
  const { scripts } = JSON.parse(readFileSync('package.json', 'utf8')) as { scripts: { edge: string } }
  expect(scripts.edge).toContain(`node ${edgeFlags.join(' ')} .build/edge/main.js`)
  expect(programCommand('edge/main', edgeFlags).slice(-1 - edgeFlags.length)).toEqual([
    ...edgeFlags,
    expect.stringMatching(/edge\/main\.ts$/),
  ])
})
