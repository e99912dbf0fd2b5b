import { LineCounter, parseDocument, stringify } from 'yaml'
import type { z } from 'zod'
import { fill, type Json, namesIn } from './placeholders.ts'
import { type Parameters, ScenarioFile, type Step, type StepKind, stepKinds, stepNames } from './schema.ts'

/** A step with its place in the file: what stands in `${…}` is filled in when its turn comes. */
export interface WrittenStep {
  kind: StepKind
  /** What stands behind the kind. */
  what: Json
  /** For people: why this is done. */
  note?: string
  line: number
}

/** A scenario that can be run: all of it has been looked into. */
export interface Scenario extends Omit<ScenarioFile, 'steps'> {
  steps: WrittenStep[]
}

/** A scenario that cannot be used, in sentences. */
export class ScenarioError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

const MAX_CHARACTERS = 200_000
const MAX_PROBLEMS = 20

/** What a step may say besides parameters; the values are examples of what stands there when it runs. */
const sources: readonly (readonly [pattern: RegExp, example: Json])[] = [
  [/^hub$/, 1],
  [/^(order|bin)\.[a-z][a-z0-9_]*$/, 1],
  [/^(product|units)\.\d{1,2}\/\d{1,2}\/\d{1,2}$/, 1],
  [/^unknown_operation$/, '00000000-0000-4000-8000-000000000000'],
]
const sourceNames = 'hub, order.CUSTOMER, bin.CUSTOMER, product.ROW, units.ROW, unknown_operation'

/** Reads a scenario. `given`: other values for its parameters. Throws `ScenarioError`. */
export function readScenario(text: string, given: Parameters = {}): Scenario {
  if (text.length > MAX_CHARACTERS)
    throw new ScenarioError([`a scenario has at most ${MAX_CHARACTERS} characters`])
  const lines = new LineCounter()
  const document = parseDocument(text, { lineCounter: lines })
  if (document.errors.length > 0)
    throw new ScenarioError(document.errors.map(({ message }) => message.split('\n')[0]!))
  let plain: unknown
  try {
    plain = document.toJS({ maxAliasCount: 100 })
  } catch (error) {
    throw new ScenarioError([(error as Error).message])
  }
  const read = ScenarioFile.safeParse(plain)
  if (!read.success) throw new ScenarioError(problemsOf(read.error))
  const { steps, parameters, ...rest } = read.data
  const problems = Object.keys(given)
    .filter((name) => !Object.hasOwn(parameters, name))
    .map((name) => `there is no parameter ${name}; parameters: ${listOf(Object.keys(parameters))}`)
  const values = { ...parameters, ...given }
  const lineOf = (index: number): number => {
    const node = document.getIn(['steps', index], true) as { range?: [number] } | undefined
    return node?.range ? lines.linePos(node.range[0]).line : 1
  }
  const written = steps.flatMap((step, index) => {
    const line = lineOf(index)
    const result = writtenStep(step, values)
    if ('step' in result) return [{ ...result.step, line }]
    problems.push(...result.problems.map((problem) => `line ${line}, step ${index + 1}: ${problem}`))
    return []
  })
  if (problems.length > 0) throw new ScenarioError(problems.slice(0, MAX_PROBLEMS))
  return { ...rest, parameters: values, steps: written }
}

/** A step that is done at once, without a file. Throws `ScenarioError`. */
export function readStep(step: Record<string, Json>): Pick<WrittenStep, 'kind' | 'what'> {
  const result = writtenStep(step, {})
  if ('step' in result) return result.step
  throw new ScenarioError(result.problems)
}

function writtenStep(
  { note, ...step }: Record<string, Json>,
  parameters: Parameters,
): { step: Omit<WrittenStep, 'line'> } | { problems: string[] } {
  const words = Object.keys(step)
  const [kind] = words
  if (words.length !== 1 || !stepNames.includes(kind as StepKind))
    return { problems: [`must be one of ${stepNames.join(', ')}, not ${listOf(words)}`] }
  if (note !== undefined && typeof note !== 'string') return { problems: ['note: must be text'] }
  const what = fill(step[kind!]!, new Map(Object.entries(parameters)))
  const examples = new Map<string, Json>()
  const problems: string[] = []
  for (const name of namesIn(what)) {
    const source = sources.find(([pattern]) => pattern.test(name))
    if (source) examples.set(name, source[1])
    else
      problems.push(
        `there is no \${${name}}; parameters: ${listOf(Object.keys(parameters))}; besides: ${sourceNames}`,
      )
  }
  if (problems.length > 0) return { problems }
  const parsed = stepKinds[kind as StepKind].safeParse(fill(what, examples))
  if (!parsed.success) return { problems: problemsOf(parsed.error, kind) }
  return { step: { kind: kind as StepKind, what, ...(note !== undefined && { note }) } }
}

/** A step with its values. Throws `ScenarioError` where one of them does not fit. */
export function filledStep(
  { kind, what }: Pick<WrittenStep, 'kind' | 'what'>,
  values: ReadonlyMap<string, Json>,
): Step {
  const parsed = stepKinds[kind].safeParse(fill(what, values))
  if (!parsed.success) throw new ScenarioError(problemsOf(parsed.error, kind))
  return { kind, what: parsed.data } as Step
}

/** A scenario as a file. */
export function writeScenario(scenario: {
  name: string
  description: string
  steps: readonly Record<string, Json>[]
}): string {
  return stringify(scenario, { lineWidth: 110 })
}

const listOf = (words: readonly string[]): string => words.join(', ') || 'none'

const problemsOf = ({ issues }: z.ZodError, above?: string): string[] =>
  issues.map(({ path, message }) => {
    const where = [above, ...path].filter((part) => part !== undefined).join('.')
    return where === '' ? message : `${where}: ${message}`
  })
