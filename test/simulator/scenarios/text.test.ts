import { readdirSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { faultTypes } from '../../../simulator/faults/fault-types.ts'
import { stepNames } from '../../../simulator/scenarios/schema.ts'
import { filledStep, readScenario, ScenarioError, writeScenario } from '../../../simulator/scenarios/text.ts'

const library = new URL('../../../simulator/scenarios/library/', import.meta.url).pathname

const file = (steps: string, head = ''): string =>
  `name: one\ndescription: something\n${head}\nsteps:\n${steps
    .split('\n')
    .map((line) => `  ${line}`)
    .join('\n')}\n`

function problems(text: string, given = {}): readonly string[] {
  try {
    readScenario(text, given)
    return []
  } catch (error) {
    if (!(error instanceof ScenarioError)) throw error
    return error.problems
  }
}

describe('a scenario as a file', () => {
  test('every scenario of the library can be read, has its file’s name, and has an expectation', () => {
    const files = readdirSync(library)
    expect(files.length).toBeGreaterThanOrEqual(15)
    for (const name of files) {
      const scenario = readScenario(readFileSync(`${library}${name}`, 'utf8'))
      expect(`${scenario.name}.yaml`).toBe(name)
      expect(scenario.steps.some(({ kind }) => kind === 'expect' || kind === 'wait_until')).toBe(true)
    }
  })

  test('the example of the README can be read, and the README explains every kind of step', () => {
    const readme = readFileSync(`${library}../README.md`, 'utf8')
    expect(readScenario(/^```yaml\n([^]*?)^```$/m.exec(readme)![1]!).steps).toHaveLength(7)
    expect(stepNames.filter((name) => !readme.includes(`\`${name}`))).toEqual([])
  })

  test('parameters replace values with their type and parts of text, and a run can override them', () => {
    const text = file(
      "- act: { action: take_items, target: 'bin-${bin}', units: '${units}' }",
      'parameters: { bin: 2, units: 3 }',
    )
    const [step] = readScenario(text, { units: 1 }).steps
    expect(filledStep(step!, new Map())).toEqual({
      kind: 'act',
      what: { action: 'take_items', target: 'bin-2', units: 1 },
    })
    expect(problems(text, { colour: 'red' })).toEqual([
      'there is no parameter colour; parameters: bin, units',
    ])
  })

  test('a reference to a later result stays in the text until its step runs', () => {
    const [step] = readScenario(file("- act: { action: take_items, target: 'bin-${bin.ann}' }")).steps
    expect(filledStep(step!, new Map([['bin.ann', 4]])).what).toMatchObject({ target: 'bin-4' })
  })

  test('durations are written as words', () => {
    const waits = ['300 ms', '2.5 s', '10 min', '1 h'].map((time) => `- wait: ${time}`).join('\n')
    expect(readScenario(file(waits)).steps.map((step) => filledStep(step, new Map()).what)).toEqual([
      300, 2500, 600_000, 3_600_000,
    ])
  })

  test.each([
    ['- fault: { type: explode }', /^line 5, step 1: fault\.type: .*"jam"/],
    ['- dance: {}', new RegExp(`must be one of ${stepNames.join(', ')}, not dance`)],
    ['- act: { action: take_items, target: bin-1 }\n  wait: 1 s', /must be one of .*, not act, wait/],
    ['- wait: soon', /wait: must be a time such as/],
    ['- wait: 25 h', /at most 24 h/],
    ['- expect: {}', /expect: must name something/],
    ['- wait_until: { within: 3 s }', /wait_until: must name something/],
    ['- wait_until: { order: { customer: ann, status: EATEN } }', /order\.status/],
    ['- expect: { motion: { times: -1 } }', /motion\.times/],
    ["- pay: { customer: '${who}' }", /there is no \$\{who\}; parameters: none; also: hub, order\.CUSTOMER/],
    ['- cart: { customer: ann, items: [{ row: top, units: 1 }] }', /must be cabinet\/shelf\/row/],
    ['- program: { name: edge, do: copy }', /program/],
    ['- owner: { call: open the bin }', /must be a method and a path/],
    ['- command: { name: open_bin, bin: 5 }', /command\.bin/],
    ['- command: { name: cycle_bin, bin: 1, cycles: 2, at: cloud }', /command\.at/],
    ['- command: { name: cancel_order }', /command\.name/],
  ])('the scenario “%s” is refused with its line and reason', (steps, message) => {
    expect(problems(file(steps))[0]).toMatch(message)
  })

  test('a scenario that is no YAML, no scenario or a YAML bomb is refused in a sentence', () => {
    expect(problems('name: [')[0]).toMatch(/flow|Flow/)
    expect(problems('- 1')[0]).toMatch(/object/)
    expect(problems('x'.repeat(200_001))).toEqual(['a scenario has at most 200000 characters'])
    const bomb = [
      'a: &a [x, x, x, x, x, x, x, x, x]',
      ...'bcdefg'.split('').map((name, index) => {
        const former = 'abcdefg'[index]!
        return `${name}: &${name} [${Array.from({ length: 9 }, () => `*${former}`).join(', ')}]`
      }),
    ]
    expect(problems(bomb.join('\n'))[0]).toMatch(/alias/i)
  })

  test('a written scenario is read again unchanged', () => {
    const steps = [{ fault: { type: faultTypes[0] } }, { wait: '2 s' }]
    expect(readScenario(writeScenario({ name: 'made', description: 'By hand.', steps })).steps).toMatchObject(
      [
        { kind: 'fault', what: { type: faultTypes[0] } },
        { kind: 'wait', what: '2 s' },
      ],
    )
  })
})

test('a scenario with many mistakes names all of them at once, each with its line, in words, and the possible values', () => {
  const text = [
    'name: Bad Name',
    'seed: often',
    'steps:',
    '  - wait: soon',
    '  - expect:',
    '      order: { customer: ann, status: DONE }',
    '  - dance: true',
    '  - wait_until: { alarm: { kind: nothing } }',
    '  - pay: {}',
  ].join('\n')
  const found = problems(text)
  expect(found.map((problem) => /^line (\d+)/.exec(problem)?.[1])).toEqual([
    '1',
    '1',
    '2',
    '4',
    '5',
    '7',
    '8',
    '9',
  ])
  expect(found).toContain('line 1: description: is missing')
  expect(found).toContain('line 2: seed: must be a number, not "often"')
  expect(found[4]).toMatch(
    /^line 5, step 2: expect\.order\.status: must be one of "NEW", .*"COMPLETED".*, not "DONE"$/,
  )
  expect(found[6]).toMatch(
    /^line 8, step 4: wait_until\.alarm\.kind: must be one of "hub_silent", .*, not "nothing"$/,
  )
  expect(found[7]).toBe('line 9, step 5: pay.customer: is missing')
  for (const problem of found) expect(problem).not.toMatch(/Invalid|expected|received/)
})
