import { LineCounter, parseDocument, stringify } from 'yaml'
import { z } from 'zod'
import { problemText, schemaProblems } from '../../protocol/model/schema-problems.ts'
import { fill, type Json, namesIn } from './placeholders.ts'
import { type Parameters, ScenarioFile, type Step, type StepKind, stepKinds, stepNames } from './schema.ts'

/** A step with its place in the file. `${…}` is replaced when the step runs. */
export interface WrittenStep {
  kind: StepKind
  /** The content of the step. */
  what: Json
  /** An explanation for people. */
  note?: string
  line: number
}

/** A checked scenario that can be run. */
export interface Scenario extends Omit<ScenarioFile, 'steps'> {
  steps: WrittenStep[]
}

/** A scenario that cannot be used, with its problems in sentences. */
export class ScenarioError extends Error {
  readonly problems: readonly string[]
  constructor(problems: readonly string[]) {
    super(problems.join('\n'))
    this.problems = problems
  }
}

const MAX_CHARACTERS = 200_000
const MAX_PROBLEMS = 20

/** The names in `${…}` that are not parameters, each with an example value for checks. */
const sources: readonly (readonly [pattern: RegExp, example: Json])[] = [
  [/^hub$/, 1],
  [/^(order|bin)\.[a-z][a-z0-9_]*$/, 1],
  [/^(product|units)\.\d{1,2}\/\d{1,2}\/\d{1,2}$/, 1],
  [/^unknown_operation$/, '00000000-0000-4000-8000-000000000000'],
]
const sourceNames = 'hub, order.CUSTOMER, bin.CUSTOMER, product.ROW, units.ROW, unknown_operation'

/** Parses a scenario. `given`: other values for its parameters. Throws `ScenarioError`. */
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
  const lineAt = (path: readonly PropertyKey[]): number => {
    const node = document.getIn(path, true) as { range?: [number] } | undefined
    return node?.range ? lines.linePos(node.range[0]).line : path.length > 0 ? lineAt(path.slice(0, -1)) : 1
  }
  const read = ScenarioFile.safeParse(plain)
  const problems: { line: number; text: string }[] = []
  if (!read.success)
    for (const problem of schemaProblems(read.error, plain)) {
      const line = lineAt(problem.path)
      problems.push({ line, text: `line ${line}: ${problemText(problem)}` })
    }
  // Steps are checked even if the head of the file has problems.
  const { steps, parameters } = read.success ? read.data : partsOf(plain)
  const values = { ...parameters, ...given }
  const written = steps.flatMap((step, index) => {
    if (step === undefined) return []
    const line = lineAt(['steps', index])
    const result = writtenStep(step, values)
    if ('step' in result) return [{ ...result.step, line }]
    for (const text of result.problems)
      problems.push({ line, text: `line ${line}, step ${index + 1}: ${text}` })
    return []
  })
  const unknown = Object.keys(given)
    .filter((name) => !Object.hasOwn(parameters, name))
    .map((name) => `there is no parameter ${name}; parameters: ${listOf(Object.keys(parameters))}`)
  const all = [...unknown, ...problems.toSorted((a, b) => a.line - b.line).map(({ text }) => text)]
  if (!read.success || all.length > 0) throw new ScenarioError(all.slice(0, MAX_PROBLEMS))
  return { ...read.data, parameters: values, steps: written }
}

const Parts = z.object({
  steps: z.array(z.record(z.string(), z.json()).optional().catch(undefined)).catch([]),
  parameters: ScenarioFile.shape.parameters.catch({}),
})

/** The parts of an invalid file that can still be checked: its steps and parameters. */
function partsOf(plain: unknown): z.output<typeof Parts> {
  return Parts.safeParse(plain).data ?? { steps: [], parameters: {} }
}

/** Parses a step that runs at once, without a file. Throws `ScenarioError`. */
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
        `there is no \${${name}}; parameters: ${listOf(Object.keys(parameters))}; also: ${sourceNames}`,
      )
  }
  if (problems.length > 0) return { problems }
  const parsed = stepKinds[kind as StepKind].safeParse(fill(what, examples))
  if (!parsed.success) return { problems: problemsOf(parsed.error, fill(what, examples), kind) }
  return { step: { kind: kind as StepKind, what, ...(note !== undefined && { note }) } }
}

/** A step with its values. Throws `ScenarioError` if a value does not fit. */
export function filledStep(
  { kind, what }: Pick<WrittenStep, 'kind' | 'what'>,
  values: ReadonlyMap<string, Json>,
): Step {
  const parsed = stepKinds[kind].safeParse(fill(what, values))
  if (!parsed.success) throw new ScenarioError(problemsOf(parsed.error, fill(what, values), kind))
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

const problemsOf = (error: z.ZodError, value: unknown, kind = ''): string[] =>
  schemaProblems(error, value).map((problem) => problemText(problem, kind))
