import { PassThrough } from 'node:stream'
import { describe, expect, test } from 'vitest'
import { commandHelp, runCommand, startRepl } from '../../../simulator/console/repl.ts'
import { createBench } from '../support/bench.ts'

describe('the console’s commands', () => {
  test('state, rows and log tell what is there', () => {
    const bench = createBench()
    bench.dispense(1)
    expect(runCommand(bench.hub, 'state')).toContain('bin-1  door closed, lift down, 1 units')
    expect(runCommand(bench.hub, 'rows cabinet-1')).toContain('cabinet-1 shelf 1  4/5  5/5  5/5')
    expect(runCommand(bench.hub, 'rows 2')).not.toContain('cabinet-1')
    expect(runCommand(bench.hub, 'log 1')).toMatch(/^1 .*cabinet-1 {2}dispense/)
  })

  test('faults are raised, listed and cleared', () => {
    const { hub } = createBench()
    expect(runCommand(hub, 'fault jam cabinet-1 for_ms=5000 probability=0.5')).toMatch(/^fault-1 /)
    expect(runCommand(hub, 'faults')).toBe('fault-1  jam  cabinet-1  p=0.5  5000 ms left')
    expect(runCommand(hub, 'clear fault-1')).toBe('fault-1 cleared')
    expect(runCommand(hub, 'faults')).toBe('no faults')
    expect(runCommand(hub, 'fault types')).toContain('missed_drop')
  })

  test('people act, and the power goes', () => {
    const bench = createBench()
    bench.dispense(1)
    bench.perform(2, 'bin-1', 'open_door')
    expect(runCommand(bench.hub, 'act take_items bin-1')).toBe('{"units":1,"left":0}')
    expect(runCommand(bench.hub, 'act restock cabinet-1 shelf=1 row=1 units=1')).toBe('{"units":5}')
    expect(runCommand(bench.hub, 'act open_door main')).toBe('door main is locked')
    expect(runCommand(bench.hub, 'power off back')).toContain('back  off')
  })

  test.each([
    ['dance', /unknown command dance/],
    ['fault', /needs a type/],
    ['fault explode', /no fault explode/],
    ['fault toString', /no fault toString/],
    ['fault jam bin-9', /no bin-9/],
    ['fault jam for_ms=soon', /for_ms/],
    ['clear', /needs the id/],
    ['clear fault-9', /no active fault/],
    ['act', /action|Invalid/],
    ['act take_items', /target/],
    ['power', /state/],
    ['power off attic', /no controller attic/],
    ['log -1', /whole number/],
  ])('"%s" says what is wrong', (line, message) => {
    expect(runCommand(createBench().hub, line)).toMatch(message)
  })

  test('in a terminal: a prompt, answers, help, and an end', async () => {
    const { hub } = createBench()
    const input = new PassThrough()
    const output = new PassThrough()
    let text = ''
    output.on('data', (chunk: Buffer) => void (text += chunk.toString()))
    const exited = new Promise<void>((resolve) => {
      startRepl(new Map([[1, hub]]), { input, output, onExit: resolve })
    })
    input.write('hub\nhub 9\nhelp\nfault jam\nexit\n')
    await exited
    expect(text).toContain('hub 1> ')
    expect(text).toContain('hubs: 1')
    expect(text).toContain('hub 9 is not simulated here')
    expect(text).toContain(commandHelp)
    expect(hub.faults.active()).toHaveLength(1)
  })
})
